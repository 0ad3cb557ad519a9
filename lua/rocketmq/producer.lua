--- Producers: what sends messages.
---
--- This module reads the fields of a message and hands them to C by position, which is several
--- times faster than reading a table from C. Everything else about a send is decided there.

local errors = require "rocketmq.error"
local native = require "rocketmq.native.producer"

local take = native.take

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
local Producer = {}
Producer.__index = Producer

--- What is sent. A send never changes the table.
---@class rocketmq.Message
---@field topic string
---@field body string any bytes, at least one, at most `max_message_size`
---@field tags? string
---@field keys? string|string[] for finding the message; those of a list must not have spaces
---@field properties? table<string, string>
---@field flag? integer 32 bits that RocketMQ carries and does not look at
---@field wait? boolean answer when it is as safe as the broker would make it; default true

---@class rocketmq.SendOptions
---@field timeout? number milliseconds for the whole send; default: the producer's `send_msg_timeout`
---@field attempt_timeout? number milliseconds for one attempt
---@field retries? integer how many attempts may follow the first; default: the producer's `retries`
---@field queue? rocketmq.Queue|{broker: string, id: integer} send to this queue and no other

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
---@field fields fun(self: rocketmq.Result): table all of it as a plain table

-- What is said about a message that is none, at the caller of the method.
local function refuse_message(self, message)
  if getmetatable(self) ~= Producer then
    error("call producer:send{...} with a colon, not producer.send{...} with a dot", 3)
  end
  error("the message must be a table, not " .. type(message), 3)
end

--- Sends a message and waits, in this coroutine only, until a broker has stored it.
---@param message rocketmq.Message
---@param options? rocketmq.SendOptions
---@return rocketmq.Result? result nil when it failed
---@return rocketmq.Error? err
function Producer:send(message, options)
  local send = self.sender
  if type(message) ~= "table" or not send then refuse_message(self, message) end
  local tags, keys, properties = message.tags, message.keys, message.properties
  local flag, wait = message.flag, message.wait
  if options ~= nil then
    if type(options) ~= "table" then
      error("the send's options must be a table, not " .. type(options), 2)
    end
    return take(send(message.body, message.topic, message, tags, keys, properties, flag, wait,
      options, options.timeout, options.attempt_timeout, options.retries, options.queue))
  end
  -- What is not there need not be handed over: most messages are a topic and a body.
  if tags == nil and keys == nil and properties == nil and flag == nil and wait == nil then
    return take(send(message.body, message.topic, message))
  end
  return take(send(message.body, message.topic, message, tags, keys, properties, flag, wait))
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

--- Waits until all that was sent before has its answer.
---@param timeout? number milliseconds; default: the producer's `flush_timeout`
---@return true? ok
---@return rocketmq.Error? err how many have none when the time is over; they go on
function Producer:flush(timeout)
  local count, err = take(native.flush(self.handle, timeout))
  return all_or_error(count, err, "%d send%s had no answer when the time to flush was over; "
    .. "give flush more time, or find out with err.tries why brokers are slow")
end

--- Ends the producer: takes nothing new, gives what is under way its time, takes leave of the
--- brokers. Doing it again does no harm.
---@param timeout? number milliseconds; default: the producer's `flush_timeout`
---@return true? ok
---@return rocketmq.Error? err how many sends failed because of it; each got its own error
function Producer:shutdown(timeout)
  local count, err = take(native.shutdown(self.handle, timeout))
  return all_or_error(count, err, "%d send%s had no answer when the time to shut down was over; "
    .. "give shutdown more time, or raise flush_timeout")
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
---@field inflight integer sends under way now
---@field waiting integer sends waiting for room now
---@field inflight_bytes integer

--- All settings with their values, by RocketMQ's names in Lua's spelling.
---@return table<string, string|number|boolean>
function Producer:settings() return native.settings(self.handle) end

---@return string
function Producer:__tostring()
  return ("producer '%s' (client id %s, name servers %s)"):format(self.group, self.client_id,
    self.namesrv)
end

local M = {}

--- Makes and starts a producer. `group` must be given; the name servers can come from the command
--- line or the environment. Java's names are taken too. Settings that are wrong raise.
---@param settings table<string, any>
---@return rocketmq.Producer
function M.new(settings)
  if type(settings) ~= "table" then
    error("rocketmq.producer takes a table of settings, not " .. type(settings), 2)
  end
  local handle, why = native.new(settings)
  if not handle then error("rocketmq.producer: " .. why, 2) end
  -- Where speed does not matter every message is looked at for typing errors.
  if package.loaded["rocketmq.mock"] then native.look_at_every_message(handle) end
  local used = native.settings(handle)
  return setmetatable({
    handle = handle,
    sender = native.sender(handle),
    group = used.group,
    namesrv = used.namesrv,
    client_id = native.client_id(handle),
  }, Producer)
end

return M
