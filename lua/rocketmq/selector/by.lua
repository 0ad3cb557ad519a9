--- Works out another selector's argument from the message, so that senders need not give it.
---
---     local by_customer = selector.by(function(message) return message.properties.customer end,
---       selector.hash)
---     local producer = rocketmq.producer { group = "orders", selector = by_customer }
---
--- The key function is given the message and the send's own argument.
local checked = require "rocketmq.selector.checked"

---@param key fun(message: rocketmq.Message, arg: any): any
---@param selector rocketmq.Selector|string
---@return rocketmq.Selector
return function(key, selector)
  if type(key) ~= "function" then
    error("rocketmq.selector.by: its first argument must be a function, not " .. type(key), 2)
  end
  local inner = checked.selector("by", "its second argument", selector)
  return function(queues, message, arg, ctx)
    return inner(queues, message, key(message, arg), ctx)
  end
end
