-- A mock that several specs share.
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"

describe("a mock that is cleared", function()
  local c, mock

  setup(function()
    c = cluster.new({ topics = { Orders = 1 }, seed = 5 }, { retries = 0 })
    mock = c.mock
  end)
  teardown(function() c:finish() end)
  before_each(function() mock:clear() end)

  local function send(fields)
    local message = { topic = "Orders", body = "x" }
    for name, value in pairs(fields or {}) do message[name] = value end
    return c.producer:send(message)
  end

  for number = 1, 2 do
    it("has seen nothing yet, and goes on as it was (" .. number .. ")", function()
      assert.same({}, mock:requests())
      assert.same({}, mock:attempts())
      assert.same({}, mock:messages())
      assert.same({}, mock:bad_input())
      assert.same({ 0, 0 }, { mock:count(), #mock:transactions() })
      local result = assert(send())
      assert.equal(number - 1, result.queue_offset)
      assert.equal(1, #mock:requests { code = 310 })
      assert.equal(1, mock:count())
      if number == 2 then assert.equal(0, #mock:requests { at = "namesrv" }) end
      assert.is_truthy(mock:clients()["broker-a"][c.producer.client_id])
    end)
  end

  it("has no rules any more, and gives new ones the chances of a new mock", function()
    local function chances()
      local rule = mock:rule { code = 310, probability = 0.5, answer = { code = 14 } }
      local list = {}
      for index = 1, 20 do list[index] = send() and "y" or "n" end
      return table.concat(list), rule
    end
    local first, rule = chances()
    mock:rule { after_read = 1, close = true }
    mock:clear()
    assert(send())
    assert.equal(20, rule.seen)
    assert.equal(first, (chances()))
  end)

  it("replies no longer, and asks no longer about transactions", function()
    local asked = 0
    local shop = cluster.new { topics = { Orders = 1 }, transaction_timeout = 1,
      transaction_check_interval = 1 }
    finally(function() shop:finish() end)
    local paying = rocketmq.transaction_producer { group = "pay", namesrv = shop.mock.namesrv,
      check = function()
        asked = asked + 1
        return "unknown"
      end }
    paying:send_in_transaction({ topic = "Orders", body = "x" }, function() return "unknown" end)
    assert(shop.mock:wait(function() return asked > 0 end))
    shop.mock:reply("Orders", function() return "re" end)
    assert.equal("re", assert(paying:request({ topic = "Orders", body = "?" })).body)
    shop.mock:clear()
    assert.is_nil((next(shop.mock.world.timers)))
    local _, err = paying:request({ topic = "Orders", body = "?" }, { timeout = 100 })
    assert.equal("timeout", err.kind)
    assert.equal(0, #shop.mock:transactions())
    paying:shutdown()
  end)
end)
