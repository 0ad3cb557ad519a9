-- Tries orders.lua against a mock of RocketMQ. From the top folder of this project:
--
--     busted --lua=build/release/rmqlua examples/testing/orders_spec.lua

local rocketmq = require "rocketmq"
require "rocketmq.mock.assert" -- assert.sent and its like

package.path = "examples/testing/?.lua;" .. package.path
local orders = require "orders"

describe("the shop", function()
  local mock, shop
  local order = { id = 17, customer = "c-4", total = 9.9 }

  before_each(function()
    mock = rocketmq.mock { brokers = 2, topics = { Orders = 4 } }
    shop = {
      producer = rocketmq.producer { group = "shop", namesrv = mock.namesrv, timeout = 500 },
      outbox = {},
    }
  end)

  after_each(function()
    shop.producer:shutdown()
    mock:close()
  end)

  it("tells what was paid, by whom", function()
    assert.is_true(orders.tell(shop, order, "paid"))
    assert.sent(mock, { topic = "Orders", tags = "paid", keys = "order-17",
      properties = { customer = "c-4" } }, 1)
    assert.not_sent(mock, { tags = "cancelled" })
  end)

  it("tells the events of one order in their order, in one queue", function()
    orders.tell(shop, order, "created")
    orders.tell(shop, order, "paid")
    local told = assert.sent_in_order(mock, { { tags = "created" }, { tags = "paid" } })
    assert.same({ told[1].broker, told[1].queue_id }, { told[2].broker, told[2].queue_id })
  end)

  it("keeps what cannot be sent, and sends it later, nothing overtaken", function()
    local outage = mock:rule { code = "SEND_MESSAGE_V2", answer = { code = "SYSTEM_BUSY" } }
    assert.is_false(orders.tell(shop, order, "created"))
    outage:remove()
    assert.is_false(orders.tell(shop, order, "paid"))
    assert.sent(mock, {}, 0)
    assert.equal(0, orders.retry(shop))
    assert.sent_in_order(mock, { { tags = "created" }, { tags = "paid" } })
    assert.sent(mock, {}, 2)
  end)

  it("gives up a broker that does not answer, within its time", function()
    mock:rule { at = "broker", code = "SEND_MESSAGE_V2", silent = true }
    assert.is_false(orders.tell(shop, order, "paid"))
    assert.attempts(mock, { tags = "paid" })
    assert.equal(1, #shop.outbox)
  end)

  it("does not lose an event while a broker is restarted", function()
    mock:broker("broker-a"):stop()
    mock:broker("broker-b"):stop()
    assert.is_false(orders.tell(shop, order, "paid"))
    mock:broker("broker-a"):start()
    mock:broker("broker-b"):start()
    assert.is_truthy(mock:wait(function() return orders.retry(shop) == 0 end))
    assert.sent(mock, { tags = "paid" })
  end)
end)
