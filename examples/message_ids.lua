-- Takes the two ids of a message apart: the one made here, and the one that its broker gives.
--
--     ./run examples/message_ids.lua

local rocketmq = require "rocketmq"

local producer = rocketmq.producer { group = "ids" }
local before = os.time() * 1000
local result = assert(producer:send { topic = "Letters", body = "hello" })
producer:shutdown()

-- Made before the first attempt, and the same in every retry: who sent it (the low 16 bits of the process
-- id), and when.
local made = assert(rocketmq.message_id(result.msg_id))
print(("%s: by process %d at %s"):format(made.kind, made.pid, made.host))
print("just now: " .. tostring(made.time >= before and made.time <= (os.time() + 1) * 1000))

-- Where it is stored: the broker, and the byte of its log where the message begins.
local place = assert(rocketmq.message_id(result.offset_msg_id))
print(("%s: at %s:%d, byte %s"):format(place.kind, place.host, place.port, tostring(place.offset)))

-- The two look alike; a second argument says which one is meant.
print(assert(rocketmq.message_id(result.offset_msg_id, "offset")).kind)

-- What is no id gives the reason.
print(rocketmq.message_id "not an id")
