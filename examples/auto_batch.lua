-- Single sends that leave as batches, without a change in how they are made: several times faster when
-- many are under way, and a lone one waits for nothing.
--
--     ./run examples/auto_batch.lua

local rocketmq = require "rocketmq"

local producer = rocketmq.producer {
  group = "auto_batch",
  auto_batch = true,
  batch_max_bytes = 32 * 1024, -- a batch leaves when it is so long,
  batch_max_delay = 10, -- or when its first message has waited so many milliseconds for one under way
}

-- Each task waits for its own message, and gets its own result.
local tasks = {}
for number = 1, 50 do
  tasks[number] = rocketmq.spawn(function()
    for step = 1, 20 do
      local result, err = producer:send {
        topic = "Clicks",
        body = ("visitor %d, step %d"):format(number, step),
      }
      if not result then error(tostring(err)) end
    end
  end)
end
for _, task in ipairs(tasks) do task:wait() end

local stats = producer:stats()
print(("stored %d messages, failed %d"):format(stats.acknowledged, stats.failed))
print("in batches: " .. tostring(stats.batches > 0 and stats.batches < 200))

-- To one queue messages go in the order in which they were sent, whatever their tags.
local queue = assert(producer:queues "Clicks")[1]
local last = 0
local ordered = true
for number = 1, 100 do
  producer:send_async({
    topic = "Clicks",
    tags = number % 2 == 0 and "even" or "odd",
    body = "click " .. number,
  }, { queue = queue }, function(result)
    ordered = ordered and result ~= nil and result.queue_offset >= last
    last = result and result.queue_offset or last
  end)
end
producer:flush()
print("in order: " .. tostring(ordered))
