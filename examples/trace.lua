-- Message trace: every send leaves a record in the trace topic, also one that fails.
--
--     ./run examples/trace.lua
--
-- A real broker has the topic RMQ_SYS_TRACE_TOPIC when its traceTopicEnable is true.

local rocketmq = require "rocketmq"

local producer = rocketmq.producer { group = "trace", trace = true }

local result = assert(producer:send { topic = "Traced", body = "hello", keys = "order-1" })
local _, err = producer:send({ topic = "Traced", body = "hello" },
  { queue = { broker = result.queue.broker, id = 1000 } })

-- Records are gathered for up to 5 s; a flush, like the end of the producer, sends them at once.
producer:flush()
local stats = producer:stats()
print(("%d records stored, %d lost"):format(stats.trace_sent, stats.trace_dropped))

-- A record is found by the id or a key of the message that it is about. Fields end with byte 1, records with
-- byte 2.
local function print_record(id)
  for _ = 1, 100 do
    local carriers = producer:query_message("RMQ_SYS_TRACE_TOPIC", id)
    for _, carrier in ipairs(carriers or {}) do
      for record in carrier.body:gmatch "[^\2]+" do
        if record:find(id, 1, true) then
          local fields = {}
          for field in record:gmatch "[^\1]+" do fields[#fields + 1] = field end
          print(("%s of topic %s by group %s: keys %s, success %s"):format(fields[1], fields[5],
            fields[4], fields[8], fields[14]))
          return
        end
      end
    end
    rocketmq.sleep(100)
  end
end

print_record(result.msg_id)
print_record(err.msg_id)
producer:shutdown()
