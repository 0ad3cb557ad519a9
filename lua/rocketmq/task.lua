--- Tasks: functions that run side by side on the loop, each waiting without holding up the others.
local naming = require "rocketmq.naming"
local native = require "rocketmq.native.task"

local select, type, unpack, xpcall = select, type, unpack, xpcall

local M = {}

---A function that runs beside the one that spawned it.
---@class rocketmq.Task
---@field private state "running"|"done"|"failed"
---@field private awaited boolean? somebody will ask for its end
---@field private waiters (lightuserdata|integer)[] each a task and the number of its wait
---@field private thread lightuserdata? the native task, while it runs
---@field private n integer how many results there are
---@field private results any[]
---@field private err any
---@field private traceback string
local Task = {}
Task.__index = Task

---@param name string whose argument it is, for the error
---@param value any
local function check_function(name, value)
  if type(value) ~= "function" then
    error(("%s must be a function, not %s"):format(name, type(value)), 3)
  end
end

--- The handler of xpcall: keeps the traceback, which is gone once the error has been caught.
local function note_error(err)
  return { err = err, traceback = native.traceback(err) }
end

---@param self rocketmq.Task
---@param ok boolean
local function finish(self, ok, ...)
  self.thread = nil
  if ok then
    self.state, self.n, self.results = "done", select("#", ...), { ... }
  else
    local noted = ...
    -- An error inside note_error itself (no stack left, say) arrives as it is.
    if type(noted) ~= "table" then noted = { err = noted, traceback = native.traceback(noted) } end
    self.state, self.err, self.traceback = "failed", noted.err, noted.traceback
    if not self.awaited and not self.waiters[1] then native.uncaught(self.err, self.traceback) end
  end
  local waiters = self.waiters
  for i = 1, #waiters, 2 do native.wake(waiters[i], waiters[i + 1]) end
  self.waiters = {}
end

---@param self rocketmq.Task
local function run(self, fn, ...)
  return finish(self, xpcall(fn, note_error, ...))
end

local function start(self, fn, ...)
  -- The function stands where the runtime looks for it: third, behind `run` and the task.
  self.thread = native.spawn(run, self, fn, ...)
  return self
end

---@return rocketmq.Task
local function new_task(awaited)
  return setmetatable({ state = "running", awaited = awaited, waiters = {} }, Task)
end

---Starts a function as a task of its own, in the next turn of the loop. If it fails while nobody waits for it, the
---error is an uncaught one: it is printed with its traceback and ends the process, unless `on_error` is set.
---@param fn fun(...): any
---@param ... any its arguments
---@return rocketmq.Task
function M.spawn(fn, ...)
  check_function("spawn: its first argument", fn)
  return start(new_task(false), fn, ...)
end

---@param self rocketmq.Task
local function forget_waiter(self, waiter)
  local waiters = self.waiters
  for i = 1, #waiters, 2 do
    if waiters[i] == waiter then
      table.remove(waiters, i)
      table.remove(waiters, i)
      return
    end
  end
end

--- The error of a failed task as `wait` gives it: text has the traceback below it, other values stay what they are.
local function failure(self)
  local err = self.err
  if type(err) == "string" or type(err) == "number" then err = self.traceback end
  return err, self.traceback
end

---Waits until the task has ended. Several may wait for the same task, also after its end.
---@param timeout_ms number? how long at most; the task itself goes on
---@return any ... what its function returned; or nil, the error (text with its traceback below), the traceback
function Task:wait(timeout_ms)
  if getmetatable(self) ~= Task then error("wait is called with a colon: task:wait()", 2) end
  -- More than once only when a hook of the script's has left this task among the waiters of another.
  while self.state == "running" do
    native.check_wait("task:wait", timeout_ms)
    local me, wait = native.self()
    if me == self.thread then error("a task cannot wait for itself", 2) end
    local waiters = self.waiters
    waiters[#waiters + 1] = me
    waiters[#waiters + 1] = wait
    if not native.park("task:wait", timeout_ms) then
      forget_waiter(self, me)
      return nil, ("the task has not ended within %s ms"):format(timeout_ms)
    end
  end
  if self.state == "failed" then return nil, failure(self) end
  return unpack(self.results, 1, self.n)
end

---@return "running"|"done"|"failed" status running until its function has returned or raised
function Task:status()
  return self.state
end

function Task:__tostring()
  return "task (" .. self.state .. ")"
end

---Runs functions side by side and waits for all of them, also when one fails.
---@param functions (fun(): any)[]
---@return any[]? results the first result of each, in the order of the functions, with their number as `n`; nil when one failed
---@return any err the error of the first (in their order) that failed
---@return table<integer, any>? errors all errors by the number of their function
function M.gather(functions)
  if type(functions) ~= "table" then
    error("gather: its argument must be a list of functions, not " .. type(functions), 2)
  end
  for i = 1, #functions do check_function(("gather: item %d"):format(i), functions[i]) end
  native.check_wait("gather")
  local tasks, results, errors, first = {}, { n = #functions }, {}, nil
  for i = 1, #functions do tasks[i] = start(new_task(true), functions[i]) end
  for i, task in ipairs(tasks) do
    local value = task:wait()
    if task.state == "failed" then
      errors[i] = failure(task)
      first = first or i
    else
      results[i] = value
    end
  end
  if first then return nil, errors[first], errors end
  return results
end

---Suspends the running task; the others go on. 0 lets the loop take one turn.
---@param ms number
function M.sleep(ms)
  native.sleep(ms)
end

---Sets what is called, as a task, with every error that nobody catches, instead of ending the process; nil: the default again.
---An error in the handler itself ends the process.
---@param fn (fun(err: any, traceback: string))?
function M.on_error(fn)
  if fn ~= nil then check_function("on_error: its argument", fn) end
  native.on_error(fn and function(err, traceback)
    local ok, noted = xpcall(fn, note_error, err, traceback)
    if ok then return end
    if type(noted) ~= "table" then noted = { err = noted, traceback = native.traceback(noted) } end
    native.give_up(noted.err, noted.traceback)
  end)
end

for _, name in ipairs { "wait", "status" } do
  Task[name] = naming.limit_arguments("task:" .. name, Task[name])
end

return M
