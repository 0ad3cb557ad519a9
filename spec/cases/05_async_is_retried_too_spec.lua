--- Asynchronous sends were retried only after an answer with an error, not when the broker could not
--- be reached at all.
local cluster = require "spec.support.cluster"
local wait = require "rocketmq.mock.wait"

local SEND = "SEND_MESSAGE_V2"

describe("every mode is retried at another broker", function()
  local c
  before_each(function() c = cluster.new { brokers = 2, topics = { Orders = 2 } } end)
  after_each(function() c:finish() end)

  local message = { topic = "Orders", body = "x" }
  local troubles = {
    ["that cannot be reached"] = function() c.mock:broker("broker-a"):stop() end,
    ["that closes connections"] = function()
      c.mock:rule { at = "broker-a", code = SEND, close = true }
    end,
    ["that resets connections"] = function()
      c.mock:rule { at = "broker-a", code = SEND, reset = true }
    end,
    ["that is busy"] = function()
      c.mock:rule { at = "broker-a", code = SEND, answer = { code = "SYSTEM_BUSY" } }
    end,
  }

  for trouble, make in pairs(troubles) do
    it("than one " .. trouble .. ": callbacks", function()
      make()
      local calls, results = 0, {}
      for i = 1, 8 do
        assert(c.producer:send_async(message, function(result, err)
          calls = calls + 1
          results[i] = result or err
        end))
      end
      assert(wait(function() return calls >= 8 end, 5000))
      assert.is_true(c.producer:flush())
      assert.equal(8, calls)
      for i = 1, 8 do
        assert.equal("SEND_OK", results[i].status, tostring(results[i]))
        assert.equal("broker-b", results[i].queue.broker)
      end
      assert.equal(8, #c.mock:messages("Orders", "broker-b"))
    end)

    it("than one " .. trouble .. ": a waiting send", function()
      make()
      for _ = 1, 8 do
        assert.equal("broker-b", assert(c.producer:send(message)).queue.broker)
      end
    end)
  end

  it("than one that cannot be reached: oneway", function()
    troubles["that cannot be reached"]()
    for _ = 1, 8 do assert(c.producer:send_oneway(message)) end
    assert(c.mock:wait(8))
    assert.equal(8, #c.mock:messages("Orders", "broker-b"))
  end)
end)
