--- Sends: what a broker refuses, and where it puts what it accepts.
local wire = require "rocketmq.wire"
local answer = require "rocketmq.mock.answer"
local perm = require "rocketmq.mock.perm"
local versions = require "rocketmq.mock.versions"

local request, response = wire.request, wire.response
local refuse = answer.refuse

local MASTER = 0
local MAX_PROPERTIES = 32767 -- a stored message has an int16 for their length
local MAX_TOPIC = 127
local TOPIC_PATTERN = "^[%%|%w_-]+$"
local REGION = "DefaultRegion"

-- Topics that a broker fills itself. Older ones refuse messages for one of them only.
local SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
local unsendable = { [SCHEDULE_TOPIC] = true, RMQ_SYS_TRANS_HALF_TOPIC = true,
  RMQ_SYS_TRANS_OP_HALF_TOPIC = true, TRANS_CHECK_MAX_TIME_TOPIC = true, SELF_TEST_TOPIC = true,
  OFFSET_MOVED_EVENT = true }

-- The topic of a send, made from the default topic when it is new; or nil and the refusal.
local function topic_for(group, header)
  local topic = group.topics[header.topic]
  if topic then return topic end
  local model = group.topics[header.default_topic]
  if not model or not perm.has(model.perm, perm.INHERIT) then
    return nil, refuse(response.TOPIC_NOT_EXIST,
      "mock: broker %s has no topic %s and does not make one from %s", group.name, header.topic,
      header.default_topic)
  end
  local queues = math.max(0, math.min(header.default_topic_queue_nums, model.write))
  topic = { write = queues, read = queues, perm = model.perm - perm.INHERIT }
  group.topics[header.topic] = topic
  return topic
end

-- Why a broker takes nothing for this topic, whatever it is; nil when it may. A real one refuses
-- only ordered topics while it is read-only, and no topic for a permission of its own: clients
-- keep away from both because of their routes.
local function check_topic(broker, name)
  local group = broker.group
  if broker.id ~= MASTER then
    return refuse(response.SERVICE_NOT_AVAILABLE, "mock: broker %s#%d is a slave", group.name,
      broker.id)
  end
  if not perm.has(group.perm, perm.WRITE) and group.world.order_confs[name] then
    return refuse(response.NO_PERMISSION,
      "mock: sending to the ordered topic %s at broker %s, which is read-only, is forbidden", name,
      group.name)
  end
  if not name:match(TOPIC_PATTERN) or #name > MAX_TOPIC then
    return answer.invalid(group.world, "mock: '%s' is not a topic's name", name)
  end
  if unsendable[name] and (group.world.version >= versions.V5_0_0 or name == SCHEDULE_TOPIC) then
    return refuse(response.NO_PERMISSION, "mock: sending to %s, a topic of the broker's own, is "
      .. "forbidden", name)
  end
end

-- Why a message cannot be stored; nil when it can.
local function check_content(group, body, properties)
  if #properties > MAX_PROPERTIES then
    return refuse(response.MESSAGE_ILLEGAL, "mock: the properties have %d bytes, the limit is %d",
      #properties, MAX_PROPERTIES)
  end
  if #body == 0 and group.world.version >= versions.V5_0_0 then
    return refuse(response.SYSTEM_ERROR, "mock: the message has no body")
  end
  local limit = group.world.max_message_size
  if #body > limit then
    return refuse(response.MESSAGE_ILLEGAL, "mock: the body has %d bytes, the limit is %d", #body,
      limit)
  end
end

-- The queue of a send and its id; or nil and the refusal.
local function queue_for(broker, header)
  local group = broker.group
  local refusal = check_topic(broker, header.topic)
  if refusal then return nil, refusal end
  local topic
  topic, refusal = topic_for(group, header)
  if not topic then return nil, refusal end
  local queues = math.max(topic.write, topic.read)
  if header.queue_id >= queues then
    return nil, answer.invalid(group.world,
      "mock: topic %s at broker %s has %d queues, none with id %d", header.topic, group.name,
      queues, header.queue_id)
  end
  if header.queue_id >= 0 then return header.queue_id end
  return group.world.random(math.max(1, topic.write))
end

-- Only then is it worth keeping them beside the request.
local function changed_properties(sent)
  return sent.header and sent.properties ~= sent.header.properties and sent.properties or nil
end

-- What a stored message takes besides body, topic and properties.
local STORED_OVERHEAD = 91

---@class rocketmq.mock.Broker
local methods = {}

---Gives a message its place.
---@param sent table `topic`, `queue_id`, `body`, `properties`
---@return integer queue_offset
---@return string offset_msg_id
function methods:place(sent)
  local group = self.group
  local offsets = group.offsets[sent.topic]
  if not offsets then
    offsets = {}
    group.offsets[sent.topic] = offsets
  end
  local queue_offset = offsets[sent.queue_id] or 0
  offsets[sent.queue_id] = queue_offset + 1
  local log_offset = group.log_offset
  group.log_offset = log_offset + STORED_OVERHEAD + #sent.body + #sent.topic + #sent.properties
  local offset_id = wire.encode_offset_id { host = self.server.ip, port = self.port,
    offset = log_offset }
  return queue_offset, offset_id
end

---Notes a message in the journal.
---@param sent table `topic`, `queue_id`, `properties`, `entry`, as a part's `keep` got them, and
--- `member`, its number in a batch, or nil
---@param what table what else the journal says of it: `queue_offset`, `offset_msg_id` ...
---@return table entry of the journal
function methods:note(sent, what)
  what.request, what.topic, what.broker = sent.entry, sent.topic, self.name
  what.queue_id, what.member, what.properties = sent.queue_id, sent.member, changed_properties(sent)
  self.group.world.journal:message(what)
  return what
end

---Stores a message: gives it its place, and notes it.
---@param sent table as for `place` and `note`
---@return integer queue_offset
---@return string offset_msg_id
function methods:store(sent)
  local queue_offset, offset_id = self:place(sent)
  self:note(sent, { queue_offset = queue_offset, offset_msg_id = offset_id })
  return queue_offset, offset_id
end

local function unique_key(properties)
  return properties:match("UNIQ_KEY\1([^\2]+)")
end

---The answer to a send that is stored.
---@param sent table its message, `queue_id`, `asked_queue_id` when that is another one, and `properties`
---@param queue_offset integer
---@param offset_id string
---@return rocketmq.mock.Answer
function methods:stored_answer(sent, queue_offset, offset_id)
  local is_old = self.group.world.version < versions.V5_0_0
  return answer.ok {
    msgId = offset_id,
    queueId = ("%d"):format(sent.asked_queue_id or sent.queue_id),
    queueOffset = ("%d"):format(queue_offset),
    transactionId = not is_old and unique_key(sent.properties) or nil,
    MSG_REGION = REGION,
    TRACE_ON = "true",
  }
end

local function send(broker, command, connection, entry)
  local header, why = wire.decode_send_header(command)
  if not header then
    return refuse(response.SYSTEM_ERROR, "mock: this request cannot be read: %s", tostring(why))
  end
  local queue_id, refusal = queue_for(broker, header)
  if not queue_id then return refusal end
  local sent = { topic = header.topic, queue_id = queue_id, header = header, body = command.body,
    properties = header.properties, entry = entry, connection = connection }
  local parts = broker.group.world.parts
  local decided = check_content(broker.group, sent.body, sent.properties)
    or parts.ask("check", broker, sent) or parts.ask("keep", broker, sent)
  return decided or broker:stored_answer(sent, broker:store(sent))
end

local function send_batch(broker, command, _, entry)
  local header, why = wire.decode_send_header(command)
  local members
  if header then members, why = wire.decode_batch(command.body) end
  if not members or #members == 0 then
    return refuse(response.SYSTEM_ERROR, "mock: this batch cannot be read: %s", tostring(why))
  end
  local queue_id, refusal = queue_for(broker, header)
  if not queue_id then return refusal end
  refusal = check_content(broker.group, command.body, header.properties)
  if refusal then return refusal end
  local first, ids = nil, {}
  for number, member in ipairs(members) do
    local queue_offset
    queue_offset, ids[number] = broker:store { topic = header.topic, queue_id = queue_id,
      body = member.body, properties = member.properties, member = number, entry = entry }
    first = first or queue_offset
  end
  local whole = { queue_id = queue_id, properties = header.properties }
  return broker:stored_answer(whole, first, table.concat(ids, ","))
end

---@type rocketmq.mock.Part
return {
  handlers = {
    [request.SEND_MESSAGE] = send,
    [request.SEND_MESSAGE_V2] = send,
    [request.SEND_BATCH_MESSAGE] = send_batch,
  },
  broker = methods,
}
