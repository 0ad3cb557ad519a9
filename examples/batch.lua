-- Sends many messages in one request: several times faster than one by one, and each message still has
-- its own id, its own result and its own error.
--
--     ./run examples/batch.lua

local rocketmq = require "rocketmq"

local producer = rocketmq.producer { group = "batch" }

-- All of one topic. They go to one queue, in this order.
local messages = {}
for number = 1, 5 do
  messages[number] = { topic = "Readings", body = "reading " .. number, keys = "r-" .. number }
end
local results, err = producer:send_batch(messages)
if err then error(err) end
for number, result in ipairs(results) do
  print(("reading %d: %s, offset %d"):format(number, result.status, result.queue_offset))
end

-- More than fits into one request is split. What fits into none fails alone: the others are stored.
messages = {
  { topic = "Readings", body = ("a"):rep(3 * 1024 * 1024) },
  { topic = "Readings", body = ("b"):rep(5 * 1024 * 1024) },
  { topic = "Readings", body = ("c"):rep(3 * 1024 * 1024) },
}
results, err = producer:send_batch(messages)
for number in ipairs(messages) do
  local result = results[number]
  print(("long %d: %s"):format(number, result and result.status or err.failed[number].message))
end

-- A message that is wrong in itself lets nothing be sent.
results, err = producer:send_batch { { topic = "Readings", body = "x" }, { topic = "Readings" } }
print(results, err.message)

-- One queue for a customer: the selector is asked once for the whole batch.
results = assert(producer:send_batch({
  { topic = "Readings", body = "first" },
  { topic = "Readings", body = "second" },
}, {
  selector = function(queues, _, customer) return queues[customer % #queues + 1] end,
  arg = 7,
}))
print(results[1].queue == results[2].queue)

-- Without waiting.
producer:send_batch_async({ { topic = "Readings", body = "later" } }, function(stored, why)
  print(stored[1] and stored[1].status or why)
end)
