-- rocketmq.hook.rate_limit
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"

local SEND = "SEND_MESSAGE_V2"

describe("the rate_limit hook", function()
  local c, producer, now
  before_each(function()
    c = cluster.new { brokers = 1, topics = { Orders = 1, Audit = 1 } }
    producer = c.producer
    now = 1000
  end)
  after_each(function() c:finish() end)

  local function limit(options)
    options.now = function() return now end
    producer:add_hook(rocketmq.hook.rate_limit(options))
  end

  local function sent(topic, n)
    local count, last = 0, nil
    for _ = 1, n do
      local result, err = producer:send { topic = topic, body = "x" }
      if result then count = count + 1 else last = err end
    end
    return count, last
  end

  it("refuses what is over the rate, and says when the next fits", function()
    limit { per_second = 10 }
    local count, err = sent("Orders", 15)
    assert.equal(10, count)
    assert.equal("hook", err.kind)
    assert.matches('hook rate_limit: topic "Orders" may have 10 messages a second; the next one '
      .. "fits in 100 ms$", err.message)
    now = now + 99
    assert.equal(0, (sent("Orders", 1)))
    now = now + 1
    assert.equal(1, (sent("Orders", 2)))
    now = now + 500
    assert.equal(5, (sent("Orders", 20)))
    now = now + 100000 -- the bucket holds no more than the burst
    assert.equal(10, (sent("Orders", 20)))
  end)

  it("limits each topic by itself", function()
    limit { per_second = 3, topics = { Audit = 1 } }
    assert.equal(3, (sent("Orders", 5)))
    assert.equal(1, (sent("Audit", 5)))
  end)

  it("leaves other topics alone", function()
    limit { topics = { Audit = 1 } }
    assert.equal(30, (sent("Orders", 30)))
    assert.equal(1, (sent("Audit", 3)))
  end)

  it("has a burst, and rates below one", function()
    limit { per_second = 0.5, burst = 4 }
    assert.equal(4, (sent("Orders", 9)))
    now = now + 1999
    assert.equal(0, (sent("Orders", 1)))
    now = now + 1
    assert.equal(1, (sent("Orders", 2)))
  end)

  it("charges a message once, whatever number of attempts it takes", function()
    limit { per_second = 2 }
    c.mock:rule { code = SEND, times = 2, answer = { code = "SYSTEM_BUSY" } }
    assert.equal(2, (sent("Orders", 3)))
  end)

  it("goes by the loop's clock", function()
    producer:add_hook(rocketmq.hook.rate_limit { per_second = 200, burst = 1 })
    assert.equal(1, (sent("Orders", 1)))
    rocketmq.sleep(20)
    assert.equal(1, (sent("Orders", 1)))
  end)

  it("is strict about its options", function()
    assert.error_matches(function() rocketmq.hook.rate_limit {} end,
      "give per_second, topics, or both")
    assert.error_matches(function() rocketmq.hook.rate_limit { per_second = 0 } end,
      "per_second must be a number over 0, not 0")
    assert.error_matches(function() rocketmq.hook.rate_limit { topics = { T = "x" } } end,
      "topics must give a number over 0")
  end)
end)
