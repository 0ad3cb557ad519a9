--- Questions about the offsets of queues.
local wire = require "rocketmq.wire"
local answer = require "rocketmq.mock.answer"

-- The offset that the next message of a queue would get; 0 for a queue that there is not, as real
-- brokers answer.
local function max_offset(broker, command)
  local offsets = broker.group.offsets[command.ext.topic] or {}
  local queue_id = tonumber(command.ext.queueId)
  if not queue_id then
    return answer.refuse(wire.response.SYSTEM_ERROR, "mock: this request names no queueId")
  end
  return answer.ok { offset = ("%d"):format(offsets[queue_id] or 0) }
end

---@type rocketmq.mock.Part
return { handlers = { [wire.request.GET_MAX_OFFSET] = max_offset } }
