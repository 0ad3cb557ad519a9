-- What hooks cost. bench/run runs it.
--
--   rmqlua bench/hooks.lua NAMESRV TASKS COUNT ROUNDS
--
-- Sends COUNT messages with each of the hooks below, and without any, in turn, ROUNDS times; see paired.lua.
package.path = (arg[0]:match "^.*/" or "") .. "?.lua;" .. package.path
local paired = require "paired"
local rocketmq = require "rocketmq"

local given = paired.arguments "bench/hooks.lua"
local TOPIC = "Bench"
local body = ("x"):rep(128)
local producer = rocketmq.producer { group = "bench-producer", namesrv = given.namesrv }

local attempts, milliseconds = 0, 0

local ways = {
  { "before and after, one field each", {
    before = function(ctx) attempts = attempts + ctx.attempt end,
    after = function(ctx) milliseconds = milliseconds + ctx.elapsed_ms end,
  } },
  { "before sets a property, after reads the broker", {
    before = function(ctx) ctx.message.properties.trace = "t-1" end,
    after = function(ctx) if not ctx.broker then error "no broker" end end,
  } },
  { "check_forbidden, by topic", {
    check_forbidden = function(ctx) if ctx.topic ~= TOPIC then return "not this one" end end,
  } },
  { "metrics", (rocketmq.hook.metrics()) },
  { "removed again", nil },
}

local function plain() return producer:send { topic = TOPIC, body = body } end

paired.run(given, ways, plain, function(hook)
  if not hook then return plain end
  producer:add_hook(hook)
  return plain, function() producer:remove_hook(hook) end
end)
if producer:stats().hook_errors > 0 then error "a hook has failed" end
producer:shutdown()
