--- A broker that hangs ate the whole timeout: retries got none of it, and the send failed although
--- another broker would have stored the message.
local cluster = require "spec.support.cluster"
local wait = require "rocketmq.mock.wait"

local SEND = "SEND_MESSAGE_V2"

describe("a broker that takes requests and never answers", function()
  local c
  before_each(function()
    c = cluster.new { brokers = 2, topics = { Orders = 2 } }
    c.mock:rule { at = "broker-a", code = SEND, silent = true }
  end)
  after_each(function() c:finish() end)

  -- Sends until broker-a was asked first: two of its queues stand beside two of broker-b.
  local function send(producer)
    for _ = 1, 3 do
      local result = assert(producer:send { topic = "Orders", body = "x" })
      assert.equal("broker-b", result.queue.broker)
      if result.attempts > 1 then return result end
    end
  end

  it("leaves time for another one: half of what is left for each attempt", function()
    local result = send(c:add_producer { send_msg_timeout = 3000 })
    assert.equal(2, result.attempts)
    assert.is_true(result.elapsed_ms >= 1500, result.elapsed_ms)
  end)

  it("leaves what attempt_timeout says", function()
    local result = send(c:add_producer { send_msg_timeout = 60000, attempt_timeout = 200 })
    -- Half of what is left would be thirty seconds.
    assert.is_true(result.elapsed_ms >= 200 and result.elapsed_ms < 30000, result.elapsed_ms)
  end)

  it("does so for callbacks and for a call's own times, too", function()
    local results = {}
    for _ = 1, 4 do
      assert(c.producer:send_async({ topic = "Orders", body = "x" }, { attempt_timeout = 200 },
        function(result, err) results[#results + 1] = result or err end))
    end
    assert(wait(function() return #results == 4 end, 5000))
    local retried = 0
    for _, result in ipairs(results) do
      assert.equal("SEND_OK", result.status, tostring(result))
      assert.equal("broker-b", result.queue.broker)
      if result.attempts == 2 then retried = retried + 1 end
    end
    assert.equal(2, retried)
  end)

  it("is a timeout when all brokers hang, with what was tried", function()
    c.mock:rule { at = "broker-b", code = SEND, silent = true }
    local result, err = c.producer:send({ topic = "Orders", body = "x" },
      { timeout = 300, attempt_timeout = 100 })
    assert.is_nil(result)
    assert.equal("timeout", err.kind)
    assert.is_true(err.maybe_stored)
    assert.is_true(#err.tries >= 2)
    assert.are_not.equal(err.tries[1].broker, err.tries[2].broker)
    assert.equal("timeout", err.tries[1].kind)
  end)
end)
