--- The errors that operations return as their second value.
---
---@class rocketmq.Error
---@field kind rocketmq.ErrorKind what sort of thing went wrong
---@field code integer Java's or the broker's number for it, 0 where there is none
---@field message string what happened, to what, and what to do
---@field topic? string
---@field broker? string the broker of the last attempt
---@field addr? string its address, "host:port"
---@field attempts integer how many attempts were made
---@field tries rocketmq.Try[] one entry an attempt, in their order
---@field elapsed_ms number
---@field maybe_stored boolean a broker got the message and did not answer: it may have stored it
---@field msg_id? string the id that the message had
---@field failed? table<integer, rocketmq.Error> of a batch: the error of each message that failed, by
--- its position

---@alias rocketmq.ErrorKind
---| "message" # the message itself is not acceptable
---| "timeout" # the time is over
---| "route" # no usable queue was found
---| "connect" # no connection could be made
---| "closed" # a connection ended before the answer
---| "broker" # the broker refused; `code` says why
---| "selector" # a selector failed
---| "hook" # a hook refused
---| "state" # the producer is shut down, or belongs to a parent process
---| "overload" # too much is under way
---| "transaction" # the function of a local transaction failed; `raised` is its error

---@class rocketmq.Try one attempt
---@field broker? string
---@field addr? string
---@field kind rocketmq.ErrorKind
---@field code integer
---@field message? string
---@field written boolean the broker may have got it
---@field elapsed_ms number

local native = require "rocketmq.native.producer"

-- One metatable for all errors of a worker, which C keeps: errors made before and after this
-- module is loaded anew are alike.
local metatable = native.error_metatable()

local M = {}

---@param err rocketmq.Error
---@return string
function metatable.__tostring(err)
  local label = err.kind .. " error"
  if err.code ~= 0 then label = label .. " " .. err.code end
  return label .. ": " .. err.message
end

---@return string
function metatable.__concat(left, right) return tostring(left) .. tostring(right) end

--- Makes an error of ours.
---@param kind rocketmq.ErrorKind
---@param message string
---@return rocketmq.Error
function M.new(kind, message)
  return setmetatable({
    kind = kind,
    code = 0,
    message = message,
    attempts = 0,
    tries = {},
    elapsed_ms = 0,
    maybe_stored = false,
  }, metatable)
end

--- True for an error that an operation returned.
---@param value any
---@return boolean
function M.is(value) return type(value) == "table" and getmetatable(value) == metatable end

return M
