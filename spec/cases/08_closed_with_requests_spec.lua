--- When a connection was lost with requests in flight, callers waited for the timeout instead of
--- hearing of it at once.
local cluster = require "spec.support.cluster"
local wait = require "rocketmq.mock.wait"

local SEND = "SEND_MESSAGE_V2"

describe("a connection that is lost with a hundred requests in flight", function()
  local c
  after_each(function() c:finish() end)

  local message = { topic = "Orders", body = "x" }

  for how, is_reset in pairs { closed = false, reset = true } do
    it("(" .. how .. ") fails them all at once when nobody else can take them", function()
      c = cluster.new({ brokers = 1, topics = { Orders = 4 } }, { async_retries = 0 })
      assert(c.producer:send(message))
      local rule = c.mock:rule { code = SEND, times = 100, silent = true }
      local errs = {}
      for _ = 1, 100 do
        assert(c.producer:send_async(message, { timeout = 60000 }, function(_, err)
          errs[#errs + 1] = err
        end))
      end
      assert(c.mock:wait(function() return rule.acted == 100 end))
      assert.equal(0, #errs)
      c.mock:broker("broker-a"):disconnect(is_reset)
      -- Of the minute that they had they use almost nothing.
      assert(wait(function() return #errs == 100 end, 5000))
      for _, err in ipairs(errs) do
        assert.equal("closed", err.kind)
        assert.equal("broker-a", err.broker)
        assert.is_true(err.maybe_stored)
      end
      assert.equal(0, c.producer:stats().inflight)
      assert.equal("SEND_OK", assert(c.producer:send(message)).status)
    end)
  end

  it("has them all taken by another broker", function()
    c = cluster.new { brokers = 2, topics = { Orders = 4 } }
    for _ = 1, 8 do assert(c.producer:send(message)) end
    local rule = c.mock:rule { at = "broker-a", code = SEND, silent = true }
    local results = {}
    for _ = 1, 104 do -- 13 for each queue
      assert(c.producer:send_async(message, { timeout = 60000 }, function(result, err)
        results[#results + 1] = result or err
      end))
    end
    assert(c.mock:wait(function() return rule.acted == 52 end))
    c.mock:broker("broker-a"):disconnect(true)
    assert(wait(function() return #results == 104 end, 5000))
    local again = 0
    for _, result in ipairs(results) do
      assert.equal("SEND_OK", result.status, tostring(result))
      assert.equal("broker-b", result.queue.broker)
      again = again + result.attempts - 1
    end
    assert.equal(52, again)
  end)
end)
