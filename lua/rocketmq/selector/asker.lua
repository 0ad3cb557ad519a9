--- Makes the functions through which C asks selectors: one for each list of queues and depth of calls. Each sees
--- to it that the selector gets a whole list and a ctx that nobody has written into; why that is looked at as
--- it is stands in runtime/binding/lua_queues.h.

local FEW = 8 -- RMQ_QUEUES_FEW
local LOOK = 4 -- RMQ_QUEUES_LOOK

---@param look fun(): rocketmq.Queue[] looks at all places; the list of queues, or a new one for a changed one
---@param whole rocketmq.Queue[] what is in it
---@param ctx_metatable table what is the same for all calls, as __index
---@param last_broker fun(): string? the broker that failed the attempt before
---@return fun(selector: rocketmq.Selector, message: rocketmq.Message, arg: any, thorough?: boolean, attempt?: integer): any
return function(look, whole, ctx_metatable, last_broker)
  local n = #whole
  local written = false -- the ctx; noted when it happens, since asking with next() cannot be compiled
  local metatable = {
    __index = ctx_metatable.__index,
    __metatable = ctx_metatable.__metatable,
    __newindex = function(ctx, name, value)
      written = true
      rawset(ctx, name, value)
    end,
  }
  local queues, ctx = look(), setmetatable({}, metatable)
  local step = n > FEW and LOOK or n
  local next_place = 1 -- where the next look at a few begins

  -- `thorough` is given when all has to be looked at, `attempt` from the second one on.
  return function(selector, message, arg, thorough, attempt)
    local first = next_place
    local last = first + step - 1
    if last >= n then
      first, last, next_place = n - step + 1, n, 1
    else
      next_place = last + 1
    end
    local changed = thorough or queues[n + 1] ~= nil or queues[1] ~= whole[1]
      or queues[n] ~= whole[n]
    for i = first, last do
      if queues[i] ~= whole[i] then changed = true end
    end
    if changed then queues = look() end
    if attempt then
      ctx = setmetatable({ attempt = attempt, last_broker = last_broker() }, metatable)
      written = true
    elseif written then
      ctx, written = setmetatable({}, metatable), false
    end
    return selector(queues, message, arg, ctx)
  end
end
