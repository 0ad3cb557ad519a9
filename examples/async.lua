-- Sends without waiting: what has come of each message is told to a function.
--
--     ./run examples/async.lua

local rocketmq = require "rocketmq"

local producer = rocketmq.producer {
  group = "async",
  retry_times_when_send_async_failed = 3, -- attempts that may follow the first one
}

-- The callback runs later, once, and as a task of its own: it may wait or send again.
local stored = 0
for number = 1, 100 do
  local ok, err = producer:send_async({
    topic = "Events",
    body = "event " .. number,
  }, function(result, why)
    if result then
      stored = stored + 1
    else
      print(("event %d: %s"):format(number, tostring(why)))
    end
  end)
  -- Not accepted: what is wrong with the message itself, or no room for it within its time.
  if not ok then print(err) end
end
print("nothing has come back yet: " .. stored)

-- Waits until all of them have been answered.
assert(producer:flush())
print(("stored %d of 100"):format(stored))

-- Whoever needs no answer gives no function: failures are logged then, and the process ends with
-- status 3 when there were any.
assert(producer:send_async { topic = "Events", body = "nobody asks" })

-- One after the other, without a task that waits: each callback sends the next. The script has
-- reached its end long before; the process goes on as long as a callback is to be called.
local function step(n)
  producer:send_async({ topic = "Events", body = "step " .. n }, function(result)
    print(("step %d: %s"):format(n, result and result.status or "failed"))
    if n < 3 then step(n + 1) end
  end)
end
step(1)
print "the script ends"
