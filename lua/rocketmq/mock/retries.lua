--- Messages to the topics of a group's retries: those that were tried too often go to its dead letters.
local wire = require "rocketmq.wire"
local perm = require "rocketmq.mock.perm"
local versions = require "rocketmq.mock.versions"

local RETRY_TOPIC = "^%%RETRY%%(.+)$"
local MAX_TIMES = 16 -- retryMaxTimes of a group, for a message that does not say
local NOT_SAID = -1
-- The first version that lets a message be tried as often as the limit says, and lets dead letters
-- be read.
local VERSION_OF_CHANGE = versions.V5_0_0

local function is_dead(world, header)
  local most = header.max_reconsume_times
  if most == NOT_SAID then most = MAX_TIMES end
  if world.version < VERSION_OF_CHANGE then return header.reconsume_times >= most end
  return header.reconsume_times > most
end

-- Real brokers take the delay away, too, and leave the request's queue in the answer.
local function bury(broker, sent)
  local group = broker.group
  local name = "%DLQ%" .. sent.topic:match(RETRY_TOPIC)
  local is_old = group.world.version < VERSION_OF_CHANGE
  group.topics[name] = group.topics[name]
    or { write = 1, read = 1, perm = is_old and perm.WRITE or perm.READ_WRITE }
  local properties = wire.decode_properties(sent.properties) or {}
  properties.DELAY = "-1"
  sent.asked_queue_id = sent.queue_id
  sent.topic, sent.queue_id, sent.properties = name, 0, wire.encode_properties(properties)
end

---@type rocketmq.mock.Part
return {
  check = function(broker, sent)
    if sent.topic:find(RETRY_TOPIC) and is_dead(broker.group.world, sent.header) then
      bury(broker, sent)
    end
  end,
}
