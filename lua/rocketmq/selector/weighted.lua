--- Queues in proportion to weights: of brokers, or of queues.
---
---     local weighted = rocketmq.selector.weighted { brokers = { ["broker-a"] = 3, ["broker-b"] = 1 } }
---     local weighted = rocketmq.selector.weighted { queues = { ["broker-a#0"] = 5 }, default = 1 }
---
--- A broker's weight is shared by its queues. What is not named has the weight `default` (1); weight 0
--- gets nothing. The share is kept within a few messages, not by chance only.
---
--- It does not look at how brokers do: `available(weighted { ... })` does.
local checked = require "rocketmq.selector.checked"
local draw = require("rocketmq.native.selector").draw
local per_list = require "rocketmq.selector.per_list"

-- Steps of this part of a circle never come back to where they were, and fall as evenly as can be.
local GOLDEN = (5 ^ 0.5 - 1) / 2

local function check_weight(name, weight)
  if type(weight) ~= "number" or not (weight >= 0 and weight < math.huge) then
    error(("rocketmq.selector.weighted: the weight of %s is %s; it must be a number from 0 on")
      :format(tostring(name), tostring(weight)), 3)
  end
end

local function queues_of_each(queues)
  local counts = {}
  for _, queue in ipairs(queues) do counts[queue.broker] = (counts[queue.broker] or 0) + 1 end
  return counts
end

---@return {ends: number[], at: number} ends the sum of the weights up to each queue
local function add_up(queues, options, default)
  local counts = options.brokers and queues_of_each(queues)
  local ends, sum = {}, 0
  for i, queue in ipairs(queues) do
    local weight
    if counts then
      weight = (options.brokers[queue.broker] or default) / counts[queue.broker]
    else
      weight = options.queues[queue.broker .. "#" .. queue.id] or default
    end
    sum = sum + weight
    ends[i] = sum
  end
  return { ends = ends, at = draw(2 ^ 30) / 2 ^ 30 }
end

--- The first queue whose end lies behind the point.
local function find(ends, point)
  local low, high = 1, #ends
  while low < high do
    local middle = math.floor((low + high) / 2)
    if ends[middle] <= point then low = middle + 1 else high = middle end
  end
  return low
end

---@param options {brokers?: table<string, number>, queues?: table<string, number>, default?: number}
---@return rocketmq.Selector
return function(options)
  options = checked.options("weighted", options,
    { brokers = "table", queues = "table", default = "number" })
  if (options.brokers == nil) == (options.queues == nil) then
    error("rocketmq.selector.weighted: give the weights of either brokers or queues", 2)
  end
  for name, weight in pairs(options.brokers or options.queues) do check_weight(name, weight) end
  if options.default then check_weight("default", options.default) end
  local default = options.default or 1
  local place = checked.place()
  local sums_of = per_list(function(queues) return add_up(queues, options, default) end)
  return function(queues)
    local sums = sums_of(queues)
    local total = sums.ends[#sums.ends]
    if total == 0 then error(place .. ": weighted: all queues have the weight 0", 0) end
    sums.at = (sums.at + GOLDEN) % 1
    return find(sums.ends, sums.at * total)
  end
end
