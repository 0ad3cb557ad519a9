-- Keeps messages in the machine room that is near, and says what happens when it has no queue.
--
--     ./run examples/machine_room.lua
--
-- Brokers are named room@broker. This script brings a mock of its own with such names; with a cluster of
-- yours leave it out, and name your name servers.

local rocketmq = require "rocketmq"

local mock = rocketmq.mock {
  brokers = { "hz@broker-a", "sh@broker-b" },
  topics = { Orders = 2 },
}
local producer = rocketmq.producer { group = "rooms", namesrv = mock.namesrv }

local function send(selector)
  local result, err = producer:send({ topic = "Orders", body = "..." }, { selector = selector })
  print(result and tostring(result.queue) or err.message:match "^[^\n]*")
end

-- The queues of Hangzhou in turn.
local near = rocketmq.selector.machine_room { rooms = { "hz" } }
for _ = 1, 3 do send(near) end

-- The rooms can be replaced while messages are sent.
near:set_rooms { "sh" }
send(near)

-- A room without a queue is an error that names the rooms and the brokers ...
near:set_rooms { "bj" }
send(near)

-- ... or all queues are good then, or another selector decides.
send(rocketmq.selector.machine_room { rooms = { "bj" }, otherwise = "all" })
local none = rocketmq.selector.machine_room { rooms = { "bj" }, otherwise = "none" }
send(rocketmq.selector.fallback(none, "best"))

producer:shutdown()
mock:close()
