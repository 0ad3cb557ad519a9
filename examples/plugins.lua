-- Sends with a selector that comes from a file, and does not know which one.
--
--     ./run --plugins examples/plugins examples/plugins.lua
--
-- What was found, without running anything: ./run --check --plugins examples/plugins

local rocketmq = require "rocketmq"

local producer = rocketmq.producer { group = "plugins" }

for _, region in ipairs { "north", "south", "north", "west" } do
  local result = assert(producer:send({ topic = "Parcels", body = "for the " .. region },
    { selector = "by_region", arg = region }))
  print(("%s: %s"):format(region, tostring(result.queue)))
end
producer:shutdown()
