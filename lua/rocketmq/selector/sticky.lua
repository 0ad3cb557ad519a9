--- One queue until its broker fails or `n` messages have gone there, then the next one in turn. So that
--- messages that are sent shortly after one another travel and are stored together.
---
---     local sticky = rocketmq.selector.sticky { n = 1000 }
---     producer:send({ topic = "Logs", body = "..." }, { selector = sticky })
---
--- It moves on when an attempt at the broker has failed, whichever message that was, and when
--- `latency_fault` avoids the broker; then to a queue of another broker, when there is one that is
--- available.
local checked = require "rocketmq.selector.checked"
local draw = require("rocketmq.native.selector").draw
local per_list = require "rocketmq.selector.per_list"

---@class rocketmq.selector.Stay where a topic's messages go now
---@field at integer the queue's number
---@field left number how many messages it still gets
---@field failures? integer of its broker, when it was chosen

local function settle(stay, queues, at, n, ctx)
  stay.at, stay.left, stay.failures = at, n, ctx.failures(queues[at])
end

--- Goes on to the next queue; away from a broker that has failed to one that is available.
local function move_on(stay, queues, n, ctx, failed)
  local count = #queues
  for i = 1, count do
    local at = (stay.at + i - 1) % count + 1
    local queue = queues[at]
    if queue.broker ~= failed and ctx.available(queue) then
      return settle(stay, queues, at, n, ctx)
    end
  end
  settle(stay, queues, stay.at % count + 1, n, ctx)
end

---@param options? {n?: integer} how many messages a queue gets in a row; default: no limit
---@return rocketmq.Selector
return function(options)
  options = checked.options("sticky", options, { n = "number" })
  local n = checked.whole("sticky", "n", options.n, nil, 1) or math.huge
  local stay_of = per_list(function(queues) return { at = draw(#queues), left = 0 } end)
  return function(queues, _, _, ctx)
    local stay = stay_of(queues)
    if stay.failures == nil then
      move_on(stay, queues, n, ctx)
    else
      local queue = queues[stay.at]
      local failed = ctx.failures(queue) ~= stay.failures or not ctx.available(queue)
      if failed or stay.left == 0 then move_on(stay, queues, n, ctx, failed and queue.broker) end
    end
    stay.left = stay.left - 1
    return stay.at
  end
end
