-- Sends from a timer. luv gives timers, sockets, files and processes on the same loop, and its
-- callbacks may wait like any other code.
--
--     ./run examples/timer.lua

local rocketmq = require "rocketmq"
local uv = require "luv"

local TICKS = 5

local producer = rocketmq.producer { group = "timer" }
local ticks = 0

local timer = uv.new_timer()
timer:start(0, 20, function()
  ticks = ticks + 1
  local tick = ticks
  if tick == TICKS then timer:close() end
  -- The next tick does not wait for this answer.
  local result, err = producer:send { topic = "Ticks", body = "tick " .. tick }
  print(("tick %d: %s"):format(tick, result and result.status or tostring(err)))
end)

-- The script has reached its end here. The process goes on as long as something can still happen:
-- the timer, and the sends under way.
print "started"
