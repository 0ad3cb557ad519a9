--- Lets another selector choose among the queues whose brokers there is no reason to avoid: those that
--- a route names and that `latency_fault` does not avoid, without the one that has just failed this
--- message. When that leaves none it chooses among all.
---
---     { selector = selector.available(selector.random) }
---
--- With `hash` a key moves to another queue while its broker is avoided, and back: its messages are
--- then not in order. It looks at each broker once a message, not at each queue.
local checked = require "rocketmq.selector.checked"
local per_list = require "rocketmq.selector.per_list"

--- The numbers of one queue of each broker.
local function brokers_of(queues)
  local firsts, seen = {}, {}
  for i, queue in ipairs(queues) do
    if not seen[queue.broker] then
      seen[queue.broker] = true
      firsts[#firsts + 1] = i
    end
  end
  return { firsts = firsts, parts = {} }
end

--- The part of the queues without these brokers; the same table each time, for who remembers something
--- for a list.
local function without(queues, known, avoided)
  local names = {}
  for name in pairs(avoided) do names[#names + 1] = name end
  table.sort(names)
  local key = table.concat(names, "\n")
  if known.key ~= key then
    local part = {}
    for _, queue in ipairs(queues) do
      if not avoided[queue.broker] then part[#part + 1] = queue end
    end
    known.key, known.part = key, part
  end
  return #known.part > 0 and known.part or queues
end

---@param selector rocketmq.Selector|string
---@return rocketmq.Selector
return function(selector)
  local inner = checked.selector("available", "its argument", selector)
  local brokers = per_list(brokers_of)
  return function(queues, message, arg, ctx)
    local known, avoided = brokers(queues), nil
    for _, first in ipairs(known.firsts) do
      local queue = queues[first]
      if queue.broker == ctx.last_broker or not ctx.available(queue) then
        avoided = avoided or {}
        avoided[queue.broker] = true
      end
    end
    if not avoided then return inner(queues, message, arg, ctx) end
    local part = without(queues, known, avoided)
    local choice = inner(part, message, arg, ctx)
    -- A number counts in the part.
    if type(choice) == "number" and part[choice] then return part[choice] end
    return choice
  end
end
