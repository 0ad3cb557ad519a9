--- Sending after shutdown crashed or hung, shutting one producer down stopped another, and
--- processes did not end because a client was still there.
local child = require "spec.support.child"
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"

-- Starts a mock, sends with two producers; what follows decides how they end.
local SCRIPT = [[
local rocketmq = require "rocketmq"
local mock = rocketmq.mock { brokers = 2, topics = { Orders = 4 } }
local one = rocketmq.producer { group = "one", namesrv = mock.namesrv }
local two = rocketmq.producer { group = "two", namesrv = mock.namesrv }
assert(one:send { topic = "Orders", body = "1" })
assert(two:send { topic = "Orders", body = "2" })
]]

describe("a producer", function()
  local c

  before_each(function() c = cluster.new { brokers = 2, topics = { Orders = 4 } } end)
  after_each(function() c:finish() end)

  it("that is shut down says so for every use, with its name", function()
    local producer = c:add_producer { group = "gone" }
    assert(producer:send { topic = "Orders", body = "x" })
    assert.is_true(producer:shutdown())
    local before = #c.mock:requests()
    local result, err = producer:send { topic = "Orders", body = "x" }
    assert.is_nil(result)
    assert.equal("state", err.kind)
    assert.matches("gone", err.message)
    assert.matches("shut down", err.message)
    for _, method in ipairs { "send_async", "send_oneway" } do
      result, err = producer[method](producer, { topic = "Orders", body = "x" })
      assert.is_nil(result)
      assert.equal("state", err.kind)
      assert.matches("gone", err.message)
    end
    result, err = producer:queues("Orders")
    assert.is_nil(result)
    assert.equal("state", err.kind)
    assert.equal(before, #c.mock:requests())
  end)

  it("may be shut down twice, also before it has sent anything", function()
    local producer = c:add_producer()
    assert.is_true(producer:shutdown())
    assert.is_true(producer:shutdown())
    assert.is_true(c.producer:shutdown())
  end)

  it("gives what is under way its time when it is shut down, and calls back before", function()
    c.mock:rule { code = "SEND_MESSAGE_V2", delay = 20 }
    local stored = 0
    for _ = 1, 20 do
      assert(c.producer:send_async({ topic = "Orders", body = "x" }, function(result)
        if result then stored = stored + 1 end
      end))
    end
    assert.is_true(c.producer:shutdown())
    assert.equal(20, stored)
  end)

  it("may be shut down by two tasks and from a callback at the same time", function()
    local answers = {}
    assert(c.producer:send_async({ topic = "Orders", body = "x" }, function(result)
      answers.result = result
      answers.callback = c.producer:shutdown()
    end))
    local one = rocketmq.spawn(function() return c.producer:shutdown() end)
    local two = rocketmq.spawn(function() return c.producer:shutdown() end)
    assert.is_true(one:wait())
    assert.is_true(two:wait())
    assert(c.mock:wait(function() return answers.callback end))
    assert.equal("SEND_OK", answers.result.status)
  end)

  it("sends before anything else is known: it starts by itself", function()
    local producer = c:add_producer { group = "early" }
    assert(producer:send_oneway { topic = "Orders", body = "1" })
    assert(producer:send_async { topic = "Orders", body = "2" })
    assert.is_true(producer:flush())
    assert(c.mock:wait(2))
  end)

  it("goes on when another one ends", function()
    local other = c:add_producer { group = "other" }
    for _, producer in ipairs { c.producer, other } do
      assert(producer:send { topic = "Orders", body = "x" })
    end
    other:shutdown()
    for _ = 1, 8 do assert(c.producer:send { topic = "Orders", body = "y" }) end
    assert.equal(10, c.mock:count())
  end)

  it("may follow one of the same name that has ended", function()
    for _ = 1, 3 do
      local producer = c:add_producer { group = "again" }
      assert(producer:send { topic = "Orders", body = "x" })
      assert.is_true(producer:shutdown())
    end
    assert.equal(3, c.mock:count())
  end)

  it("registers at its brokers and takes leave of them", function()
    local producer = c:add_producer { group = "polite" }
    local client = producer.client_id
    for _, queue in ipairs(assert(producer:queues("Orders"))) do
      assert(producer:send({ topic = "Orders", body = "x" }, { queue = queue }))
    end
    for _, broker in ipairs { "broker-a", "broker-b" } do
      local seen = assert(c.mock:wait(function(mock) return mock:clients()[broker][client] end))
      assert.is_truthy(table.concat(seen.groups, " "):find("polite", 1, true))
    end
    producer:shutdown()
    for _, broker in ipairs { "broker-a", "broker-b" } do
      assert.is_nil(c.mock:clients()[broker][client])
      assert.equal(1, #c.mock:requests { code = "UNREGISTER_CLIENT", broker = broker })
    end
  end)

  it("does not keep the process from ending, however the script leaves it", function()
    for _, ending in ipairs { "", "one:shutdown() two:shutdown()", "one:shutdown() mock:close()",
      "mock:close()", "one:shutdown() one:shutdown() two:shutdown() mock:close() mock:close()" } do
      local ended = child.run_text(SCRIPT .. ending)
      assert.same({ 0, "", "" }, { ended.code, ended.stdout, ended.stderr })
    end
  end)
end)
