--- What all ways to send have in common: how a message, options and a callback are read and handed to C.

local native = require "rocketmq.native.producer"

local take = native.take

local M = {}

--- Whether a message has one of the fields that few have. C reads those from the table, so that all
--- other messages need not hand them over.
---@param message table
---@return boolean
function M.has_more(message)
  return message.delay_level ~= nil or message.delay_ms ~= nil or message.delay_seconds ~= nil
    or message.deliver_at ~= nil or message.sharding_key ~= nil or message.buyer_id ~= nil
    or message.lmq ~= nil or message.reply_to ~= nil
end

--- Raises when the options of a send are no table.
---@param options any
---@param level? integer where the error is; default: at the caller of the method that checks
function M.check_options(options, level)
  if options == nil or type(options) == "table" then return end
  error("the send's options must be a table, not " .. type(options), level or 3)
end

--- The options, and the callback, which may stand in their place. Raises at the caller of the method.
---@param options? table|function
---@param callback? function
---@param method string
---@return table? options
---@return function? callback
function M.read_callback(options, callback, method)
  if callback == nil and type(options) == "function" then return nil, options end
  if callback ~= nil and type(callback) ~= "function" then
    error(method .. ": the callback must be a function, not " .. type(callback), 3)
  end
  return options, callback
end

--- Hands a message to one of C's functions that take it by position, for whoever is in no hurry.
---@param send function
---@param message table
---@param options? table
---@param callback? function
---@return any ... what the function returns
function M.hand_over(send, message, options, callback)
  local given = options or {}
  return send(message.body, message.topic, message, given.selector, given.arg, options,
    given.timeout, given.attempt_timeout, given.retries, given.queue, message.tags, message.keys,
    message.properties, message.flag, message.wait, M.has_more(message), callback)
end

--- A copy of a message, with all that is in it: a selector may be asked when the caller has changed the
--- table for its next message.
---@param message table
---@return table
function M.copy_of(message)
  local copy = {}
  local metatable = getmetatable(message) -- its fields may come from there
  if type(metatable) == "table" then setmetatable(copy, metatable) end
  for name, value in pairs(message) do
    if type(value) == "table" then
      local inner = {}
      for key, item in pairs(value) do inner[key] = item end
      value = inner
    end
    rawset(copy, name, value)
  end
  return copy
end

--- What a method returns that does not wait for a result, made of what C returned.
---@param ok boolean
---@param pending? rocketmq.Pending
---@return true? ok
---@return rocketmq.Error? err
function M.accepted(ok, pending)
  if ok then return true end
  return take(ok, pending)
end

return M
