-- Brokers that go away, restart and ask.
local cluster = require "spec.support.cluster"
local wire = require "rocketmq.wire"

local MESSAGE = { topic = "Orders", body = "x" }

describe("a broker that says go away", function()
  local c
  after_each(function() c:finish() end)

  local function connections()
    local numbers, count = {}, 0
    for _, request in ipairs(c.mock:requests { code = "SEND_MESSAGE_V2" }) do
      if not numbers[request.connection] then count = count + 1 end
      numbers[request.connection] = true
    end
    return count
  end

  it("gets the message once more, on a new connection", function()
    c = cluster.new { brokers = 1, topics = { Orders = 1 } }
    c.mock:rule { code = "SEND_MESSAGE_V2", times = 1, answer = { code = "GO_AWAY" } }
    local result = assert(c.producer:send(MESSAGE, { retries = 0 }))
    assert.equal(2, result.attempts)
    assert.equal(2, connections())
    assert.equal(1, c.mock:count())
  end)

  it("is obeyed when it says so twice", function()
    c = cluster.new { brokers = 1, topics = { Orders = 1 } }
    c.mock:rule { code = "SEND_MESSAGE_V2", answer = { code = "GO_AWAY" } }
    local result, err = c.producer:send(MESSAGE, { retries = 0 })
    assert.is_nil(result)
    assert.equal("broker", err.kind)
    assert.equal(wire.response.GO_AWAY, err.code)
    assert.equal(2, #err.tries)
  end)

  it("leaves the message to another broker", function()
    c = cluster.new { brokers = 2, topics = { Orders = 1 } }
    c.mock:rule { at = "broker-a", code = "SEND_MESSAGE_V2", answer = { code = "GO_AWAY" } }
    for _ = 1, 4 do assert.equal("broker-b", assert(c.producer:send(MESSAGE)).queue.broker) end
  end)
end)

describe("a broker that restarts", function()
  local c
  before_each(function() c = cluster.new { brokers = 2, topics = { Orders = 1 } } end)
  after_each(function() c:finish() end)

  it("is used again", function()
    local broker = c.mock:broker "broker-a"
    for _ = 1, 4 do assert(c.producer:send(MESSAGE)) end
    broker:stop()
    for _ = 1, 20 do
      assert.equal("broker-b", assert(c.producer:send(MESSAGE)).queue.broker)
    end
    local before = #c.mock:messages("Orders", "broker-a")
    broker:start()
    assert(c.mock:wait(function()
      assert(c.producer:send(MESSAGE))
      return #c.mock:messages("Orders", "broker-a") > before
    end, 10000))
  end)
end)
