-- Sends message 1 to COUNT of a seed with message trace on, from 16 tasks, and prints for each what the trace
-- should say: index, msg_id, offset_msg_id, the broker's address, "true" or "false", elapsed milliseconds.
-- Every twentieth message goes to a queue that is not there; every fiftieth is a delayed one.
--
--   rmqlua trace_many.lua NAMESRV TOPIC SEED COUNT TRACE_TOPIC [auto_batch]
--
-- With auto_batch all have the tag "batched", since messages of different tags do not leave together.

local messages = require "spec.real.messages"
local rocketmq = require "rocketmq"
local wire = require "rocketmq.wire"

local topic, seed, count = arg[2], tonumber(arg[3]), tonumber(arg[4])
local producer = rocketmq.producer { group = "traced", namesrv = arg[1], trace = arg[5],
  send_msg_timeout = 20000, auto_batch = arg[6] == "auto_batch" }

local function store_address(offset_msg_id)
  local where = wire.decode_offset_id(offset_msg_id)
  return ("%s:%d"):format(where.host, where.port)
end

local function send(index)
  local message = messages.make(seed, index)
  message.topic = topic
  if arg[6] then message.tags = "batched" end
  local options
  if index % 20 == 0 then options = { queue = { broker = "broker-a", id = 99 } } end
  if index % 50 == 1 then message.delay_level = 1 end
  local result, err = producer:send(message, options)
  local line
  if result then
    line = { index, result.msg_id, result.offset_msg_id, store_address(result.offset_msg_id),
      tostring(result.status == "SEND_OK"), math.ceil(result.elapsed_ms) }
  else
    line = { index, err.msg_id, "null", err.addr, "false", math.ceil(err.elapsed_ms) }
  end
  print(table.concat(line, "\t"))
end

local tasks, next_index = {}, 0
for i = 1, 16 do
  tasks[i] = rocketmq.spawn(function()
    while next_index < count do
      next_index = next_index + 1
      send(next_index)
    end
  end)
end
for _, task in ipairs(tasks) do task:wait() end
assert(producer:flush())
local stats = producer:stats()
assert(stats.trace_dropped == 0 and stats.trace_pending == 0, "trace was lost")
if arg[6] and stats.batches == 0 then error "nothing left as a batch" end
print(("traced\t%d"):format(stats.trace_sent))
producer:shutdown()
