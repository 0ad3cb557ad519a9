-- Sends without an answer: for what may be lost now and then, such as samples and logs.
--
--     ./run examples/oneway.lua

local rocketmq = require "rocketmq"

local producer = rocketmq.producer { group = "oneway", max_inflight = 1000 }

-- A loop like this needs no pause: while max_inflight messages wait to be taken by the kernel,
-- send_oneway waits, so memory stays as it is.
local begun = 0
for number = 1, 20000 do
  local ok, err = producer:send_oneway {
    topic = "Samples",
    body = ("sample %d"):format(number),
  }
  if ok then begun = begun + 1 else print(err) end
end

-- The end of a script flushes by itself; this is for looking at the numbers.
assert(producer:flush())
local stats = producer:stats()
print(("%d handed over, %d of them noticed to be lost"):format(begun, stats.oneway_failed))

-- A message that is wrong is refused at once here, too.
local ok, err = producer:send_oneway { topic = "Samples", body = "" }
if not ok then print(err.kind) end
