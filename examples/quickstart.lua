-- Sends a few messages and shows what comes back.
--
--     ./run examples/quickstart.lua
--
-- No name server is named here: that of --namesrv is used, or of NAMESRV_ADDR, or else the mock.

local rocketmq = require "rocketmq"

local producer = rocketmq.producer { group = "quickstart" }

for i = 1, 3 do
  local result, err = producer:send {
    topic = "Greetings",
    body = "hello " .. i,
    tags = "demo",
    keys = { "greeting-" .. i, "quickstart" },
    properties = { language = "Lua", number = tostring(i) },
  }
  if result then
    print(("hello %d: %s, queue %s, offset %d"):format(
      i, result.status, tostring(result.queue), result.queue_offset))
  else
    print(("hello %d: %s"):format(i, tostring(err)))
  end
end

-- What can go wrong comes back as a second value, and says which field it is about.
local result, err = producer:send { topic = "no spaces please", body = "hello" }
if not result then print(err) end

producer:shutdown()
