-- Decides for each message which queue it goes to.
--
--     ./run examples/selector.lua

local rocketmq = require "rocketmq"

local producer = rocketmq.producer { group = "selector" }

-- All messages of one customer to one queue, so that they are read in the order of their sending.
-- A selector is handed the queues (sorted by broker and id), the message, the argument of the call,
-- and a table that tells about the attempt. It gives a queue or its number.
local function by_customer(queues, _, customer)
  return queues[customer % #queues + 1]
end

for order = 1, 6 do
  local customer = order % 3
  local result = assert(producer:send({
    topic = "Invoices",
    body = ("order %d of customer %d"):format(order, customer),
  }, { selector = by_customer, arg = customer }))
  print(("customer %d: %s"):format(customer, tostring(result.queue)))
end

-- It may look at anything, here at which brokers can be reached.
local function first_available(queues, _, _, ctx)
  for _, queue in ipairs(queues) do
    if queue.broker ~= ctx.last_broker and ctx.available(queue) then return queue end
  end
  return 1
end
print(assert(producer:send({ topic = "Invoices", body = "x" },
  { selector = first_available })).status)

-- The same options are for send_async and send_oneway.
assert(producer:send_oneway({ topic = "Invoices", body = "x" },
  { selector = by_customer, arg = 1 }))

-- What a selector does wrong fails its message only, and the error says where.
local result, err = producer:send({ topic = "Invoices", body = "x" }, {
  selector = function(queues) return queues[1000] end,
})
if not result then print(err.kind, err.message) end

producer:shutdown()
