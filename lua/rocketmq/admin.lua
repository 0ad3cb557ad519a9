--- What a producer can do besides sending: make topics, ask for the offsets of queues, and look for
--- messages that are stored. What these calls may say and what comes back is decided in C.

local native = require "rocketmq.native.producer"

local take = native.take

---@class rocketmq.Producer
local Admin = {}

--- Options of calls that have no others.
---@class rocketmq.CallOptions
---@field timeout? number milliseconds for the whole call; default 6000

--- A topic that is to be made, or changed. Without `cluster` and `brokers` it is made on all brokers
--- that have the producer's `create_topic_key`, which are those that make topics by themselves when
--- they are sent to.
---@class rocketmq.NewTopic
---@field topic string
---@field queues? integer read and write queues on each broker; default: `default_topic_queue_nums`
---@field read_queues? integer when they differ
---@field write_queues? integer when they differ
---@field perm? integer 2 write, 4 read, 6 both (default)
---@field order? boolean
---@field sys_flag? integer 1 a topic of a unit, 2 one that groups of units read, 3 both; default 0
---@field attributes? table<string, string> of RocketMQ 5, for example `["message.type"] = "FIFO"`
---@field cluster? string on all brokers of this cluster
---@field brokers? string[] on these brokers
---@field wait? boolean until the name server shows the topic on all of them; default true
---@field timeout? number milliseconds for all of it; default 6000

--- Makes a topic, or changes one that is there, on every master. When it returns true, the name server
--- in use shows the topic there with these queues, so what is sent next finds them.
---@param topic rocketmq.NewTopic
---@param ... nil there are none: what is given here is refused
---@return true? ok
---@return rocketmq.Error? err with one try for each broker that did not make it; the others did
function Admin:create_topic(topic, ...)
  if (...) ~= nil then
    error("create_topic takes one table; timeout and all else stands in it", 2)
  end
  return take(native.create_topic(self.handle, topic))
end

--- The offset that the next message of a queue will get.
---@param queue rocketmq.Queue|{topic: string, broker: string, id: integer}
---@param options? rocketmq.CallOptions
---@return integer? offset from 2^53 on an int64_t cdata
---@return rocketmq.Error? err
function Admin:max_offset(queue, options)
  return take(native.ask_offset(self.handle, "max", queue, nil, options))
end

--- The offset of the first message of a queue that is still there.
---@param queue rocketmq.Queue|{topic: string, broker: string, id: integer}
---@param options? rocketmq.CallOptions
---@return integer? offset from 2^53 on an int64_t cdata
---@return rocketmq.Error? err
function Admin:min_offset(queue, options)
  return take(native.ask_offset(self.handle, "min", queue, nil, options))
end

--- The offset of the first message of a queue that was stored at a time or later.
---@param queue rocketmq.Queue|{topic: string, broker: string, id: integer}
---@param timestamp integer milliseconds since 1970
---@param options? rocketmq.CallOptions
---@return integer? offset from 2^53 on an int64_t cdata
---@return rocketmq.Error? err
function Admin:search_offset(queue, timestamp, options)
  return take(native.ask_offset(self.handle, "search", queue, timestamp, options))
end

--- When the first message of a queue that is still there was stored: milliseconds since 1970, or -1 when
--- the queue is empty.
---@param queue rocketmq.Queue|{topic: string, broker: string, id: integer}
---@param options? rocketmq.CallOptions
---@return integer? timestamp
---@return rocketmq.Error? err
function Admin:earliest_time(queue, options)
  return take(native.ask_offset(self.handle, "earliest", queue, nil, options))
end

--- Reads one message by its id. The broker that an `offset_msg_id` names is asked for it. With a topic
--- the id may be a `msg_id` as well, which all brokers of the topic are asked for.
---@overload fun(self: rocketmq.Producer, offset_msg_id: string, options?: rocketmq.CallOptions):
---  rocketmq.StoredMessage?, rocketmq.Error?
---@param topic string
---@param id string
---@param options? rocketmq.CallOptions
---@return rocketmq.StoredMessage? message
---@return rocketmq.Error? err code 208 when all were asked and none has it
function Admin:view_message(topic, id, options)
  if id == nil or type(id) == "table" then
    topic, id, options = nil, topic, id
  end
  return take(native.view_message(self.handle, topic, id, options))
end

---@class rocketmq.QueryOptions
---@field max? integer so many messages at most, the newest; default 32
---@field begin_timestamp? integer stored then or later, milliseconds since 1970
---@field end_timestamp? integer stored then or earlier
---@field timeout? number milliseconds for the whole call; default 6000

--- The messages of a topic that have a key, the oldest first; an empty list when there are none.
--- Brokers index keys a moment after they have stored a message.
---@param topic string
---@param key string one of a message's keys
---@param options? rocketmq.QueryOptions
---@return rocketmq.StoredMessage[]? messages nil when no broker has answered
---@return rocketmq.Error? err also beside messages, when some brokers have not answered
function Admin:query_message(topic, key, options)
  return take(native.query_message(self.handle, topic, key, options))
end

return Admin
