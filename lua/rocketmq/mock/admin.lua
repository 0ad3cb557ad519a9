--- What clients ask a broker besides sending: topics are made, offsets told, stored messages found.
local wire = require "rocketmq.wire"
local answer = require "rocketmq.mock.answer"
local perm = require "rocketmq.mock.perm"
local versions = require "rocketmq.mock.versions"

local request, response = wire.request, wire.response

local MASTER = 0
local QUERY_NOT_FOUND = 22
local QUERY_MAX = 32
local TOPIC_PATTERN = "^[%%|%w_-]+$"
local MAX_TOPIC = 127
local COMPRESSED = 1 -- in sys_flag

-- Topics of the broker itself, which nobody else makes.
local system_topics = { TBW102 = true, BenchmarkTest = true, RMQ_SYS_TRACE_TOPIC = true,
  SCHEDULE_TOPIC_XXXX = true, RMQ_SYS_TRANS_HALF_TOPIC = true, SELF_TEST_TOPIC = true,
  RMQ_SYS_TRANS_OP_HALF_TOPIC = true, TRANS_CHECK_MAX_TIME_TOPIC = true,
  OFFSET_MOVED_EVENT = true }
-- From 5.0.0 on this is one, too.
local CHECKPOINT_TOPIC = "CHECKPOINT_TOPIC"

local function is_old(broker) return broker.group.world.version < versions.V5_0_0 end

local function is_system_topic(broker, name)
  return system_topics[name] or name:match "^rmq_sys_" or name == broker.name
    or name == CHECKPOINT_TOPIC and not is_old(broker)
end

local function count(command, name)
  local value = tonumber(command.ext[name])
  return value and value >= 0 and value % 1 == 0 and value or nil
end

-- Makes a topic, or changes one.
local function create_topic(broker, command)
  local ext = command.ext
  local name = ext.topic or ""
  if broker.id ~= MASTER then
    return answer.refuse(response.SYSTEM_ERROR,
      "mock: topics are not changed on the slave %s", broker.server.name)
  end
  local world = broker.group.world
  if not name:match(TOPIC_PATTERN) or #name > MAX_TOPIC then
    return answer.invalid(world, "mock: '%s' is not a topic's name", name)
  end
  if is_system_topic(broker, name) then
    return answer.invalid(world, "mock: topic %s is one of the broker's own", name)
  end
  local read, write = count(command, "readQueueNums"), count(command, "writeQueueNums")
  local permits = count(command, "perm")
  if not read or not write or not permits or permits > perm.READ + perm.WRITE + perm.INHERIT then
    return answer.invalid(world, "mock: this request says not how topic %s shall be", name)
  end
  broker:set_topic(name, { read_queues = read, write_queues = write, perm = permits })
  broker.group.topics[name].sys_flag = count(command, "topicSysFlag")
  return answer.ok()
end

-- The messages of a queue that are still kept, the oldest first; or nil and the refusal. A queue that there
-- is not has none, as with real brokers.
local function queue_of(broker, command)
  local queue_id = tonumber(command.ext.queueId)
  if not queue_id then
    return nil, answer.refuse(response.SYSTEM_ERROR, "mock: this request names no queueId")
  end
  local topic = command.ext.topic
  if not topic then
    return nil, answer.refuse(response.SYSTEM_ERROR, "mock: this request names no topic")
  end
  local next_offset = (broker.group.offsets[topic] or {})[queue_id] or 0
  local there = {}
  for _, message in ipairs(broker.group.world.journal:messages(topic, broker.name, queue_id)) do
    if message.delivered then there[#there + 1] = message end
  end
  -- Those that waited came later than they were sent.
  table.sort(there, function(a, b) return a.queue_offset < b.queue_offset end)
  return there, nil, next_offset
end

local function offset_answer(offset)
  return answer.ok { offset = ("%d"):format(offset) }
end

local function max_offset(broker, command)
  local messages, refusal, next_offset = queue_of(broker, command)
  if not messages then return refusal end
  return offset_answer(next_offset)
end

local function min_offset(broker, command)
  local messages, refusal, next_offset = queue_of(broker, command)
  if not messages then return refusal end
  return offset_answer(messages[1] and messages[1].queue_offset or next_offset)
end

-- What older brokers give of two messages, between which the time may be.
local function nearest(before, after, time)
  if not before then return after.queue_offset end
  local is_after = time - before.store_timestamp > after.store_timestamp - time
  return (is_after and after or before).queue_offset
end

-- The first message at this time or later, or where the next one will be. Older brokers give the nearest
-- message, on whichever side it is.
local function search_offset(broker, command)
  local messages, refusal, next_offset = queue_of(broker, command)
  if not messages then return refusal end
  local time = tonumber(command.ext.timestamp)
  if not time then
    return answer.refuse(response.SYSTEM_ERROR, "mock: this request names no timestamp")
  end
  local before
  for _, message in ipairs(messages) do
    if message.store_timestamp >= time then
      return offset_answer(is_old(broker) and nearest(before, message, time)
        or message.queue_offset)
    end
    before = message
  end
  return offset_answer(is_old(broker) and before and before.queue_offset or next_offset)
end

local function earliest_time(broker, command)
  local messages, refusal = queue_of(broker, command)
  if not messages then return refusal end
  return answer.ok { timestamp = ("%d"):format(messages[1] and messages[1].store_timestamp or -1) }
end

-- The journal has bodies as they were before they were compressed; brokers give them as they came.
local function packed(message)
  if not message.compressed then return message.body, message.sys_flag end
  local body = wire.compress(message.body, message.compressed)
  if body then return body, message.sys_flag end
  return message.body, message.sys_flag - COMPRESSED
end

-- A message of the journal as brokers hand it out.
local function stored(broker, message)
  local body, sys_flag = packed(message)
  local host, port = message.born_host:match "^(.*):(%d+)$"
  local place = wire.decode_offset_id(message.offset_msg_id)
  return wire.encode_stored {
    topic = message.topic,
    body = body,
    properties = wire.encode_properties(message.properties),
    queue_id = message.queue_id,
    queue_offset = message.queue_offset,
    log_offset = place.offset,
    message_flag = message.flag,
    sys_flag = sys_flag,
    born_host = host:gsub("[%[%]]", ""),
    born_port = tonumber(port),
    born_ms = message.born_timestamp,
    store_host = broker.server.host,
    store_port = broker.port,
    stored_ms = message.store_timestamp,
    reconsume_times = message.reconsume_times,
  }
end

local function view_message(broker, command)
  local wanted = tonumber(command.ext.offset)
  for _, message in ipairs(broker.group.world.journal:messages(nil, broker.name)) do
    if wire.decode_offset_id(message.offset_msg_id).offset == wanted then
      return answer.ok(nil, stored(broker, message))
    end
  end
  return answer.refuse(response.SYSTEM_ERROR, "mock: there is no message at the offset %s",
    tostring(command.ext.offset))
end

-- Real brokers have one index for keys and unique keys.
local function has_key(message, key)
  if not key then return false end
  if message.msg_id == key then return true end
  for _, candidate in ipairs(message.keys) do
    if candidate == key then return true end
  end
  return false
end

local function query_message(broker, command)
  local ext = command.ext
  local first, last = tonumber(ext.beginTimestamp), tonumber(ext.endTimestamp)
  local max = ext._UNIQUE_KEY_QUERY == "true" and QUERY_MAX or tonumber(ext.maxNum)
  if not ext.topic or not first or not last or not max then
    return answer.refuse(response.SYSTEM_ERROR, "mock: this query is not complete")
  end
  local found = {}
  local messages = broker.group.world.journal:messages(ext.topic, broker.name)
  for number = #messages, 1, -1 do
    local message = messages[number]
    local in_time = message.store_timestamp >= first and message.store_timestamp <= last
    if in_time and #found < max and has_key(message, ext.key) then
      found[#found + 1] = stored(broker, message)
    end
  end
  if #found == 0 then
    return answer.refuse(QUERY_NOT_FOUND, "mock: no message has this key in this time")
  end
  local newest = ("%d"):format(messages[#messages].store_timestamp)
  return answer.ok({ indexLastUpdateTimestamp = newest, indexLastUpdatePhyoffset = "0" },
    table.concat(found))
end

---@type rocketmq.mock.Part
return {
  handlers = {
    [request.UPDATE_AND_CREATE_TOPIC] = create_topic,
    [request.GET_MAX_OFFSET] = max_offset,
    [request.GET_MIN_OFFSET] = min_offset,
    [request.SEARCH_OFFSET_BY_TIMESTAMP] = search_offset,
    [request.GET_EARLIEST_MSG_STORETIME] = earliest_time,
    [request.VIEW_MESSAGE_BY_ID] = view_message,
    [request.QUERY_MESSAGE] = query_message,
  },
}
