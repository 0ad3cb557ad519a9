-- Many tasks send at the same time over the same connections, each written as if it were alone.
--
--     ./run examples/coroutines.lua

local rocketmq = require "rocketmq"

local TASKS, EACH = 16, 25

local producer = rocketmq.producer { group = "coroutines" }

-- A task of its own: what it returns is what wait() returns.
local first = rocketmq.spawn(function()
  local result = assert(producer:send { topic = "Tasks", body = "the first task" })
  return result.status
end)
print("the first task got " .. first:wait())

-- All of these run at the same time; gather waits for the last one.
local stored = 0
local functions = {}
for task = 1, TASKS do
  functions[task] = function()
    for number = 1, EACH do
      local result, err = producer:send {
        topic = "Tasks",
        body = ("message %d of task %d"):format(number, task),
        keys = ("%d-%d"):format(task, number),
      }
      if result then stored = stored + 1 else print(err) end
    end
  end
end
assert(rocketmq.gather(functions))
print(("%d tasks stored %d messages"):format(TASKS, stored))

-- A send works inside a script's own coroutines too. The generator's yield goes to its for loop,
-- the send's to the loop of events.
local function statuses(n)
  return coroutine.wrap(function()
    for i = 1, n do
      coroutine.yield(assert(producer:send { topic = "Tasks", body = "generated " .. i }).status)
    end
  end)
end
for status in statuses(2) do print("the generator got " .. status) end

local stats = producer:stats()
print(("sent %d, acknowledged %d, failed %d"):format(stats.sent, stats.acknowledged, stats.failed))
