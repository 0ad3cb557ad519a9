--- A timer that never fires early. libuv counts from its loop's time, which stands still while a
--- callback runs and knows whole milliseconds only: a timer that is simply started fires early by as
--- much as the callback that started it has run.
local uv = require "luv"

---Starts a timer that calls `fn` once, in the first turn of the loop in which so many milliseconds are over.
---@param timer userdata a uv_timer_t
---@param ms number 0: in the next turn
---@param fn fun()
return function(timer, ms, fn)
  uv.update_time()
  local due = ms > 0 and math.ceil(uv.hrtime() / 1e6 + ms) - uv.now() or 0
  timer:start(due, 0, fn)
end
