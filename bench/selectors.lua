-- What a selector costs. bench/run runs it.
--
--   rmqlua bench/selectors.lua NAMESRV TASKS COUNT ROUNDS
--
-- Sends COUNT messages of 128 bytes in each of the ways below, in turn, ROUNDS times. All of it is one
-- process, and each way is followed by the plain one, so that a machine that is slower for a while is slower
-- for both. Prints for each way "NAME: A B C", microseconds of processor time (user and system) that a
-- message takes more than a plain one, median, least and greatest of the rounds; then "sent N".
local rocketmq = require "rocketmq"
local uv = require "luv"

local namesrv, tasks, count, rounds = arg[1], tonumber(arg[2]), tonumber(arg[3]), tonumber(arg[4])
if not namesrv or not tasks or not count or not rounds then
  io.stderr:write("usage: rmqlua bench/selectors.lua NAMESRV TASKS COUNT ROUNDS\n")
  os.exit(2)
end

local TOPIC = "Bench"
local body = ("x"):rep(128)
local producer = rocketmq.producer { group = "bench-producer", namesrv = namesrv }
local hash = rocketmq.selector.hash

-- The lines that a script is likely to have.
local function three_lines(queues, _, customer)
  return queues[customer % #queues + 1]
end

-- Texts are made before, as they are in a script that has them from elsewhere.
local texts = {}
for i = 1, 1024 do texts[i] = "order-" .. i end

local function plain(message) return producer:send(message) end

local ways = {
  { "options without a selector", function(message, i)
    return producer:send(message, { timeout = 3000, retries = i % 2 })
  end },
  { "hash of a string", function(message, i)
    return producer:send(message, { selector = hash, arg = texts[i % 1024 + 1] })
  end },
  { "hash of a number", function(message, i)
    return producer:send(message, { selector = hash, arg = i })
  end },
  { "three lines of Lua", function(message, i)
    return producer:send(message, { selector = three_lines, arg = i })
  end },
}

local function cpu_us()
  local usage = assert(uv.getrusage())
  return (usage.utime.sec + usage.stime.sec) * 1e6 + usage.utime.usec + usage.stime.usec
end

local function measure(send)
  local started, running = cpu_us(), {}
  for task = 1, tasks do
    local first, last = math.floor(count * (task - 1) / tasks) + 1, math.floor(count * task / tasks)
    running[task] = rocketmq.spawn(function()
      for i = first, last do
        local result, err = send({ topic = TOPIC, body = body }, i)
        if not result then error(tostring(err), 0) end
      end
    end)
  end
  for task = 1, tasks do running[task]:wait() end
  return (cpu_us() - started) / count
end

-- The route, the connection and the compiler's work belong to the start.
measure(plain)
for _, way in ipairs(ways) do
  way.more = {}
  measure(way[2])
end
for _ = 1, rounds do
  for _, way in ipairs(ways) do
    local took = measure(way[2])
    way.more[#way.more + 1] = took - measure(plain)
  end
end
for _, way in ipairs(ways) do
  local more = way.more
  table.sort(more)
  print(("%s: %.3f %.3f %.3f"):format(way[1], more[math.ceil(rounds / 2)], more[1], more[rounds]))
end
print("sent " .. producer:stats().acknowledged)
producer:shutdown()
