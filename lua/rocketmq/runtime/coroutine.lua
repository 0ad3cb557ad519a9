--- Makes waiting for the runtime work inside the script's own coroutines.
---
--- A wait is a yield whose first value is the runtime's token. Here coroutine.resume and coroutine.wrap pass such a yield on to
--- whoever resumed them, up to the task, and the answer back down; every other yield is theirs. What
--- this costs an ordinary resume is two function calls and one look into a table.
local native = require "rocketmq.native.task"

local TOKEN = native.token
--- What may not be resumed by the script: a coroutine inside which something waits (the value is the coroutine that resumed it), and a
--- task's coroutine (the value is the task). Weak in its keys, shared with C.
local guarded = native.guarded
--- Resumes a coroutine from where the running one cannot be suspended, and lets everything below know that.
local resume_blocked = native.resume_blocked

local create, yield, running = coroutine.create, coroutine.yield, coroutine.running
local status, isyieldable, resume = coroutine.status, coroutine.isyieldable, coroutine.resume
local error, select, type = error, select, type

local pass, pass_wrapped

--- The answer for a wait inside `co` has come.
local function answered(co, onwards, ...)
  guarded[co] = nil
  return onwards(co, resume(co, ...))
end

--- Something inside `co` waits: suspends the running coroutine likewise.
local function wait(co, onwards, ...)
  guarded[co] = running()
  return answered(co, onwards, yield(...))
end

function pass(co, ...)
  local _, first = ...
  if first ~= TOKEN then return ... end
  return wait(co, pass, select(2, ...))
end

function pass_wrapped(co, ok, ...)
  if not ok then
    local err = ...
    -- Level 2 is whoever called the wrap function, because all calls between are tail calls.
    if type(err) == "string" then err = native.place(2) .. err end
    native.note_failure(co, (...), err)
    error(err, 0)
  end
  local first = ...
  if first ~= TOKEN then return ... end
  return wait(co, pass_wrapped, ...)
end

local WAITS = "cannot resume a coroutine that waits for the runtime; it goes on by itself"

--- Resumes a coroutine that is guarded: only a task that has yielded by itself can be.
local function resume_guarded(co, ...)
  if type(guarded[co]) == "userdata" then return native.resume_task(guarded[co], ...) end
  return false, WAITS
end

function coroutine.resume(co, ...)
  if guarded[co] then return resume_guarded(co, ...) end
  if isyieldable() then return pass(co, resume(co, ...)) end
  return resume_blocked(co, ...)
end

function coroutine.wrap(fn)
  local co = create(fn)
  return function(...)
    if guarded[co] then error(WAITS, 2) end
    if isyieldable() then return pass_wrapped(co, resume(co, ...)) end
    return pass_wrapped(co, resume_blocked(co, ...))
  end
end

--- A coroutine inside which something waits has, so to say, resumed the runtime.
function coroutine.status(co)
  local state = status(co)
  if state ~= "suspended" then return state end
  local guard = guarded[co]
  if guard and (type(guard) ~= "userdata" or not native.has_yielded(guard)) then return "normal" end
  return state
end

--- The script may keep a task's coroutine to resume it, so that it must not become another task's.
function coroutine.running()
  local co = running()
  local guard = co and guarded[co]
  if guard then native.expose(guard) end
  return co
end
