-- Transactions: consumers hear of an order when, and only when, it has been paid.
--
--     ./run examples/transaction.lua
--
-- The second order is not decided when its message is sent: the broker asks the check function, with
-- a real broker after some seconds.
local rocketmq = require "rocketmq"

-- What stands for a database here.
local orders = {}

-- The broker asks what has become of an order, perhaps one of another process that is gone.
local function check(message)
  local order = orders[message.keys[1]]
  print(("the broker asks about %s: %s"):format(message.keys[1], order and order.state or "?"))
  if not order then return "rollback" end
  if order.state == "paid" then return "commit" end
  return order.state == "refused" and "rollback" or "unknown"
end

local producer = rocketmq.transaction_producer { group = "example", check = check }

-- The local transaction. The message is stored already, where no consumer sees it.
local function pay(message, order)
  orders[message.keys] = order
  if order.amount > 1000 then
    order.state = "waits for a person"
    return "unknown"
  end
  order.state = order.amount > 100 and "refused" or "paid"
  return order.state == "paid" and "commit" or "rollback"
end

local function place(id, amount)
  local message = { topic = "Payments", keys = id, body = ('{"id":"%s"}'):format(id) }
  local result, err = producer:send_in_transaction(message, pay, { amount = amount })
  print(("%s for %d: %s"):format(id, amount, result and result.transaction_state or err))
  if result and err then print(err) end
end

place("o-1", 50)
place("o-2", 5000)
place("o-3", 500)

-- Somebody looks at it; then the broker asks, and its question is answered while we wait.
orders["o-2"].state = "paid"
local deadline = 60000
while producer:stats().checks_answered == 0 and deadline > 0 do
  rocketmq.sleep(10)
  deadline = deadline - 10
end
producer:shutdown()
