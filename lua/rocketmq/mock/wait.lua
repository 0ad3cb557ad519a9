--- Waiting for a condition from a task, without holding up the loop.
local uv = require "luv"
local task = require "rocketmq.task"

local PAUSE_MS = 1

---Looks again and again, letting the loop run in between.
---@param ready fun(): any
---@param timeout_ms number
---@return any value what `ready` gave; nil when the time is over
return function(ready, timeout_ms)
  local ends = uv.hrtime() + timeout_ms * 1e6
  while true do
    local value = ready()
    if value then return value end
    if uv.hrtime() >= ends then return nil end
    task.sleep(PAUSE_MS)
  end
end
