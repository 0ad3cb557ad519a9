--- Transactions: a message that consumers get when, and only when, something else has been done.
---
---     local producer = rocketmq.transaction_producer {
---       group = "orders",
---       check = function(message) return is_paid(message.keys[1]) and "commit" or "rollback" end,
---     }
---     producer:send_in_transaction({ topic = "Orders", keys = "o-1", body = "..." },
---       function() pay("o-1") return "commit" end)
---
--- In Java: TransactionMQProducer, whose TransactionListener is `execute` and `check` here.

local errors = require "rocketmq.error"
local naming = require "rocketmq.naming"
local native = require "rocketmq.native.producer"
local native_task = require "rocketmq.native.task"
local producers = require "rocketmq.producer"
local sending = require "rocketmq.sending"

local take = native.take

--- What has become of a local transaction. Java's names are taken too.
---@alias rocketmq.TransactionState
---| "commit" # COMMIT_MESSAGE: consumers get the message
---| "rollback" # ROLLBACK_MESSAGE: nobody gets it
---| "unknown" # UNKNOW: it is not decided yet; the broker asks later

local states = {
  commit = "commit",
  rollback = "rollback",
  unknown = "unknown",
  COMMIT_MESSAGE = "commit",
  ROLLBACK_MESSAGE = "rollback",
  UNKNOW = "unknown",
}

--- Does the local transaction. It is called when the half message is stored, with a copy of the message
--- that has `msg_id` and `transaction_id` (both the message's unique key), in the coroutine that
--- sends, so it may wait.
---@alias rocketmq.Execute fun(message: rocketmq.Message, arg: any): rocketmq.TransactionState

--- Tells what has become of a local transaction, perhaps one of another process. It runs in a
--- coroutine of its own and may wait.
---@alias rocketmq.Check fun(message: rocketmq.StoredMessage): rocketmq.TransactionState

---@class rocketmq.TransactionProducer: rocketmq.Producer
---@field private half rocketmq.Sender
local methods = {}

-- What a value says of itself; an error object may have a __tostring that fails.
local function text_of(value)
  local ok, text = pcall(tostring, value)
  if ok and type(text) == "string" then return text end
  return ("an error object (a %s) whose __tostring fails"):format(type(value))
end

-- A text for the broker's log: one line.
local function one_line(value) return (text_of(value):match("^[^\r\n]*")) end

local function note_error(err)
  local known = type(err) == "table" and text_of(err) or err
  return { err = err, traceback = native_task.traceback(known) }
end

-- Calls the user's function. Gives the state, and what is wrong with the call if something is: a
-- remark for the broker and the words for a person.
local function decide(name, fn, ...)
  local ok, answer = xpcall(fn, note_error, ...)
  if not ok then
    if type(answer) ~= "table" then answer = { err = answer, traceback = tostring(answer) } end
    return "unknown", one_line(answer.err),
      ("%s raised an error, so the state is unknown: %s"):format(name, answer.traceback), answer.err
  end
  local state = states[answer]
  if state then return state end
  local shown = type(answer) == "string" and ("%q"):format(answer) or tostring(answer)
  local words = ('%s returned %s, so the state is unknown; it must return "commit", "rollback" or '
    .. '"unknown"'):format(name, shown)
  return "unknown", one_line(words), words
end

-- What execute sees: its own copy, with the id that the broker will ask with.
local function copy_for_execute(message, id)
  local copy = sending.copy_of(message)
  copy.msg_id, copy.transaction_id = id, id
  return copy
end

-- The state of the local transaction, the remark for the broker, and an error for the caller.
local function execute_local(result, message, execute, arg)
  if result.status ~= "SEND_OK" then
    return "rollback", nil, errors.new("broker", ("The half message is stored, but its status is "
      .. "%s: the transaction was rolled back without calling execute."):format(result.status))
  end
  local id = result.msg_id
  local state, remark, words, raised = decide("execute", execute, copy_for_execute(message, id),
    arg)
  if not words then return state end
  local err = errors.new("transaction", words)
  err.topic, err.msg_id, err.raised = message.topic, id, raised
  return state, "executeLocalTransactionBranch exception: " .. remark, err
end

--- Sends a message in a transaction: stores it where no consumer sees it, calls `execute`, and tells
--- the broker what that returned.
---
--- Without a result nothing is stored as far as can be known, and `execute` was not called. With a
--- result, its `transaction_state` says what the broker was told; an error beside it says what went
--- wrong: execute raised or returned something else (the state is "unknown" then, and the broker will
--- ask `check`), the half message's status is not SEND_OK (rolled back, execute not called), or the
--- broker could not be told (it will ask as well).
---@param message rocketmq.Message without a delay
---@param execute rocketmq.Execute
---@param arg? any handed to execute
---@param options? rocketmq.SendOptions for the half message
---@return rocketmq.Result? result
---@return rocketmq.Error? err
function methods:send_in_transaction(message, execute, arg, options)
  if type(self) ~= "table" or not rawget(self, "half") then
    error("call producer:send_in_transaction(...) with a colon, on a transaction producer", 2)
  end
  if type(message) ~= "table" then
    error("the message must be a table, not " .. type(message), 2)
  end
  if type(execute) ~= "function" then
    error("send_in_transaction: execute must be a function, not " .. type(execute), 2)
  end
  sending.check_options(options)
  local result, failed = take(sending.hand_over(self.half, message, options))
  if not result then return nil, failed end
  local state, remark, err = execute_local(result, message, execute, arg)
  local told, why = take(native.end_transaction(self.handle, result, state, remark))
  if not told then err = err or why end
  return result, err
end

methods.send_in_transaction = naming.limit_arguments("producer:send_in_transaction",
  methods.send_in_transaction)

-- Answers checks until there are no more.
local function answer_checks(handle, check)
  native.set_check(handle, function(id)
    local message = native.checked(handle, id)
    if not message then return end
    local state, remark, words = decide("check", check, message)
    if words then
      remark = "checkLocalTransactionState Exception: " .. remark
      words = ("transaction %s: %s"):format(message.msg_id, words)
    end
    native.end_check(handle, id, state, remark, words)
  end)
end

local M = {}

--- Makes and starts a producer for transactions. It has all that another producer has, and
--- `send_in_transaction`. While it lives it answers the checks of its group, of transactions too
--- that another process began.
---@param settings table<string, any> those of a producer, and `check`
---@return rocketmq.TransactionProducer
function M.new(settings)
  local given, check = settings, nil
  if type(settings) == "table" then
    given = {}
    for name, value in pairs(settings) do given[name] = value end
    check, given.check = given.check, nil
  end
  if type(check) ~= "function" and type(settings) == "table" then
    error("rocketmq.transaction_producer: check must be a function, not " .. type(check)
      .. "; brokers ask it what has become of a transaction", 2)
  end
  local producer = producers.make(given, "rocketmq.transaction_producer", 3)
  for name, method in pairs(methods) do producer[name] = method end
  producer.half = native.half_sender(producer.handle)
  answer_checks(producer.handle, check)
  return producer
end

return M
