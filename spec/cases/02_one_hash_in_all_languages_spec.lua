--- "The same key" went to different queues from clients in different languages: Java hashes the UTF-16 units
--- of a text, others its bytes, and the Go client has a hash of its own.
local cluster = require "spec.support.cluster"
local queues = require "spec.support.queues"
local selector = require("rocketmq").selector

-- Key, queue of 3 and of 8 in Java, queue of 8 in Go.
local VECTORS = {
  { "order-1", 2, 6, 5 },
  { "order-2", 1, 5, 4 },
  { "user-10086", 0, 5, 6 },
  { "a", 1, 1 },
  { "", 0, 0 },
  { "Aa", 0, 0 },
  { "BB", 0, 0 },
  { "订单", 1, 3 },
  { "😀", 1, 3 },
}

describe("a key", function()
  local c
  setup(function() c = cluster.new { brokers = { "a" }, topics = { Three = 3, Eight = 8 } } end)
  teardown(function() c:finish() end)

  local function queue_id(topic, name, key)
    return assert(c.producer:send({ topic = topic, body = "x" }, { selector = name, arg = key }))
      .queue.id
  end

  for _, vector in ipairs(VECTORS) do
    local key, of_three, of_eight, in_go = unpack(vector)
    it(("%q goes where the Java and Go clients send it"):format(key), function()
      assert.equal(of_three + 1, selector.hash(queues.list { a = 3 }, nil, key))
      assert.equal(of_three, queue_id("Three", "hash", key))
      assert.equal(of_eight, queue_id("Eight", "hash", key))
      if in_go then assert.equal(in_go, queue_id("Eight", "hash_fnv1a", key)) end
    end)
  end

  it("in bytes that are no UTF-8 is the text that Java reads them as", function()
    local replacement = "\239\191\189" -- U+FFFD
    for bytes, text in pairs { ["\xff"] = replacement, ["a\xe8\xae"] = "a" .. replacement,
      ["\xc0\xaf"] = replacement:rep(2), ["\xed\xa0\x80z"] = replacement:rep(3) .. "z" } do
      assert.equal(queue_id("Eight", "hash", text), queue_id("Eight", "hash", bytes))
    end
  end)
end)
