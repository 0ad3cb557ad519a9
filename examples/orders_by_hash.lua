-- Sends the steps of many orders so that each order's steps are stored in their order, also while a broker
-- is away.
--
--     ./run examples/orders_by_hash.lua
--
-- Three things make it so: a hash sends all steps of an order to one queue, a queue keeps the order in
-- which messages come, and each step waits for the answer to the one before. What can go wrong:
--
--   - The queue's broker is down. Its queues are missing from the route then, and a hash over fewer queues
--     would send orders elsewhere. So the selector refuses while the number of queues is another one,
--     and the script tries again until it is what it was.
--   - A broker stored a step and its answer was lost. The step is sent again, so it may be there twice, but
--     nothing overtakes it.

local rocketmq = require "rocketmq"

local TOPIC = "OrderSteps"
local ORDERS, STEPS = tonumber(arg[1]) or 20, tonumber(arg[2]) or 5
local PAUSE_MS = 500 -- before a step is tried again

-- Routes are asked for more often than every 30 s, to see soon that a broker is back.
local producer = rocketmq.producer { group = "orders", poll_name_server_interval = 2000 }
-- What an operator does once: the topic has its queues on all brokers before the first message. (One that
-- sending creates may begin on one broker and get more queues later.)
assert(producer:create_topic { topic = TOPIC, queues = 4 })
local n_queues = #assert(producer:queues(TOPIC))

local hash = rocketmq.selector.hash
local function same_queue(queues, message, order)
  if #queues ~= n_queues then
    error(("%d of %d queues are there"):format(#queues, n_queues), 0)
  end
  return hash(queues, message, order)
end

local again = 0

-- Sends one step, however long it takes.
local function send_step(order, step)
  local message = { topic = TOPIC, keys = order, body = ("%s step %d"):format(order, step) }
  while true do
    local result, err = producer:send(message, { selector = same_queue, arg = order })
    if result then return result end
    again = again + 1
    io.stderr:write(("%s, step %d, is tried again: %s\n"):format(order, step, err.kind))
    rocketmq.sleep(PAUSE_MS)
  end
end

-- The orders side by side, the steps of each one after the other.
local tasks = {}
for i = 1, ORDERS do
  local order = "order-" .. i
  tasks[i] = rocketmq.spawn(function()
    local queue
    for step = 1, STEPS do
      local result = send_step(order, step)
      assert(not queue or queue == result.queue, "an order has changed its queue")
      queue = result.queue
    end
    return queue
  end)
end

local used, n_used = {}, 0
for _, task in ipairs(tasks) do
  local queue = tostring(task:wait())
  if not used[queue] then
    used[queue] = true
    n_used = n_used + 1
  end
end
print(("%d orders with %d steps each are in %d of %d queues"):format(ORDERS, STEPS, n_used,
  n_queues))
print(("%d steps were tried again"):format(again))
producer:shutdown()
