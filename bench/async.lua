-- Sends messages of 128 bytes with send_async, as fast as their answers let it.
--
--   rmqlua bench/async.lua NAMESRV TOPIC IN_FLIGHT COUNT [auto_batch]
--
-- A quarter of COUNT goes first and is not counted, as for the Java client. Prints "per_second A cpu_us
-- B": acknowledged messages a second, and the processor time of the whole process for each, in
-- microseconds.
local rocketmq = require "rocketmq"
local uv = require "luv"

local namesrv, topic, in_flight, count = arg[1], arg[2], tonumber(arg[3]), tonumber(arg[4])
if not namesrv or not topic or not in_flight or not count then
  io.stderr:write("usage: rmqlua bench/async.lua NAMESRV TOPIC IN_FLIGHT COUNT [auto_batch]\n")
  os.exit(2)
end

local body = ("x"):rep(128)
local producer = rocketmq.producer {
  group = "bench-lua", namesrv = namesrv, timeout = 60000, max_inflight = in_flight,
  auto_batch = arg[5] == "auto_batch",
}

local function note(_, err)
  if err then error(tostring(err), 0) end
end

-- Waits for room when so many are under way.
local function send(messages)
  for _ = 1, messages do
    local ok, err = producer:send_async({ topic = topic, body = body }, note)
    if not ok then error(tostring(err), 0) end
  end
  assert(producer:flush(60000))
end

--- The processor time of this process so far, in seconds.
local function cpu()
  local usage = uv.getrusage()
  local function seconds(time) return time.sec + time.usec / 1e6 end
  return seconds(usage.utime) + seconds(usage.stime)
end

send(math.floor(count / 4))
local started, used = uv.hrtime(), cpu()
send(count)
local seconds = (uv.hrtime() - started) / 1e9
print(("per_second %.0f cpu_us %.3f"):format(count / seconds, (cpu() - used) * 1e6 / count))
producer:shutdown()
