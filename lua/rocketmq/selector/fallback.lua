--- Asks a second selector when the first one gives nothing (nil), or a queue of the broker that has just
--- failed this message.
---
---     local near = selector.machine_room { rooms = { "hz" }, otherwise = "none" }
---     { selector = selector.fallback(near, selector.best) }
---
--- An error of the first one is not caught.
local checked = require "rocketmq.selector.checked"

---@param first rocketmq.Selector|string
---@param second rocketmq.Selector|string
---@return rocketmq.Selector
return function(first, second)
  local a = checked.selector("fallback", "its first argument", first)
  local b = checked.selector("fallback", "its second argument", second)
  return function(queues, message, arg, ctx)
    local choice = a(queues, message, arg, ctx)
    if choice == nil then return b(queues, message, arg, ctx) end
    if ctx.last_broker then
      local queue = type(choice) == "number" and queues[choice] or choice
      local is_named = type(queue) == "userdata" or type(queue) == "table"
      if is_named and queue.broker == ctx.last_broker then
        return b(queues, message, arg, ctx)
      end
    end
    return choice
  end
end
