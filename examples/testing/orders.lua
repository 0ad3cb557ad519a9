-- Tells other systems what happens to the orders of a shop. orders_spec.lua tries it.
--
--     ./run examples/testing/orders.lua

local cjson = require "cjson"
local rocketmq = require "rocketmq"

local orders = {}

-- All events of one order go to one queue, so that they are read in their order.
local function queue_of(queues, _, id)
  return queues[id % #queues + 1]
end

---Tells of an event. What cannot be sent now is put into the outbox, for `retry`.
---@param shop table `producer`, `outbox` (a list)
---@param order table `id` (a number), `customer`, `total`
---@param event string "created", "paid", "cancelled"
---@return boolean sent
function orders.tell(shop, order, event)
  local message = {
    topic = "Orders",
    tags = event,
    keys = { "order-" .. order.id },
    body = cjson.encode(order),
    properties = { customer = order.customer },
  }
  -- What waits in the outbox came before: it must not be overtaken.
  if #shop.outbox == 0 and orders.send(shop, message, order.id) then return true end
  table.insert(shop.outbox, { message = message, id = order.id })
  return false
end

---Sends one message; on a failure says so.
function orders.send(shop, message, id)
  local result, err = shop.producer:send(message, { selector = queue_of, arg = id })
  if not result then io.stderr:write("order ", id, ": ", tostring(err), "\n") end
  return result ~= nil
end

---Sends what waits in the outbox, the oldest first, until one cannot be sent.
---@return integer left
function orders.retry(shop)
  while shop.outbox[1] do
    local entry = shop.outbox[1]
    if not orders.send(shop, entry.message, entry.id) then break end
    table.remove(shop.outbox, 1)
  end
  return #shop.outbox
end

-- `require "orders"` passes the name; a script that is run gets its own arguments.
if ... == "orders" then return orders end

local shop = { producer = rocketmq.producer { group = "shop" }, outbox = {} }
local order = { id = 17, customer = "c-4", total = 9.9 }
for _, event in ipairs { "created", "paid" } do
  print(event, orders.tell(shop, order, event) and "told" or "kept for later")
end
