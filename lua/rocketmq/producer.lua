--- Producers: what sends messages.
---
--- This module reads the fields of a message and hands them to C by position, which is several
--- times faster than reading a table from C. Everything else about a send is decided there.

local errors = require "rocketmq.error"
local naming = require "rocketmq.naming"
local native = require "rocketmq.native.producer"
local plugins = require("rocketmq.native.plugins").state
local sending = require "rocketmq.sending"

local take = native.take
local accepted, check_options, copy_of = sending.accepted, sending.check_options, sending.copy_of
local hand_over, has_more = sending.hand_over, sending.has_more
local read_callback = sending.read_callback

do
  local int64 = require("ffi").typeof "int64_t"
  local high_part = int64(2 ^ 32)
  native.set_int64(function(high, low) return int64(high) * high_part + int64(low) end)
end

---@class rocketmq.Producer
---@field group string the producer group
---@field namesrv string the name servers in use
---@field client_id string as brokers know it
---@field private handle userdata
---@field private sender rocketmq.Sender
---@field private async rocketmq.LaterSender
---@field private oneway rocketmq.LaterSender
---@field private batch rocketmq.BatchFunctions
---@field private hooks rocketmq.AddedHook[] in the order of their calls
local Producer = {}
Producer.__index = Producer

--- What is sent. A send never changes the table.
---@class rocketmq.Message
---@field topic string
---@field body string any bytes, at least one, at most `max_message_size`
---@field tags? string
---@field keys? string|string[] for finding the message; those of a list must not have spaces
---@field properties? table<string, string> the user's own; names that RocketMQ uses are refused
---@field flag? integer 32 bits that RocketMQ carries and does not look at
---@field wait? boolean answer when it is as safe as the broker would make it; default true
---@field delay_level? integer 1 to 18: delivered after 1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m
--- 20m 30m 1h 2h, unless the broker has another table. At most one of the four that say when.
---@field delay_ms? integer delivered so many milliseconds later; like the next two with brokers of
--- 5.0 or later
---@field delay_seconds? integer
---@field deliver_at? integer delivered at this time, in milliseconds since 1970; at once when it is
--- over
---@field sharding_key? string __SHARDINGKEY, for consumers: it decides nothing here
---@field buyer_id? string
---@field reply_to? rocketmq.ReplyTo makes it a reply; `rocketmq.reply` sets it
---@field lmq? string|string[] light queues that brokers put it into besides, with %LMQ% or without

---@class rocketmq.SendOptions
---@field timeout? number milliseconds for the whole send; default: the producer's `send_msg_timeout`
---@field attempt_timeout? number milliseconds for one attempt
---@field retries? integer how many attempts may follow the first; default: the producer's `retries`
---@field queue? rocketmq.Queue|{broker: string, id: integer} send to this queue and no other
---@field selector? rocketmq.Selector|string chooses the queue, in place of the producer's `selector`
---@field arg? any handed to the selector

--- Chooses a queue: it is called once the topic's queues are known, mostly from inside the send, and
--- gives one of them or its number. It is called again only for an attempt after one of which
--- nothing was written; otherwise a message with a selector goes to the chosen queue or nowhere. It
--- must not wait or yield; an error in it fails the one send. It may sort or cut the list of
--- queues, the next one is given a whole one. docs/selectors.md has more.
---@alias rocketmq.Selector fun(queues: rocketmq.Queue[], message: rocketmq.Message, arg: any,
---  ctx: rocketmq.SelectorContext): rocketmq.Queue|{broker: string, id: integer}|integer

--- Belongs to the selector only while it runs: the next one is handed the same table.
---@class rocketmq.SelectorContext
---@field attempt integer the attempt that is to be made, from 1
---@field last_broker? string the broker that failed the attempt before
---@field available fun(queue: rocketmq.Queue): boolean false when there is reason to avoid it now
---@field failures fun(queue: rocketmq.Queue): integer attempts at its broker that have failed so far
---@field best fun(queues: rocketmq.Queue[]): integer which of them the producer itself would choose

--- A queue of a topic on a broker. Two are equal when their parts are; as a text it reads
--- `Orders@broker-a#3`.
---@class rocketmq.Queue
---@field topic string
---@field broker string
---@field id integer counted from 0

--- Where and how a message is stored.
---@class rocketmq.Result
---@field status "SEND_OK"|"FLUSH_DISK_TIMEOUT"|"FLUSH_SLAVE_TIMEOUT"|"SLAVE_NOT_AVAILABLE"
---@field msg_id string the message's unique key, made here
---@field offset_msg_id string the broker's id: where it stored the message
---@field queue rocketmq.Queue
---@field queue_offset integer the message's number in its queue; from 2^53 on an int64_t cdata
---@field transaction_id? string
---@field region_id string
---@field trace_on boolean
---@field recall_handle? string
---@field attempts integer how many attempts were made
---@field elapsed_ms number from the call to the answer
---@field transaction_state? rocketmq.TransactionState what the broker was told
---@field fields fun(self: rocketmq.Result): table all of it as a plain table

-- What is said about a message that is none, at the caller of the method.
local function refuse_message(self, message, method)
  if getmetatable(self) ~= Producer then
    method = method or "send"
    error(("call producer:%s{...} with a colon, not producer.%s{...} with a dot"):format(method,
      method), 3)
  end
  error("the message must be a table, not " .. type(message), 3)
end

-- Raises at the caller of a method that sends. An argument that nobody looks at is mostly a callback; then
-- `hint` says what becomes of those.
local function refuse_surplus(method, takes, surplus, hint)
  error(naming.surplus("producer:" .. method, takes, surplus)
    .. (type(surplus) == "function" and "; " .. hint or ""), 3)
end

local CALLS_BACK = "send_async calls back, send waits"
local ONE_CALLBACK = "the one callback gets the result or the error"

local M = {}

--- Sends a message and waits, in this coroutine only, until a broker has stored it.
---@param message rocketmq.Message
---@param options? rocketmq.SendOptions
---@param surplus? nil there is none: what is given here is refused
---@return rocketmq.Result? result nil when it failed
---@return rocketmq.Error? err
function Producer:send(message, options, surplus)
  local send = type(message) == "table" and self.sender
  if not send then refuse_message(self, message) end
  if surplus ~= nil then
    refuse_surplus("send", { "message", "options" }, surplus, CALLS_BACK)
  end
  local tags, keys, properties = message.tags, message.keys, message.properties
  local flag, wait, more = message.flag, message.wait, has_more(message)
  if options ~= nil and type(options) ~= "table" then check_options(options) end
  -- What is not there need not be handed over: most messages are a topic and a body.
  if tags ~= nil or keys ~= nil or properties ~= nil or flag ~= nil or wait ~= nil or more then
    if options ~= nil then return take(hand_over(send, message, options)) end
    return take(send(message.body, message.topic, message, nil, nil, nil, nil, nil, nil, nil,
      tags, keys, properties, flag, wait, more))
  end
  if options ~= nil then
    return take(send(message.body, message.topic, message, options.selector, options.arg, options,
      options.timeout, options.attempt_timeout, options.retries, options.queue))
  end
  return take(send(message.body, message.topic, message))
end

-- What send_async and send_oneway have in common; called by a tail call, so that the caller's caller
-- is the script. It hands over the message's fields like send, and the callback behind them.
local function send_later(send, message, options, callback)
  local tags, keys, properties = message.tags, message.keys, message.properties
  local flag, wait, more = message.flag, message.wait, has_more(message)
  if options ~= nil and type(options) ~= "table" then check_options(options) end
  if tags ~= nil or keys ~= nil or properties ~= nil or flag ~= nil or wait ~= nil or more then
    if options ~= nil then return accepted(hand_over(send, message, options, callback)) end
    return accepted(send(message.body, message.topic, message, nil, nil, nil, nil, nil, nil, nil,
      tags, keys, properties, flag, wait, more, callback))
  end
  if options ~= nil then
    return accepted(send(message.body, message.topic, message, options.selector, options.arg,
      options, options.timeout, options.attempt_timeout, options.retries, options.queue,
      callback))
  end
  return accepted(send(message.body, message.topic, message, callback))
end

--- Starts to send a message and returns; what comes of it is told to the callback, later and exactly
--- once. The callback runs as a task: it may wait, and an error that it does not catch is an
--- uncaught one. Without a callback failures are counted (`stats().failed`) and logged, and the
--- process ends with status 3.
---
--- While `max_inflight` sends are under way it waits for room, and gives an error of kind "timeout"
--- when there was none in time. Where waiting is impossible (in a selector, say) that is an error of
--- kind "overload" at once. After an error the callback does not run.
---@param message rocketmq.Message
---@param options? rocketmq.SendOptions may be left out before a callback
---@param callback? fun(result: rocketmq.Result?, err: rocketmq.Error?)
---@param surplus? nil there is none: what is given here is refused
---@return true? ok
---@return rocketmq.Error? err why the message was not accepted
function Producer:send_async(message, options, callback, surplus)
  local async = type(message) == "table" and self.async
  if not async then refuse_message(self, message, "send_async") end
  if surplus ~= nil then
    refuse_surplus("send_async", { "message", "options", "callback" }, surplus, ONE_CALLBACK)
  end
  options, callback = read_callback(options, callback, "send_async")
  return send_later(async, message, options, callback)
end

--- Sends a message that no broker answers, and returns. It has done its work when the bytes are with
--- the kernel: a broker that refuses or loses the message is not noticed. What is noticed later (no
--- route, no connection) is counted (`stats().oneway_failed`) and logged, and the process ends with
--- status 3. Waits for room as send_async does.
---@param message rocketmq.Message
---@param options? rocketmq.SendOptions
---@param surplus? nil there is none: what is given here is refused
---@return true? ok
---@return rocketmq.Error? err why the message was not accepted
function Producer:send_oneway(message, options, surplus)
  local oneway = type(message) == "table" and self.oneway
  if not oneway then refuse_message(self, message, "send_oneway") end
  if surplus ~= nil then
    refuse_surplus("send_oneway", { "message", "options" }, surplus, CALLS_BACK)
  end
  return send_later(oneway, message, options)
end

--- Sends a message that somebody answers, and waits, in this coroutine only, for the reply. The
--- `timeout` is for both; default `send_msg_timeout`. A request that could not be sent ends at once; one
--- to which no reply comes ends with an error of kind "timeout" and code 10006.
---@param message rocketmq.Message without a delay
---@param options? rocketmq.SendOptions
---@return rocketmq.Reply? reply
---@return rocketmq.Error? err
function Producer:request(message, options)
  if type(message) ~= "table" or not self.requester then
    refuse_message(self, message, "request")
  end
  check_options(options)
  return take(hand_over(self.requester, message, options))
end

--- Starts a request and returns; the callback gets what `request` would have returned, later and
--- exactly once, as a task.
---@param message rocketmq.Message
---@param options? rocketmq.SendOptions may be left out before the callback
---@param callback fun(reply: rocketmq.Reply?, err: rocketmq.Error?)
---@return true? ok
---@return rocketmq.Error? err why the message was not accepted; the callback does not run then
function Producer:request_async(message, options, callback)
  local send = type(message) == "table" and self.async_requester
  if not send then refuse_message(self, message, "request_async") end
  options, callback = read_callback(options, callback, "request_async")
  if callback == nil then
    error("request_async: the callback must be a function, not nil; request waits instead", 2)
  end
  check_options(options)
  local shown = message
  if options and options.selector ~= nil then shown = copy_of(message) end
  return accepted(hand_over(send, shown, options, callback))
end

--- What a producer of `rocketmq.transaction_producer` does; this one raises.
---@return any
function Producer:send_in_transaction() -- luacheck: no self
  error("this producer sends no transactions; make one with rocketmq.transaction_producer", 2)
end

---@param options? { timeout: number? }
---@return number?
local function recall_timeout(options)
  if options == nil then return nil end
  if type(options) ~= "table" then
    error("recall: the options must be a table, not " .. type(options), 3)
  end
  for name in pairs(options) do
    if name ~= "timeout" then
      error(("recall: unknown option '%s'; there is timeout"):format(tostring(name)), 3)
    end
  end
  return options.timeout
end

--- Takes back a message with `delay_ms`, `delay_seconds` or `deliver_at` whose time has not come yet.
--- Messages with a `delay_level` cannot be recalled. Brokers do it from 5.3.3 on, when their
--- `recallMessageEnable` is true. Doing it again does no harm.
---@param topic string that the message was sent to
---@param recall_handle string the `recall_handle` of the result of its send
---@param options? { timeout: number? } milliseconds; default: the producer's `send_msg_timeout`
---@return string? msg_id of the message
---@return rocketmq.Error? err
function Producer:recall(topic, recall_handle, options)
  local timeout = recall_timeout(options)
  return take(native.recall(self.handle, topic, recall_handle, timeout))
end

--- The queues of a topic that can be sent to, sorted by broker and id.
---@param topic string
---@return rocketmq.Queue[]? queues
---@return rocketmq.Error? err
function Producer:queues(topic) return take(native.queues(self.handle, topic)) end

---@param count? integer how many sends were left
---@param err? rocketmq.Error
---@param what string
local function all_or_error(count, err, what)
  if not count then return nil, err end
  if count == 0 then return true end
  return nil, errors.new("timeout", what:format(count, count == 1 and "" or "s"))
end

--- Waits until all that was sent before has its broker's answer, and open transactions have ended. Replies
--- to requests are not waited for.
---@param timeout? number milliseconds; default: the producer's `flush_timeout`; 0 waits for nothing
---@return true? ok
---@return rocketmq.Error? err how many have none when the time is over; they go on
function Producer:flush(timeout)
  local count, err = take(native.flush(self.handle, timeout))
  return all_or_error(count, err, "%d send%s had no answer when the time to flush was over; "
    .. "give flush more time, or find out with err.tries why brokers are slow")
end

--- Ends the producer: takes nothing new, gives what is under way its time, requests that wait for their
--- reply among it, then takes leave of the brokers, for which it waits a second at most. Doing it
--- again does no harm.
---@param timeout? number milliseconds; default: the producer's `flush_timeout`; 0 waits for nothing
---@return true? ok
---@return rocketmq.Error? err how many sends failed because of it; each got its own error. A request
--- whose message a broker has, and whose reply has not come, ends with an error and is not counted.
function Producer:shutdown(timeout)
  local count, err = take(native.shutdown(self.handle, timeout))
  return all_or_error(count, err, "%d send%s had no answer when the time to shut down was over; "
    .. "give shutdown more time, or raise flush_timeout")
end

--- Replaces the list of name servers while the producer runs. A list that names the same servers
--- changes nothing. Routes that are known stay until they are next asked for. Raises when the list is
--- wrong.
---@param list string|string[] "host:port;host:port" or a list of "host:port"
---@return true? ok
---@return rocketmq.Error? err when the producer is shut down
function Producer:set_namesrv(list)
  local ok, detail = native.set_namesrv(self.handle, list)
  if ok == nil then error("set_namesrv: " .. detail, 2) end
  if not ok then return take(ok, detail) end
  self.namesrv = native.settings(self.handle).namesrv
  return true
end

--- What the producer has done so far and what is under way now.
---@return rocketmq.Stats
function Producer:stats() return native.stats(self.handle) end

---@class rocketmq.Stats
---@field sent integer sends that were started
---@field acknowledged integer
---@field failed integer
---@field retried integer attempts that followed a first one
---@field oneway_failed integer
---@field batches integer attempts that were batches
---@field gathered integer of those under way, how many wait to leave in a batch (`auto_batch`)
---@field inflight integer sends under way now
---@field waiting integer sends waiting for room now
---@field inflight_bytes integer
---@field hook_errors integer errors that hooks have raised, and messages that they left unfit to send
---@field trace_sent integer records of message trace that are stored
---@field trace_dropped integer records that are lost
---@field trace_pending integer records that are still to be stored
---@field requests integer that wait for a reply now
---@field replies integer that came in time
---@field late_replies integer that no request waited for any more
---@field transactions integer whose half message is stored and whose broker is not told yet, now
---@field checks integer questions of brokers about transactions that came
---@field checks_answered integer
---@field checks_dropped integer because too many waited; brokers ask again
---@field checks_ignored integer that could not be read or were of another group

--- What `latency_fault` has noted of a broker.
---@class rocketmq.Fault
---@field broker string
---@field latency_ms number of the last attempt
---@field available boolean false while it is avoided
---@field available_in_ms number for how long it will still be avoided; 0 when it is available
---@field reachable boolean false after a failure, until an attempt or the detector succeeds

--- How the brokers have done lately, sorted by name. Only those that were sent to are here, and none
--- with `latency_fault = false`.
---@return rocketmq.Fault[]
function Producer:faults()
  local faults = native.faults(self.handle)
  table.sort(faults, function(a, b) return a.broker < b.broker end)
  return faults
end

---@class rocketmq.AddedHook
---@field hook rocketmq.Hook as it was added
---@field record rocketmq.Hook as C calls it
---@field loaded boolean it came out of a file

local function set_hooks(self, hooks)
  local records = {}
  for i, added in ipairs(hooks) do records[i] = added.record end
  native.set_hooks(self.handle, records, self)
  self.hooks = hooks
end

local function add_copy(hooks, hook, loaded)
  hooks[#hooks + 1] = { hook = hook, record = require("rocketmq.hook").record(hook),
    loaded = loaded }
end

--- Adds a hook, behind those that there are: `check_forbidden`, `before` and `after` are called in
--- this order for every attempt that begins from now on. docs/hooks.md tells all about them.
---@param hook rocketmq.Hook
---@param ... any is not looked at: what makes a hook may give more than the hook
---@return rocketmq.Hook hook for remove_hook
function Producer:add_hook(hook, ...) -- luacheck: no unused args
  local why = require("rocketmq.hook").check(hook, "the hook")
  if why then error("add_hook: " .. why, 2) end
  local hooks = {}
  for i, added in ipairs(self.hooks) do
    if added.hook == hook then error("add_hook: this hook has been added already", 2) end
    hooks[i] = added
  end
  add_copy(hooks, hook, false)
  set_hooks(self, hooks)
  return hook
end

--- Removes a hook. An attempt whose `before` it has seen still gets its `after`.
---@param hook rocketmq.Hook
---@return boolean removed false when it was none of the producer's
function Producer:remove_hook(hook)
  local hooks = {}
  for _, added in ipairs(self.hooks) do
    if added.hook ~= hook then hooks[#hooks + 1] = added end
  end
  if #hooks == #self.hooks then return false end
  set_hooks(self, hooks)
  return true
end

--- From now on these are the hooks that came out of files, in front of those that were added. For
--- rocketmq.plugins.
---@param list rocketmq.Hook[]
function Producer:replace_loaded_hooks(list)
  local hooks = {}
  for _, hook in ipairs(list) do add_copy(hooks, hook, true) end
  for _, added in ipairs(self.hooks) do
    if not added.loaded then hooks[#hooks + 1] = added end
  end
  set_hooks(self, hooks)
end

--- All settings with their values, by RocketMQ's names in Lua's spelling.
---@return table<string, string|number|boolean>
function Producer:settings() return native.settings(self.handle) end

for _, part in ipairs { "batch", "admin" } do
  for name, method in pairs(require("rocketmq." .. part)) do Producer[name] = method end
end

-- The other methods find out by themselves.
naming.guard_methods("producer", Producer, { "add_hook", "flush", "remove_hook", "set_namesrv",
  "settings", "shutdown", "stats" })

-- send, send_async and send_oneway count their arguments themselves, which takes no time; what create_topic
-- says of them is more than this would.
for _, name in ipairs { "earliest_time", "faults", "max_offset", "min_offset", "query_message",
  "queues", "recall", "request", "request_async", "search_offset", "send_batch", "send_batch_async",
  "send_batch_oneway", "view_message" } do
  Producer[name] = naming.limit_arguments("producer:" .. name, Producer[name])
end

naming.guard_names(Producer, function(name)
  return require("rocketmq.from_java").method(Producer, name)
end)

---@return string
function Producer:__tostring()
  return ("producer '%s' (client id %s, name servers %s)"):format(self.group, self.client_id,
    self.namesrv)
end

-- Runs as a task, for each callback.
local function call_back(callback, ok, pending) return callback(take(ok, pending)) end

-- C reads settings that are texts, numbers and booleans; a selector may be a function. Whatever else
-- it is, who reads selectors says what is wrong with it.
local function without_function(settings)
  local selector = settings.selector
  if selector == nil or type(selector) == "string" then return settings end
  local copy = {}
  for name, value in pairs(settings) do copy[name] = value end
  copy.selector = nil
  return copy
end

--- Makes a producer for a constructor of this name, whose caller is `level` above this function.
---@param settings table<string, any>
---@param name string
---@param level integer
---@return rocketmq.Producer
function M.make(settings, name, level)
  if type(settings) ~= "table" then
    error(name .. " takes a table of settings, not " .. type(settings), level)
  end
  local selector = settings.selector
  local handle, why = native.new(without_function(settings))
  if not handle then
    why = why:find "^unknown setting" and require("rocketmq.from_java").setting(settings) or why
    error(name .. ": " .. why, level)
  end
  local ok, wrong = native.set_selector(handle, selector)
  if not ok then error(name .. ": " .. wrong, level) end
  -- Where speed does not matter every message is looked at for typing errors.
  if plugins.checking or package.loaded["rocketmq.mock"] then
    native.look_at_every_message(handle)
  end
  local async, oneway = native.later_senders(handle, call_back)
  local requester, async_requester = native.requesters(handle)
  local used = native.settings(handle)
  local producer = setmetatable({
    handle = handle,
    sender = native.sender(handle),
    async = async,
    oneway = oneway,
    requester = requester,
    async_requester = async_requester,
    batch = native.batch_functions(handle),
    hooks = {},
    group = used.group,
    namesrv = used.namesrv,
    client_id = native.client_id(handle),
  }, Producer)
  plugins.producers[producer] = true
  if plugins.hooks[1] then producer:replace_loaded_hooks(plugins.hooks) end
  return producer
end

--- Makes and starts a producer. `group` must be given; the name servers can come from the command
--- line or the environment. Java's names are taken too. Settings that are wrong raise.
---@param settings table<string, any>
---@return rocketmq.Producer
function M.new(settings)
  local producer = M.make(settings, "rocketmq.producer", 3)
  return producer
end

return M
