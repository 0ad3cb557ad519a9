--- rmqlua spec/real/send_batches.lua NAMESRV TOPIC SEED COUNT HOW
--- Sends the messages 1 to COUNT of a seed in batches, and prints what the broker said of each as
--- send_many.lua does. HOW is "batch": send_batch with 1 to 200 messages at a time, of which some are split;
--- or "auto": 32 tasks that send them one by one with auto_batch.

local rocketmq = require "rocketmq"
local messages = require "messages"

local namesrv, topic = arg[1], arg[2]
local seed, count, how = tonumber(arg[3]), tonumber(arg[4]), arg[5]
-- The broker is a JVM that may share a busy machine with much else; this is no test of deadlines.
local producer = rocketmq.producer { group = "spec_real", namesrv = namesrv, timeout = 60000,
  auto_batch = how == "auto" }

local function make(index)
  local message = messages.make(seed, index)
  message.topic = topic
  return message
end

local function print_result(index, result)
  local queue = result.queue
  io.write(table.concat({ index, result.status, result.msg_id, result.offset_msg_id, queue.broker,
    queue.id, tostring(result.queue_offset) }, "\t"), "\n")
end

local function send_batches()
  local index, size = 1, 1
  while index <= count do
    local batch = {}
    for i = index, math.min(count, index + size - 1) do batch[#batch + 1] = make(i) end
    local results, err = producer:send_batch(batch)
    if err then error(("messages from %d: %s"):format(index, tostring(err))) end
    for i, result in ipairs(results) do print_result(index + i - 1, result) end
    index, size = index + #batch, size % 200 + 7
  end
end

local function send_each()
  local tasks = {}
  for first = 1, 32 do
    tasks[first] = rocketmq.spawn(function()
      for index = first, count, 32 do
        local result, err = producer:send(make(index))
        if not result then error(("message %d: %s"):format(index, tostring(err))) end
        print_result(index, result)
      end
    end)
  end
  for _, task in ipairs(tasks) do task:wait() end
  if producer:stats().batches == 0 then error "nothing left as a batch" end
end

if how == "auto" then send_each() else send_batches() end
producer:shutdown()
