-- Sends a message with all that one may have besides its topic and its body, and reads it back.
--
--     ./run examples/properties.lua

local rocketmq = require "rocketmq"

-- unit_mode marks all messages of this producer as sent in unit mode.
local producer = rocketmq.producer { group = "properties", unit_mode = true }

local result = assert(producer:send {
  topic = "Orders",
  body = "order 17 is paid",
  tags = "paid",                               -- one text: consumers filter by it
  keys = { "o-17", "customer-4" },             -- the message can be found by each of them
  properties = { source = "web", batch = "7" }, -- whatever names and values you like
  flag = 42,                                   -- 32 bits that RocketMQ carries and does not look at
  sharding_key = "customer-4",
  buyer_id = "b-4",
  wait = false,                                -- for neither the disk nor the broker's slave
})
print(result.status)

local message = assert(producer:view_message(result.offset_msg_id))
print("tags: " .. message.tags)
print("keys: " .. table.concat(message.keys, ", "))
print("flag: " .. message.flag)

-- Names of RocketMQ's own among the properties tell of the other fields.
for _, name in ipairs { "source", "batch", "__SHARDINGKEY", "BUYER_ID" } do
  print(("%s: %s"):format(name, message.properties[name]))
end

-- They are set by their fields only; the error says by which.
local _, err = producer:send { topic = "Orders", body = "x", properties = { TAGS = "paid" } }
print(err.message)

producer:shutdown()
