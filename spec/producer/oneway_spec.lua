-- send_oneway: nobody answers; what is noticed to be lost is counted.
local child = require "spec.support.child"
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"
local uv = require "luv"
local wait = require "rocketmq.mock.wait"

local SEND = "SEND_MESSAGE_V2"

describe("send_oneway", function()
  local c, producer
  before_each(function()
    c = cluster.new { brokers = 2, topics = { Orders = 4 } }
    producer = c.producer
  end)
  after_each(function() c:finish() end)

  local message = { topic = "Orders", body = "x" }

  it("returns true, and the message arrives marked as wanting no answer", function()
    assert.is_true(producer:send_oneway { topic = "Orders", body = "b", tags = "t",
      keys = { "k1", "k2" }, properties = { p = "v" }, flag = 7 })
    assert(c.mock:wait(1))
    local stored = c.mock:messages()[1]
    assert.same({ "b", "t", { "k1", "k2" }, "v", 7 },
      { stored.body, stored.tags, stored.keys, stored.properties.p, stored.flag })
    local request = c.mock:requests { code = SEND }[1]
    assert.is_true(request.oneway)
    assert.is_true(producer:flush())
    local stats = producer:stats()
    assert.same({ 1, 0, 0, 0 },
      { stats.sent, stats.failed, stats.acknowledged, stats.inflight })
  end)

  it("goes where it is told to", function()
    assert(producer:send_oneway(message, { queue = { broker = "broker-b", id = 2 } }))
    assert(producer:send_oneway(message, { arg = 1, selector = function(queues, _, arg)
      return queues[arg]
    end }))
    assert(c.mock:wait(2))
    assert.equal(1, #c.mock:messages("Orders", "broker-b", 2))
    assert.equal(1, #c.mock:messages("Orders", "broker-a", 0))
  end)

  it("gives at once what is wrong, and raises for a wrong type", function()
    local ok, err = producer:send_oneway { topic = "", body = "x" }
    assert.is_nil(ok)
    assert.equal("message", err.kind)
    assert.error_matches(function() producer:send_oneway "x" end, "must be a table")
    assert.error_matches(function() producer.send_oneway(message) end,
      "producer:send_oneway{...} with a colon", nil, true)
    assert.error_matches(function() producer:send_oneway(message, print) end,
      "options must be a table, not function")
    producer:shutdown()
    ok, err = producer:send_oneway(message)
    assert.is_nil(ok)
    assert.equal("state", err.kind)
  end)

  it("does not notice that a broker refuses, as nobody can", function()
    c.mock:rule { code = SEND, answer = { code = 2 } }
    assert(producer:send_oneway(message))
    assert.is_true(producer:flush())
    assert.equal(0, producer:stats().oneway_failed)
  end)

  it("is tried at another broker when one cannot be reached", function()
    c.mock:broker("broker-a"):stop()
    for _ = 1, 8 do assert(producer:send_oneway(message)) end
    assert.is_true(producer:flush())
    assert(c.mock:wait(8))
    assert.equal(8, #c.mock:messages("Orders", "broker-b"))
    assert.equal(0, producer:stats().oneway_failed)
  end)

  it("keeps long bodies while the connection is made", function()
    local sizes = { 4096, 4097, 200000 }
    for _, size in ipairs(sizes) do
      assert(producer:send_oneway { topic = "Orders", body = ("z"):rep(size) })
    end
    collectgarbage()
    assert(c.mock:wait(#sizes))
    for _, stored in ipairs(c.mock:messages()) do
      assert.equal(("z"):rep(#stored.body), stored.body)
    end
  end)

  it("counts and logs what it lost, and ends the process with 3", function()
    c.mock:broker("broker-a"):stop()
    c.mock:broker("broker-b"):stop()
    local ended = child.run { "--namesrv=" .. c.mock.namesrv, "-e", [[
      local producer = require "rocketmq".producer { group = "g", retries = 0 }
      for i = 1, 20 do assert(producer:send_oneway { topic = "Orders", body = "x" }) end
      producer:flush()
      print(producer:stats().oneway_failed)
    ]] }
    assert.equal("20\n", ended.stdout)
    assert.equal(3, ended.code)
    assert.matches("send_oneway: Sending to topic \"Orders\" failed", ended.stderr)
    assert.matches("20 messages sent without asking for the result were not delivered",
      ended.stderr)
    c.mock:broker("broker-a"):start()
    c.mock:broker("broker-b"):start()
  end)

  it("writes what is left a second later, while the process goes on", function()
    c.mock:broker("broker-a"):stop()
    c.mock:broker("broker-b"):stop()
    local running = child.start { "--namesrv=" .. c.mock.namesrv, "-e", [[
      local rocketmq = require "rocketmq"
      local producer = rocketmq.producer { group = "g", retries = 0 }
      for i = 1, 3 do assert(producer:send_oneway { topic = "Orders", body = "x" }) end
      rocketmq.sleep(20000)
    ]] }
    assert(wait(function() return running.stderr:find "2 sends failed that nobody" end, 10000))
    running:kill "sigkill"
    running:wait()
    c.mock:broker("broker-a"):start()
    c.mock:broker("broker-b"):start()
  end)

  it("works where waiting is impossible", function()
    assert(producer:send(message))
    local results = {}
    table.sort({ 1, 2, 3 }, function(a, b)
      results[#results + 1] = { producer:send_oneway(message) }
      return a < b
    end)
    local timer, fired = uv.new_timer(), false
    timer:start(1, 0, function()
      results[#results + 1] = { producer:send_oneway(message) }
      fired = true
      timer:close()
    end)
    while not fired do rocketmq.sleep(1) end
    for _, one in ipairs(results) do assert.same({ true }, one) end
    assert(c.mock:wait(#results + 1))
  end)
end)
