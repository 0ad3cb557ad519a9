-- Sends messages of 128 bytes from several tasks at once. bench/run measures it from outside.
--
--   rmqlua bench/send.lua NAMESRV TASKS COUNT [auto_batch]
--
-- Each task sends its share of COUNT, one message after the other, so TASKS messages are in
-- flight. Prints "per_second A peak_kib B": acknowledged messages a second, and the most memory
-- the process ever had.
local rocketmq = require "rocketmq"
local uv = require "luv"

local namesrv, tasks, count = arg[1], tonumber(arg[2]), tonumber(arg[3])
if not namesrv or not tasks or not count then
  io.stderr:write("usage: rmqlua bench/send.lua NAMESRV TASKS COUNT [auto_batch]\n")
  os.exit(2)
end

local TOPIC = "Bench"
local body = ("x"):rep(128)
local producer = rocketmq.producer {
  group = "bench-producer", namesrv = namesrv, auto_batch = arg[4] == "auto_batch",
}

local function send(messages)
  for _ = 1, messages do
    local result, err = producer:send { topic = TOPIC, body = body }
    if not result then error(tostring(err), 0) end
  end
end

--- The largest resident size this process has had, in KiB.
local function peak_kib()
  local status = assert(io.open("/proc/self/status"))
  local text = status:read("*a")
  status:close()
  return tonumber(text:match("VmHWM:%s*(%d+)"))
end

-- The route and the connection belong to the start, not to a message.
send(1)

local started = uv.hrtime()
local running = {}
for i = 1, tasks do
  -- Whole shares that add up to COUNT.
  local share = math.floor(count * i / tasks) - math.floor(count * (i - 1) / tasks)
  running[i] = rocketmq.spawn(function() send(share) end)
end
for i = 1, tasks do running[i]:wait() end
local seconds = (uv.hrtime() - started) / 1e9

print(("per_second %.0f peak_kib %d"):format(count / seconds, peak_kib()))
producer:shutdown()
