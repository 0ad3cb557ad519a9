--- Measures in one process what ways of sending cost more than the plain one: each way is followed by the
--- plain one, so that a machine that is slower for a while is slower for both.
local rocketmq = require "rocketmq"
local uv = require "luv"

local paired = {}

---@class bench.Way
---@field [1] string its name
---@field [2] any what `use` makes ready for it

---@class bench.Arguments
---@field namesrv string
---@field tasks integer
---@field count integer messages
---@field rounds integer

--- What the command line says: NAMESRV TASKS COUNT ROUNDS. Ends the process when it does not.
---@param script string for the usage
---@return bench.Arguments
function paired.arguments(script)
  local given = { namesrv = arg[1], tasks = tonumber(arg[2]), count = tonumber(arg[3]),
    rounds = tonumber(arg[4]) }
  if given.namesrv and given.tasks and given.count and given.rounds then return given end
  io.stderr:write("usage: rmqlua ", script, " NAMESRV TASKS COUNT ROUNDS\n")
  os.exit(2)
end

local function cpu_us()
  local usage = assert(uv.getrusage())
  return (usage.utime.sec + usage.stime.sec) * 1e6 + usage.utime.usec + usage.stime.usec
end

-- Microseconds of processor time (user and system) for each of `count` calls of send(i), in tasks.
local function measure(given, send)
  local started, running = cpu_us(), {}
  for task = 1, given.tasks do
    local first = math.floor(given.count * (task - 1) / given.tasks) + 1
    local last = math.floor(given.count * task / given.tasks)
    running[task] = rocketmq.spawn(function()
      for i = first, last do
        local result, err = send(i)
        if not result then error(tostring(err), 0) end
      end
    end)
  end
  for task = 1, given.tasks do running[task]:wait() end
  return (cpu_us() - started) / given.count
end

--- Prints for each way "NAME: A B C", the microseconds that a message takes more than a plain one:
--- median, least and greatest of the rounds.
---@param given bench.Arguments
---@param ways bench.Way[]
---@param plain fun(i: integer): any? result, any? err sends message number i
---@param use fun(way: any): (function?, function?) gives what sends in this way, and what to call
--- afterwards
function paired.run(given, ways, plain, use)
  local function measure_way(way)
    local send, undo = use(way[2])
    local took = measure(given, send or plain)
    if undo then undo() end
    return took
  end
  -- The route, the connection and the compiler's work belong to the start.
  measure(given, plain)
  for _, way in ipairs(ways) do
    way.more = {}
    measure_way(way)
  end
  for _ = 1, given.rounds do
    for _, way in ipairs(ways) do
      local took = measure_way(way)
      way.more[#way.more + 1] = took - measure(given, plain)
    end
  end
  for _, way in ipairs(ways) do
    local more = way.more
    table.sort(more)
    print(("%s: %.3f %.3f %.3f"):format(way[1], more[math.ceil(given.rounds / 2)], more[1],
      more[given.rounds]))
  end
end

return paired
