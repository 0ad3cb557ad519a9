--- Hooks: functions that are called around every attempt to send. docs/hooks.md leads to one's own;
--- the files beside this one are hooks that are ready to use: `rocketmq.hook.log {}`.
---
--- A hook is a table of functions, given to `producer:add_hook`, or returned by a file of `--hook`. None of
--- its functions may wait.

--- What `before`, `after` and `check_forbidden` see. Its fields are made when they are first read,
--- which is possible only while the function runs; those that have been read stay. What a hook sets in it
--- under a name of its own in `before` is there in the `after` of the same attempt.
---@class rocketmq.HookContext
---@field producer rocketmq.Producer
---@field group string
---@field mode "sync"|"async"|"oneway"
---@field topic string
---@field message rocketmq.HookMessage
---@field message_type "normal"|"half"|"delay"
---@field queue? rocketmq.Queue nil, like broker and addr, in the `after` of a send without an attempt
---@field broker? string
---@field addr? string
---@field born_host string
---@field msg_id string
---@field attempt integer counts from 1; 0 in the `after` of a send that ended without an attempt
---@field elapsed_ms? number in `after`: how long the attempt took
---@field will_retry? boolean in `after`: another attempt follows
---@field result? rocketmq.Result in `after`, when the message is stored; nil for oneway
---@field err? rocketmq.Error in `after`, when it is not

--- The message of an attempt. In `before` it is made anew from what the script sent; the body, tags,
--- keys and properties that it has afterwards are sent. In `after` it is what was sent.
---@class rocketmq.HookMessage
---@field topic string
---@field body string
---@field tags? string
---@field keys string[] a list, also when the script gave a string
---@field properties table<string, string> the script's own; never nil
---@field flag integer
---@field wait boolean

--- What `end_transaction` sees.
---@class rocketmq.HookTransaction
---@field group string
---@field topic? string
---@field broker? string
---@field addr? string
---@field msg_id? string
---@field transaction_id? string
---@field state "commit"|"rollback"|"unknown"
---@field from_check boolean the broker has asked for it
---@field message rocketmq.HookMessage without flag and wait

--- What `before_request` sees: any request to a name server or broker.
---@class rocketmq.HookRequest
---@field addr string
---@field code integer
---@field code_name? string
---@field ext table<string, string> the header's fields; new ones may be added
---@field body string
---@field oneway boolean

--- What `after_response` sees. It is not called for requests that got no answer.
---@class rocketmq.HookResponse
---@field addr string
---@field code integer the request's
---@field code_name? string
---@field response_code integer
---@field response_code_name? string
---@field remark string
---@field ext table<string, string>
---@field body string
---@field elapsed_ms number

---@class rocketmq.Hook
---@field name? string for errors and the log
---@field strict? boolean an error in `before` or `after` fails the send
---@field check_forbidden? fun(ctx: rocketmq.HookContext): string? the reason why it must not be sent
---@field before? fun(ctx: rocketmq.HookContext)
---@field after? fun(ctx: rocketmq.HookContext)
---@field end_transaction? fun(ctx: rocketmq.HookTransaction)
---@field before_request? fun(ctx: rocketmq.HookRequest)
---@field after_response? fun(ctx: rocketmq.HookResponse)

---@class rocketmq.hook
local M = {}

local FUNCTIONS = { "check_forbidden", "before", "after", "end_transaction", "before_request",
  "after_response" }
local FIELDS = { "name", "strict", unpack(FUNCTIONS) }
local SHIPPED = { "acl", "audit", "log", "metrics", "opentelemetry", "rate_limit" }

local is_shipped = {}
for _, name in ipairs(SHIPPED) do is_shipped[name] = true end

local known = {}
for _, name in ipairs(FIELDS) do known[name] = true end

--- Whether a hook may have a function of this name.
---@param name any
---@return boolean
function M.has_function(name) return known[name] ~= nil and name ~= "name" and name ~= "strict" end

local function wanted_type(name)
  if name == "name" then return "string" end
  return name == "strict" and "boolean" or "function"
end

-- The name of the function that makes a shipped hook, when it is one.
local function maker_name(value)
  for _, name in ipairs(SHIPPED) do
    if value ~= nil and rawequal(rawget(M, name), value) then return name end
  end
end

--- Says what is wrong with the table of a hook, or returns nil.
---@param hook any
---@param where string what it is called in the sentence
---@return string? why
function M.check(hook, where)
  if type(hook) ~= "table" then
    local maker = maker_name(hook)
    return ("%s must be a table of functions {before = function(ctx) ... end}, not %s"):format(
      where, maker and ("what makes one: write rocketmq.hook.%s {}"):format(maker)
      or hook == nil and "nil" or "a " .. type(hook))
  end
  for name, value in pairs(hook) do
    if not known[name] then
      return require("rocketmq.naming").unknown(where, tostring(name), FIELDS)
    end
    local wanted = wanted_type(name)
    if type(value) ~= wanted then
      return ("%s: %s must be a %s, not %s"):format(where, name, wanted, type(value))
    end
  end
  if hook.name == "" then return where .. ": the name is empty" end
  for _, name in ipairs(FUNCTIONS) do
    if hook[name] then return nil end
  end
  return ("%s has no function; there are %s"):format(where, table.concat(FUNCTIONS, ", "))
end

local function place_of(hook)
  for _, name in ipairs(FUNCTIONS) do
    if hook[name] then
      local info = debug.getinfo(hook[name], "S")
      return info.short_src .. ":" .. info.linedefined
    end
  end
end

--- A hook as a producer keeps it: what the table says later changes nothing.
---@param hook rocketmq.Hook
---@return rocketmq.Hook
function M.record(hook)
  local record = { name = hook.name or "at " .. place_of(hook), strict = hook.strict }
  for _, name in ipairs(FUNCTIONS) do record[name] = hook[name] end
  return record
end

return setmetatable(M, {
  __index = function(self, name)
    if type(name) ~= "string" then return nil end
    if not is_shipped[name] then
      error(require("rocketmq.naming").unknown("rocketmq.hook", name, SHIPPED), 2)
    end
    local hook = require("rocketmq.hook." .. name)
    rawset(self, name, hook)
    return hook
  end,
})
