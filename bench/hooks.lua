-- What hooks cost. bench/run runs it.
--
--   rmqlua bench/hooks.lua NAMESRV TASKS COUNT ROUNDS
--
-- Sends COUNT messages with each of the hooks below, and without any, in turn, ROUNDS times, and prints
-- for each the processor time (user and system) that a message takes more than without: median, least and
-- greatest of the rounds, in microseconds. All of it in one process: a machine that is slower for a while
-- is slower for all of them.
local rocketmq = require "rocketmq"
local uv = require "luv"

local namesrv, tasks, count, rounds = arg[1], tonumber(arg[2]), tonumber(arg[3]), tonumber(arg[4])
if not namesrv or not tasks or not count or not rounds then
  io.stderr:write("usage: rmqlua bench/hooks.lua NAMESRV TASKS COUNT ROUNDS\n")
  os.exit(2)
end

local TOPIC = "Bench"
local body = ("x"):rep(128)
local producer = rocketmq.producer { group = "bench-producer", namesrv = namesrv }

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

local function send(messages)
  for _ = 1, messages do
    local result, err = producer:send { topic = TOPIC, body = body }
    if not result then error(tostring(err), 0) end
  end
end

local function cpu_us()
  local usage = assert(uv.getrusage())
  return (usage.utime.sec + usage.stime.sec) * 1e6 + usage.utime.usec + usage.stime.usec
end

local function measure(hook)
  if hook then producer:add_hook(hook) end
  local started, running = cpu_us(), {}
  for i = 1, tasks do
    local share = math.floor(count * i / tasks) - math.floor(count * (i - 1) / tasks)
    running[i] = rocketmq.spawn(function() send(share) end)
  end
  for i = 1, tasks do running[i]:wait() end
  local each = (cpu_us() - started) / count
  if hook then producer:remove_hook(hook) end
  return each
end

send(1)
for _, way in ipairs(ways) do
  way.more = {}
  measure(way[2])
end
for _ = 1, rounds do
  for _, way in ipairs(ways) do
    local plain = measure()
    way.more[#way.more + 1] = measure(way[2]) - plain
  end
end
for _, way in ipairs(ways) do
  table.sort(way.more)
  print(("%s: %.3f (%.3f-%.3f)"):format(way[1], way.more[math.ceil(rounds / 2)], way.more[1],
    way.more[rounds]))
end
if producer:stats().hook_errors > 0 then error "a hook has failed" end
producer:shutdown()
