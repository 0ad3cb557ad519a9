--- Hash selectors threw, or counted from behind, when a key's hash was the least int: its absolute value
--- is still negative. The remainder has to come first.
local cluster = require "spec.support.cluster"
local queues = require "spec.support.queues"
local selector = require("rocketmq").selector

local KEYS = { "polygenelubricants", "GydZG_", "DESIGNING WORKHOUSES" }

describe("keys that hash to -2147483648", function()
  it("have a queue, whatever the number of queues", function()
    for _, key in ipairs(KEYS) do
      assert.equal(3, selector.hash(queues.list { a = 3 }, nil, key))
      assert.equal(1, selector.hash(queues.list { a = 8 }, nil, key))
      assert.equal(9, selector.hash(queues.list { a = 10 }, nil, key))
      for n = 1, 50 do
        local number = selector.hash(queues.list { a = n }, nil, key)
        assert.is_true(number >= 1 and number <= n)
      end
    end
  end)

  it("go to it when they are sent", function()
    local c = cluster.new { brokers = { "a" }, topics = { Three = 3, Eight = 8 } }
    finally(function() c:finish() end)
    for _, key in ipairs(KEYS) do
      for topic, id in pairs { Three = 2, Eight = 0 } do
        local result = assert(c.producer:send({ topic = topic, body = "x" },
          { selector = "hash", arg = key }))
        assert.equal(id, result.queue.id)
      end
    end
  end)
end)
