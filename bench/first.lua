-- Prints the milliseconds from a moment before this process was started to its first
-- acknowledged message.
--
--   rmqlua bench/first.lua NAMESRV STARTED
--
-- STARTED is that moment in seconds since the epoch, with a fraction, as bash's $EPOCHREALTIME.
local rocketmq = require "rocketmq"
local uv = require "luv"

local namesrv, started = arg[1], tonumber(arg[2])
if not namesrv or not started then
  io.stderr:write("usage: rmqlua bench/first.lua NAMESRV STARTED\n")
  os.exit(2)
end

local producer = rocketmq.producer { group = "bench-producer", namesrv = namesrv }
local result, err = producer:send { topic = "Bench", body = ("x"):rep(128) }
local seconds, microseconds = uv.gettimeofday()
if not result then error(tostring(err), 0) end

print(("%.2f"):format((seconds - started) * 1e3 + microseconds / 1e3))
producer:shutdown()
