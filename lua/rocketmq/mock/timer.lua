--- Messages that wait for their time: delay levels, timers, and recalls.
local uv = require "luv"
local wire = require "rocketmq.wire"
local answer = require "rocketmq.mock.answer"
local versions = require "rocketmq.mock.versions"

local response = wire.response
local refuse = answer.refuse

local LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
local MAX_DELAY = 3 * 24 * 3600 -- seconds, timerMaxDelaySec
-- The first versions that know timers and recalls; older ones look past the properties of a timer.
local VERSION_OF_TIMERS, VERSION_OF_RECALL = versions.V5_0_0, versions.V5_3_3
local UNITS = { s = 1000, m = 60000, h = 3600000, d = 86400000 }

-- Milliseconds since 1970.
local function wall()
  local seconds, microseconds = uv.gettimeofday()
  return seconds * 1000 + math.floor(microseconds / 1000)
end

-- The delay of each level in milliseconds.
local function read_levels(text)
  local levels = {}
  for number, unit in text:gmatch "(%d+)([smhd])" do
    levels[#levels + 1] = tonumber(number) * UNITS[unit]
  end
  return levels
end

-- For how long a message waits by its level, and in which queue. A level over the last is the last.
local function level_delay(options, level)
  local levels = read_levels(options.delay_levels or LEVELS)
  level = math.min(level, #levels)
  return { ms = levels[level], topic = "SCHEDULE_TOPIC_XXXX", queue_id = level - 1 }
end

-- The moment that a timer's properties name; nil when they name none, false when they are no numbers.
local function moment(properties, now)
  local seconds, ms = properties.TIMER_DELAY_SEC, properties.TIMER_DELAY_MS
  local at = properties.TIMER_DELIVER_MS
  local given = seconds or ms or at
  if not given then return nil end
  if not given:match "^-?%d+$" then return false end
  if seconds then return now + tonumber(seconds) * 1000 end
  return ms and now + tonumber(ms) or tonumber(at)
end

local function timer_delay(world, properties, now)
  local at = moment(properties, now)
  if at == nil or world.version < VERSION_OF_TIMERS then return nil end
  local most = (world.options.max_delay or MAX_DELAY) * 1000
  if at == false or at - now > most then
    return nil, refuse(response.MESSAGE_ILLEGAL, "mock: timer message illegal, the delay time "
      .. "should not be bigger than the max delay %dms; or if set del msg, the delay time should "
      .. "be bigger than the current time", most)
  end
  if at <= now then return nil end
  return { ms = at - now, topic = "rmq_sys_wheel_timer", queue_id = 0, recallable = true }
end

-- How a message waits; nil when it does not, with the refusal when it must not.
local function delay_of(world, properties, now)
  local level = tonumber(properties.DELAY)
  if level and level > 0 then return level_delay(world.options, level) end
  return timer_delay(world, properties, now)
end

-- The journal's entries of the messages that wait at a broker, by ids, as keys: a message that was
-- sent twice has two of them.
local function waiting(group)
  group.waiting = group.waiting or {}
  return group.waiting
end

local function deliver(broker, sent, id, note)
  local notes = waiting(broker.group)[id]
  notes[note] = nil
  if not next(notes) then waiting(broker.group)[id] = nil end
  if note.recalled then return end
  local queue_offset, offset_id = broker:place(sent)
  broker.group.world.journal:change(note, { queue_offset = queue_offset,
    offset_msg_id = offset_id, delivered = true, store_timestamp = wall() })
end

local function keep(broker, sent)
  local group, now = broker.group, wall()
  local world = group.world
  local properties = wire.decode_properties(sent.properties) or {}
  local delay, refusal = delay_of(world, properties, now)
  if not delay then return refusal end
  local due = now + delay.ms
  local offset, offset_id = broker:place { topic = delay.topic, queue_id = delay.queue_id,
    body = sent.body, properties = sent.properties }
  local note = broker:note(sent, { offset_msg_id = offset_id, deliver_at = due,
    delivered = false })
  local id = properties.UNIQ_KEY or offset_id
  waiting(group)[id] = waiting(group)[id] or {}
  waiting(group)[id][note] = true
  world.after(math.ceil(delay.ms * (world.options.timer_scale or 1)), function()
    deliver(broker, sent, id, note)
  end)
  local stored = broker:stored_answer(sent, offset, offset_id)
  if delay.recallable and world.version >= VERSION_OF_RECALL then
    stored.ext.recallHandle = wire.encode_recall_handle { topic = sent.topic,
      broker = group.name, deliver_at = due, msg_id = id }
  end
  return stored
end

-- Why a handle does not fit here; nil when it does.
local function check_handle(group, handle, topic)
  if not handle then
    return refuse(response.ILLEGAL_OPERATION, "mock: recall handle is invalid")
  elseif handle.topic ~= topic then
    return refuse(response.ILLEGAL_OPERATION, "mock: recall failed, topic not match")
  elseif handle.broker ~= group.name then
    return refuse(response.ILLEGAL_OPERATION, "mock: recall failed, broker service not available")
  end
end

local function recall(broker, command)
  local group, ext = broker.group, command.ext
  local world = group.world
  if world.version < VERSION_OF_RECALL then return answer.not_supported(command.code) end
  if world.options.recall == false then
    return refuse(response.NO_PERMISSION, "mock: recall failed, operation is forbidden")
  end
  local handle = wire.decode_recall_handle(ext.recallHandle or "")
  local refusal = check_handle(group, handle, ext.topic)
  if refusal then return refusal end
  local notes = waiting(group)[handle.msg_id]
  if not notes then
    return refuse(response.ILLEGAL_OPERATION, "mock: recall failed, timestamp invalid")
  end
  for note in pairs(notes) do world.journal:change(note, { recalled = true }) end
  return answer.ok { msgId = handle.msg_id }
end

---@type rocketmq.mock.Part
return {
  handlers = { [wire.request.RECALL_MESSAGE] = recall },
  keep = keep,
  fields = {
    { name = "timer_scale", type = "fraction",
      help = "how long delayed messages really wait, as a part of what they ask for: 0.001 makes a "
        .. "second of 1000 s, 0 delivers in a moment; default 1" },
    { name = "delay_levels", type = "times",
      help = "what the delay levels mean, as messageDelayLevel of a broker; default '" .. LEVELS
        .. "'" },
    { name = "max_delay", type = "count",
      help = "the longest delay of a timer in seconds, as timerMaxDelaySec of a broker; default "
        .. MAX_DELAY },
    { name = "recall", type = "boolean",
      help = "timer messages can be recalled, as with recallMessageEnable of a broker; default "
        .. "true" },
  },
}
