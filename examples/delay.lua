-- Sends messages that are delivered later.
--
--     ./run examples/delay.lua

local rocketmq = require "rocketmq"

local producer = rocketmq.producer { group = "delay" }

local function send(what, message)
  message.topic, message.body = "Reminders", what
  local result, err = producer:send(message)
  print(("%s: %s"):format(what, result and result.status or err.message))
  return result
end

-- Every broker knows levels: 1 to 18 stand for 1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h
-- 2h, unless it is configured otherwise.
send("in ten seconds, by level", { delay_level = 3 })

-- From RocketMQ 5.0 on any time up to three days will do.
send("in 1500 milliseconds", { delay_ms = 1500 })
send("in half an hour", { delay_seconds = 30 * 60 })
send("at the next full hour", { deliver_at = (math.floor(os.time() / 3600) + 1) * 3600 * 1000 })

-- Only those can be taken back, so only their results have a handle for that.
print(send("by level", { delay_level = 1 }).recall_handle == nil,
  send("by time", { delay_ms = 1500 }).recall_handle ~= nil)

-- What would overflow, or could mean two things, is not sent. Seconds are no milliseconds.
send("level 19", { delay_level = 19 })
send("twice", { delay_level = 1, delay_seconds = 1 })
send("in 1970", { deliver_at = os.time() + 60 })
-- What is too long for the broker, the broker says itself.
send("in a month", { delay_seconds = 30 * 24 * 3600 })

producer:shutdown()
