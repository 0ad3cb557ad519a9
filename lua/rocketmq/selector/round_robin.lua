--- The queues in turn, from a random one on, for each topic.
---
---     local in_turn = rocketmq.selector.round_robin {}
---     producer:send({ topic = "Logs", body = "..." }, { selector = in_turn })
---
--- Unlike the producer's own choice it does not look at how brokers do:
--- `available(round_robin {})` does.
local checked = require "rocketmq.selector.checked"
local draw = require("rocketmq.native.selector").draw
local per_list = require "rocketmq.selector.per_list"

---@param options? {} none so far
---@return rocketmq.Selector
return function(options)
  checked.options("round_robin", options, {})
  local turn_of = per_list(function(queues) return { at = draw(#queues) } end)
  return function(queues)
    local turn = turn_of(queues)
    local at = turn.at % #queues + 1
    turn.at = at
    return at
  end
end
