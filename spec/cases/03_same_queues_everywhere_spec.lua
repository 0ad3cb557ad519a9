--- Ordered messages went to different queues from different producers, because one name server
--- listed the brokers in another order than the other.
local cluster = require "spec.support.cluster"
local wire = require "rocketmq.wire"

describe("queues that name servers list in different orders", function()
  local c

  before_each(function()
    c = cluster.new { brokers = { "broker-b", "broker-c", "broker-a" }, topics = { Orders = 3 },
      namesrvs = { {}, { reverse = true } } }
  end)

  after_each(function() c:finish() end)

  local function queues_from(index)
    local producer = c:add_producer { namesrv = c.mock:name_server(index).addr }
    return assert(producer:queues("Orders")), producer
  end

  it("are in one order for every producer: by broker, then by id", function()
    local listed = {}
    for index = 1, 2 do
      local texts = {}
      for position, queue in ipairs((queues_from(index))) do
        texts[position] = queue.broker .. "#" .. queue.id
      end
      listed[index] = texts
    end
    assert.same({ "broker-a#0", "broker-a#1", "broker-a#2", "broker-b#0", "broker-b#1",
      "broker-b#2", "broker-c#0", "broker-c#1", "broker-c#2" }, listed[1])
    assert.same(listed[1], listed[2])
  end)

  it("have the same place for the selectors of every producer", function()
    local selector = require("rocketmq").selector
    for _, chosen in ipairs { "hash", selector.consistent_hash {}, "hash_fnv1a" } do
      for key = 1, 20 do
        local texts = {}
        for index = 1, 2 do
          local _, producer = queues_from(index)
          texts[index] = tostring(assert(producer:send({ topic = "Orders", body = "x" },
            { selector = chosen, arg = "key-" .. key })).queue)
        end
        assert.equal(texts[1], texts[2])
      end
    end
  end)

  it("take the messages of two producers that choose by position", function()
    for position = 1, 9 do
      for index = 1, 2 do
        local queues, producer = queues_from(index)
        assert(producer:send({ topic = "Orders", body = position .. "" },
          { queue = queues[position] }))
      end
    end
    local broker_of, messages = {}, c.mock:messages("Orders")
    assert.equal(18, #messages)
    for _, message in ipairs(messages) do
      local where = message.broker .. "#" .. message.queue_id
      assert.equal(broker_of[message.body] or where, where)
      broker_of[message.body] = where
    end
  end)

  it("are sorted when a route is read, whatever its order", function()
    local route = assert(wire.decode_route(wire.encode_route {
      queues = { { broker_name = "b" }, { broker_name = "a10" }, { broker_name = "a" } },
      brokers = { { broker_name = "b", addrs = { [1] = "h:1", [0] = "h:2" } },
        { broker_name = "a", addrs = { [0] = "h:3" } } } }))
    assert.same({ "a", "a10", "b" }, { route.queues[1].broker_name, route.queues[2].broker_name,
      route.queues[3].broker_name })
    assert.same({ "a", "b" }, { route.brokers[1].broker_name, route.brokers[2].broker_name })
  end)
end)
