--- Producers chose queues of brokers that were read-only, or of which only a slave was left.
local cluster = require "spec.support.cluster"

describe("queues that cannot be written to", function()
  local c

  after_each(function() c:finish() end)

  local function brokers_of(queues)
    local seen, names = {}, {}
    for _, queue in ipairs(queues) do
      if not seen[queue.broker] then
        seen[queue.broker] = true
        names[#names + 1] = queue.broker
      end
    end
    return names
  end

  it("are not among those to choose from, and get nothing", function()
    c = cluster.new {
      brokers = { "good", { name = "lone-slave", ids = { 1 } }, { name = "read-only", perm = 4 },
        { name = "topic-read-only", topics = { Orders = { queues = 4, perm = 4 } } },
        { name = "without-queues", topics = { Orders = { write_queues = 0, read_queues = 4 } } },
        { name = "well", slaves = 1 } },
      topics = { Orders = 4 },
    }
    local queues = assert(c.producer:queues("Orders"))
    assert.equal(8, #queues)
    assert.same({ "good", "well" }, brokers_of(queues))
    for _ = 1, 40 do
      assert.equal(1, assert(c.producer:send { topic = "Orders", body = "x" }).attempts)
    end
    assert.equal(40, #c.mock:messages("Orders", "good") + #c.mock:messages("Orders", "well"))
    assert.equal(0, #c.mock:requests { at = "well#1" })
  end)

  it("are not among those that selectors get", function()
    c = cluster.new {
      brokers = { "good", { name = "lone-slave", ids = { 1 } }, { name = "read-only", perm = 4 } },
      topics = { Orders = 4 },
    }
    local seen
    local selector = require("rocketmq").selector
    for _, chosen in ipairs { function(queues)
      seen = brokers_of(queues)
      return #queues
    end, "hash", "random", selector.round_robin {}, selector.consistent_hash {} } do
      for i = 1, 8 do
        local result = assert(c.producer:send({ topic = "Orders", body = "x" },
          { selector = chosen, arg = i }))
        assert.equal("good", result.queue.broker)
      end
    end
    assert.same({ "good" }, seen)
  end)

  it("are those that a broker lets be written, not read", function()
    c = cluster.new { topics = { Orders = { read_queues = 8, write_queues = 3, perm = 2 } } }
    assert.equal(3, #assert(c.producer:queues("Orders")))
  end)

  it("are counted in the error when there are no others", function()
    c = cluster.new { brokers = { { ids = { 1 } }, { perm = 4 }, { ids = { 2 } } },
      topics = { Orders = 4 } }
    local result, err = c.producer:send { topic = "Orders", body = "x" }
    assert.is_nil(result)
    assert.equal("route", err.kind)
    assert.matches("no writable queue %(1 read%-only, 2 without a master%)", err.message)
    local queues
    queues, err = c.producer:queues("Orders")
    assert.is_nil(queues)
    assert.equal("route", err.kind)
  end)

  it("are left alone once the route shows it", function()
    c = cluster.new({ brokers = 2, topics = { Orders = 2 } }, { poll_name_server_interval = 10 })
    assert(c.producer:send { topic = "Orders", body = "x" })
    c.mock:broker("broker-a"):set_topic("Orders", { perm = 4 })
    assert(c.mock:wait(function() return #assert(c.producer:queues("Orders")) == 2 end))
    assert.same({ "broker-b" }, brokers_of(assert(c.producer:queues("Orders"))))
  end)

  it("are passed over when a broker says so before the route does", function()
    -- A broker that is read-only says so of ordered topics; this one says it of all.
    c = cluster.new { brokers = 2, topics = { Orders = 2 } }
    assert(c.producer:queues("Orders"))
    c.mock:rule { at = "broker-a", code = "SEND_MESSAGE_V2", answer = { code = "NO_PERMISSION" } }
    for _ = 1, 8 do
      local result = assert(c.producer:send { topic = "Orders", body = "x" })
      assert.equal("broker-b", result.queue.broker)
    end
  end)
end)
