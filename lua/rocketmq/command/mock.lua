--- `rmqlua mock`: a mock cluster, or a proxy in front of a real one, for other programs.
local native = require "rocketmq.native.task"
local new_mock = require "rocketmq.mock"
local options = require "rocketmq.command.options"
local read_table = require "rocketmq.command.table"
local task = require "rocketmq.task"
local wire = require "rocketmq.wire"

local USAGE = 2 -- exit status
local A_DAY = 86400000

---@type rocketmq.Option[]
local rows = {
  { name = "--listen", value = "HOST:PORT", help = {
    "where the (first) name server listens; default 127.0.0.1:9876. With 0.0.0.0",
    "other machines can come, and are told the address that they came to" } },
  { name = "--spec", value = "SPEC", help = {
    "the cluster's shape, as in --mock=SPEC: brokers=3,topics={Orders=8}" } },
  { name = "--proxy", value = "HOST:PORT", help = {
    "stand in front of this real name server (several: separated by ';') and",
    "of the brokers that it names: everything passes, and the rules apply" } },
  { name = "--rule", value = "RULE", many = true, help = {
    "what goes wrong: 'at=\"broker-a\", code=\"SEND_MESSAGE_V2\", probability=0.1,",
    "close=true'; may be repeated. docs/testing.md lists all that a rule may say" } },
  { name = "--seed", value = "NUMBER", help = { "makes what happens by chance repeatable" } },
  { name = "--print", help = { "print a line for each request, and for what was none" } },
  { name = "--help", help = { "print this help" } },
}

local HELP = [[
usage: rmqlua mock [options]
Runs a mock of RocketMQ for other programs until it is stopped or, with --proxy, stands between
them and a real one. Nothing is kept.

Options:
]]

-- What the options ask for: a description of the mock.
local function describe(given)
  local description = given.spec and read_table("--spec", given.spec) or {}
  description.listen = given.listen or description.listen or "127.0.0.1:9876"
  description.proxy = given.proxy or description.proxy
  if not description.proxy and not description.brokers then description.brokers = 2 end
  if description.keep == nil then description.keep = 0 end
  if given.seed then
    description.seed = tonumber(given.seed)
    if not description.seed then error("--seed: '" .. given.seed .. "' is no number", 0) end
  end
  return description
end

-- Calls, and raises what that raises without the place in this file, which tells an operator nothing.
local function call(fn, ...)
  local ok, result = pcall(fn, ...)
  if ok then return result end
  error((native.error_text(result):gsub("^rocketmq/command/mock%.lua:%d+: ", "")), 0)
end

local function start(given)
  local mock = call(new_mock, describe(given))
  for _, text in ipairs(given.rule or {}) do
    call(mock.rule, mock, read_table("--rule", text))
  end
  return mock
end

-- What a client says, with nothing in it that a terminal would act on.
local function printable(text)
  return (text:gsub("[%c\127-\255]", function(byte) return ("\\x%02x"):format(byte:byte()) end))
end

local function say(...)
  io.stderr:write("mock: ", string.format(...), "\n")
end

local function print_line(seconds, server, connection, peer, what)
  io.stdout:write(("%10.3f  %-12s  #%-4d %-22s %s\n"):format(seconds, server, connection, peer,
    what))
  io.stdout:flush()
end

local function print_requests(mock)
  function mock.world.noted(entry)
    print_line(entry.time / 1000, entry.server.name, entry.connection, entry.peer,
      ("%s (%d)%s"):format(wire.request_name(entry.code), entry.code,
        entry.topic and "  " .. printable(entry.topic) or ""))
  end
  function mock.world.refused(server, connection, why)
    print_line(mock.world.now() / 1000, server, connection.number, connection.peer,
      "no request: " .. why)
  end
end

local function introduce(mock, given)
  if not mock.is_proxy then
    local names = {}
    for name in pairs(mock.brokers) do names[#names + 1] = name end
    table.sort(names)
    return say("name server at %s, brokers %s; nothing is stored", mock.namesrv,
      table.concat(names, ", "))
  end
  say("name server at %s, in front of %s", mock.namesrv, given.proxy)
  function mock.world.appeared(proxy)
    say("%s at %s, in front of %s", proxy.name, proxy.addr, proxy.upstream)
  end
  function mock.world.trouble(name, why) say("%s cannot pass on: %s", name, why) end
end

---@param ... string the arguments
return function(...)
  local given, why = options.read("mock", rows, { ... })
  if not given then
    return native.refuse(why .. " (rmqlua mock --help lists the options)", USAGE)
  end
  if given.help then
    io.stdout:write(HELP, options.help(rows))
    return
  end
  local ok, mock = pcall(start, given)
  if not ok then return native.refuse(native.error_text(mock), USAGE) end
  introduce(mock, given)
  if given.print then print_requests(mock) end
  while true do task.sleep(A_DAY) end -- until a signal
end
