--- What the specs against real servers share: the servers' addresses, and programs whose lines are
--- read.

local bit = require "bit"
local ffi = require "ffi"
local uv = require "luv"
local wait = require "rocketmq.mock.wait"

local support = {}

---@param name string
---@return string
local function environment(name)
  return os.getenv(name) or error(name .. " is not set; run these specs by ./test real", 3)
end

---@class support.Server
---@field version string
---@field namesrv string host:port of its name server

--- The servers that were started for the specs.
---@return support.Server[]
function support.servers()
  return {
    { version = "5.4.0", namesrv = environment "RMQ_REAL_NAMESRV_54" },
    { version = "4.9.2", namesrv = environment "RMQ_REAL_NAMESRV_49" },
  }
end

local function quote(word)
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

--- Runs a shell command and gives every line of its stdout to a function. It blocks this process,
--- which has nothing else to do meanwhile. Raises when the command does not exit with 0.
---@param command string
---@param each fun(line: string)
local function run(command, each)
  local pipe = assert(io.popen("{ " .. command .. "; }; echo exit $?", "r"))
  local last
  for line in pipe:lines() do
    if last then each(last) end
    last = line
  end
  pipe:close()
  if last ~= "exit 0" then error(("%s: %s"):format(command, tostring(last)), 0) end
end

--- Runs a Lua script in the runtime that runs this spec.
---@param script string path
---@param arguments (string|number)[]
---@param each fun(line: string)
function support.rmqlua(script, arguments, each)
  local words = { quote(uv.exepath()), quote(script) }
  for i, argument in ipairs(arguments) do words[i + 2] = quote(tostring(argument)) end
  run(table.concat(words, " "), each)
end

--- Runs one of the Java helpers.
---@param helper string "Admin", "Drain", ...
---@param arguments (string|number)[]
---@param each? fun(line: string)
---@param properties? table<string, string|number> system properties
---@param input? string the path of a file that it reads from stdin
function support.java(helper, arguments, each, properties, input)
  local words = { environment "RMQ_REAL_JAVA" }
  for name, value in pairs(properties or {}) do
    words[#words + 1] = quote("-D" .. name .. "=" .. value)
  end
  words[#words + 1] = helper
  for _, argument in ipairs(arguments) do words[#words + 1] = quote(tostring(argument)) end
  if input then words[#words + 1] = "<" .. quote(input) end
  run(table.concat(words, " "), each or function() end)
end

--- Runs one of the Java helpers while this process goes on, and waits for its end in this task only.
--- Raises when it does not exit with 0.
---@param client "5.4.0"|"4.9.2" whose client it uses
---@param helper string "SendRandom"
---@param arguments (string|number)[]
---@return string[] lines of its stdout
function support.java_beside(client, helper, arguments)
  local words = { environment(client == "5.4.0" and "RMQ_REAL_JAVA" or "RMQ_REAL_JAVA_49"), helper }
  for _, argument in ipairs(arguments) do words[#words + 1] = quote(tostring(argument)) end
  local output, chunks, status = uv.new_pipe(false), {}, nil
  local handle
  handle = assert(uv.spawn("sh", {
    args = { "-c", table.concat(words, " ") }, stdio = { nil, output, 2 },
  }, function(code)
    status = code
    handle:close()
  end))
  output:read_start(function(_, chunk)
    if chunk then
      chunks[#chunks + 1] = chunk
    else
      output:close()
    end
  end)
  wait(function() return status and output:is_closing() end, math.huge)
  if status ~= 0 then error(("%s ended with %d"):format(helper, status), 2) end
  local lines = {}
  for line in table.concat(chunks):gmatch "[^\n]+" do lines[#lines + 1] = line end
  return lines
end

--- Kills a server, starts it again and waits until it is up, stops it with SIGSTOP, or lets it go on.
--- Waits in this task only.
--- "add" boots brokers more.
---@param verb "kill"|"start"|"freeze"|"thaw"|"add"
---@param server string version and name: "5.4.0/broker-b"
---@param ... string others, for "add"
function support.cluster(verb, server, ...)
  environment "RMQ_REAL_CLUSTER"
  local handle, status
  handle = assert(uv.spawn("spec/real/cluster.sh", {
    args = { verb, server, ... }, stdio = { nil, 1, 2 },
  }, function(code)
    status = code
    handle:close()
  end))
  -- It has a limit of its own.
  wait(function() return status end, math.huge)
  if status ~= 0 then error(("cluster.sh %s %s ended with %d"):format(verb, server, status), 2) end
end

local alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
local sextets = ffi.new("uint8_t[256]")
for i = 1, #alphabet do sextets[alphabet:byte(i)] = i - 1 end

--- Decodes base64 that is known to be well formed.
---@param encoded string
---@return string
function support.base64_decode(encoded)
  local bytes = ffi.cast("const uint8_t *", encoded)
  local out = ffi.new("uint8_t[?]", #encoded / 4 * 3 + 3)
  local at = 0
  for i = 0, #encoded - 4, 4 do
    local group = bit.bor(bit.lshift(sextets[bytes[i]], 18), bit.lshift(sextets[bytes[i + 1]], 12),
      bit.lshift(sextets[bytes[i + 2]], 6), sextets[bytes[i + 3]])
    out[at] = bit.rshift(group, 16)
    out[at + 1] = bit.band(bit.rshift(group, 8), 255)
    out[at + 2] = bit.band(group, 255)
    at = at + 3
  end
  local padding = encoded:match("=*$")
  return ffi.string(out, at - #padding)
end

return support
