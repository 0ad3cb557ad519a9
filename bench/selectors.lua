-- What a selector costs. bench/run runs it.
--
--   rmqlua bench/selectors.lua NAMESRV TASKS COUNT ROUNDS
--
-- Sends COUNT messages of 128 bytes in each of the ways below, in turn, ROUNDS times; see paired.lua. Its
-- last line is "sent N".
package.path = (arg[0]:match "^.*/" or "") .. "?.lua;" .. package.path
local paired = require "paired"
local rocketmq = require "rocketmq"

local given = paired.arguments "bench/selectors.lua"
local TOPIC = "Bench"
local body = ("x"):rep(128)
local producer = rocketmq.producer { group = "bench-producer", namesrv = given.namesrv }
local hash = rocketmq.selector.hash

-- The lines that a script is likely to have.
local function three_lines(queues, _, customer)
  return queues[customer % #queues + 1]
end

-- Texts are made before, as they are in a script that has them from elsewhere.
local texts = {}
for i = 1, 1024 do texts[i] = "order-" .. i end

-- The same without options: the producer's own selector.
local choosing = rocketmq.producer {
  group = "bench-producer", namesrv = given.namesrv, instance_name = "choosing",
  selector = function(queues, message)
    return queues[#message.body % #queues + 1]
  end,
}

local function send(options) return producer:send({ topic = TOPIC, body = body }, options) end

local ways = {
  { "options without a selector", function(i)
    return send({ timeout = 3000, retries = i % 2 })
  end },
  { "hash of a string", function(i)
    return send({ selector = hash, arg = texts[i % 1024 + 1] })
  end },
  { "hash of a number", function(i)
    return send({ selector = hash, arg = i })
  end },
  { "three lines of Lua", function(i)
    return send({ selector = three_lines, arg = i })
  end },
  { "three lines of Lua, for all sends", function()
    return choosing:send({ topic = TOPIC, body = body })
  end },
}

local function plain() return send() end

paired.run(given, ways, plain, function(way) return way end)
print("sent " .. producer:stats().acknowledged + choosing:stats().acknowledged)
producer:shutdown()
choosing:shutdown()
