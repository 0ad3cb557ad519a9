-- Takes a message back that waits for its time.
--
--     ./run examples/recall.lua

local rocketmq = require "rocketmq"

local producer = rocketmq.producer { group = "recall" }

local result = assert(producer:send {
  topic = "Cancellations", body = "cancel order 17 unless it is paid", delay_seconds = 30 * 60,
})
print(result.status)

-- The handle is a text: it can be kept with the order, and used by another process.
local handle = result.recall_handle

-- The order was paid in time.
local msg_id, err = producer:recall("Cancellations", handle)
print(msg_id == result.msg_id, err)

-- It says what it cannot do.
local _, why = producer:recall("Orders", handle)
print(why.message)
_, why = producer:recall("Cancellations", "no handle")
print(why.message)

producer:shutdown()
