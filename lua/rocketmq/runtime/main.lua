--- The main task: what the command line asks for, in its order, then the script.
local native = require "rocketmq.native.task"

--- `--mock=brokers=3,topics={Orders=8}`: a table, with or without its braces.
local function read_spec(text)
  if not text:find "^%s*{" then text = "{" .. text .. "}" end
  local chunk, err = loadstring("return " .. text, "=--mock")
  if not chunk then error(err, 0) end
  return setfenv(chunk, {})()
end

--- Starts the mock. False when that failed, which has been said then.
local function start_mock(mock)
  local ok, address = pcall(function()
    return require "rocketmq.command.mock"(mock.spec and read_spec(mock.spec))
  end)
  if ok then
    native.serve(address, mock.forced)
  else
    native.refuse("--mock: " .. native.error_text(address))
  end
  return ok
end

--- Runs under a handler, because only that still sees the line of every frame.
local function run(fn, ...)
  local failure
  local ok = xpcall(fn, function(err)
    failure = { err = err, traceback = native.traceback(err) }
  end, ...)
  if not ok then
    failure = failure or { err = "no stack left", traceback = "no stack left" }
    native.uncaught(failure.err, failure.traceback)
  end
  return ok
end

---@param mock {spec: string?, forced: boolean}? what --mock says
---@param steps (string|function)[] a module to require, or a chunk
---@param script function?
---@param ... string the script's arguments
return function(mock, steps, script, ...)
  if mock and not start_mock(mock) then return end
  for _, step in ipairs(steps) do
    local ok
    if type(step) == "string" then ok = run(require, step) else ok = run(step) end
    if not ok then return end
  end
  if script then run(script, ...) end
end
