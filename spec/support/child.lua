--- Another rmqlua for a spec: the same program in a process of its own.
---
---     local child = require "spec.support.child"
---     local ended = child.run { "--mock=default", "examples/quickstart.lua" }
---     assert.equal(0, ended.code)
---     print(ended.stdout)
local uv = require "luv"
local wait = require "rocketmq.mock.wait"

local child = {}

---@class spec.Ended
---@field code integer exit status
---@field signal integer the signal that ended it, or 0
---@field stdout string
---@field stderr string

---@class spec.Child
---@field pid integer
---@field stdout string what came so far
---@field stderr string
local Child = {}
Child.__index = Child

local function collect(self, name, pipe)
  self[name] = ""
  pipe:read_start(function(err, chunk)
    assert(not err, err)
    if chunk then
      self[name] = self[name] .. chunk
    else
      self.open = self.open - 1
      pipe:close()
    end
  end)
end

---Starts one. `given` is the list of arguments, with `env` (texts "NAME=value", over nothing but
---PATH and HOME), `cwd`, `stdin` (a text) beside.
---@return spec.Child
function child.start(given)
  local self = setmetatable({ open = 2 }, Child)
  local input, output, errors = uv.new_pipe(false), uv.new_pipe(false), uv.new_pipe(false)
  local env = { "PATH=" .. os.getenv "PATH", "HOME=" .. (os.getenv "HOME" or "/") }
  for _, entry in ipairs(given.env or {}) do env[#env + 1] = entry end
  self.handle, self.pid = assert(uv.spawn(uv.exepath(), {
    args = given, env = env, cwd = given.cwd, stdio = { input, output, errors },
  }, function(code, signal)
    self.code, self.signal = code, signal
    self.handle:close()
  end))
  collect(self, "stdout", output)
  collect(self, "stderr", errors)
  if given.stdin then input:write(given.stdin) end
  input:shutdown(function() input:close() end)
  return self
end

---Sends a signal, by its name or number.
function Child:kill(signal) return self.handle:kill(signal) end

---Waits for its end. After `timeout_ms` (20000) it is killed, and the spec fails.
---@return spec.Ended
function Child:wait(timeout_ms)
  local ended = wait(function() return self.code and self.open == 0 end, timeout_ms or 20000)
  if not ended then
    if not self.code then self:kill "sigkill" end
    error(("the process did not end\n--- stdout\n%s\n--- stderr\n%s"):format(
      self.stdout, self.stderr), 2)
  end
  return self
end

---Starts one and waits for its end.
---@return spec.Ended
function child.run(given) return child.start(given):wait(given.timeout) end

---Runs a script that is given as a text, from a file of its own.
---@param text string
---@param given table? as for `start`; the list may have options and arguments of the program
---@return spec.Ended
---@return string path that the script had
function child.run_text(text, given)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
  given = given or {}
  given[#given + 1] = path
  local ok, ended = pcall(child.run, given)
  os.remove(path)
  if not ok then error(ended, 2) end
  return ended, path
end

return child
