--- rmqlua spec/real/send_many.lua NAMESRV TOPIC SEED COUNT TASKS
--- Sends the messages 1 to COUNT of a seed from so many tasks, and prints what the broker said of
--- each, in columns divided by tabs: index, status, unique key, offset id, broker, queue, queue
--- offset.

local rocketmq = require "rocketmq"
local messages = require "messages"

local namesrv, topic = arg[1], arg[2]
local seed, count, tasks = tonumber(arg[3]), tonumber(arg[4]), tonumber(arg[5])
-- The broker is a JVM that may share a busy machine with much else; this is no test of deadlines.
local producer = rocketmq.producer { group = "spec_real", namesrv = namesrv, timeout = 60000 }

local function send(index)
  local message = messages.make(seed, index)
  message.topic = topic
  local result, err = producer:send(message)
  if not result then error(("message %d: %s"):format(index, tostring(err))) end
  local queue = result.queue
  io.write(table.concat({ index, result.status, result.msg_id, result.offset_msg_id, queue.broker,
    queue.id, tostring(result.queue_offset) }, "\t"), "\n")
end

local started = {}
for first = 1, tasks do
  started[first] = rocketmq.spawn(function()
    for index = first, count, tasks do send(index) end
  end)
end
for _, task in ipairs(started) do task:wait() end
producer:shutdown()
