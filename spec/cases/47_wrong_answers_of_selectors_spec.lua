--- A selector in a script that gives nothing, or what is none of the queues, or raises or waits: each is one
--- error that says where, of its message alone.
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"

-- What it does; what the error says; whether the place is that of the line or of the function.
local WRONG = {
  ["gives nothing"] = { function() end, "returned nil%. It must return one of the 8 queues" },
  ["gives a text"] = { function() return "broker-a" end, "returned a string" },
  ["gives 0"] = { function() return 0 end, "returned 0%..*the number of one, from 1 to 8" },
  ["gives a number out of range"] = { function(queues) return #queues + 1 end, "returned 9" },
  ["gives a fraction"] = { function() return 2.5 end, "returned 2%.5" },
  ["gives a queue that is not there"] = { function() return { broker = "broker-a", id = 4 } end,
    "returned Orders@broker%-a#4, which is none of them" },
  ["gives a queue of a broker that is not there"] = {
    function() return { broker = "broker-z", id = 0 } end, "returned Orders@broker%-z#0" },
  ["gives a table that is no queue"] = { function() return { 1 } end, "returned a table" },
  ["gives the list"] = { function(queues) return queues end, "returned a table" },
  ["raises"] = { function(_, message) error("no queue for " .. message.body) end,
    "selectors_spec.lua:%d+: no queue for x\nstack traceback" },
  ["makes a mistake"] = { function(queues) return queues.first.id end,
    "selectors_spec.lua:%d+: attempt to index field 'first'" },
  ["yields"] = { function() coroutine.yield() end, "it cannot yield or wait" },
  ["waits"] = { function() rocketmq.sleep(1) end, "sleep cannot wait here" },
  ["calls a selector wrongly"] = {
    function(queues) return rocketmq.selector.hash(queues) end, "hash: its argument is nil" },
}

describe("a selector that", function()
  local c
  setup(function() c = cluster.new { brokers = 2, topics = { Orders = 4 } } end)
  teardown(function() c:finish() end)

  local message = { topic = "Orders", body = "x" }

  -- The three ways to be told of what came of it.
  local ways = {
    send = function(options) return c.producer:send(message, options) end,
    send_async = function(options)
      local got
      assert(c.producer:send_async(message, options, function(...) got = { ... } end))
      c.producer:flush()
      assert(c.mock:wait(function() return got end))
      return got[1], got[2]
    end,
    send_batch = function(options)
      local results, err = c.producer:send_batch({ message }, options)
      return results and results[1] or nil, err
    end,
  }

  for name, case in pairs(WRONG) do
    for way, send in pairs(ways) do
      it(("%s fails its message only (%s)"):format(name, way), function()
        local before = c.mock:count()
        local result, err = send { selector = case[1] }
        assert.is_nil(result)
        assert.equal("selector", err.kind)
        assert.equal("Orders", err.topic)
        assert.is_false(err.maybe_stored)
        assert.matches('Sending to topic "Orders" failed: ', err.message)
        assert.matches("spec/cases/47_wrong_answers_of_selectors_spec.lua:%d+", err.message)
        assert.matches(case[2], err.message)
        assert.equal(before, c.mock:count())
        assert(send { selector = function() return 1 end })
        assert.equal(0, c.producer:stats().inflight)
      end)
    end
  end

  it("keeps a queue from an earlier route may give it: queues are judged by equality", function()
    local kept = assert(c.producer:queues "Orders")[6]
    local _, changed = c.mock:broker("broker-b"):set_topic("Orders", { queues = 3 })
    assert.is_nil(changed)
    c.mock:rule { code = "SEND_MESSAGE_V2", times = 1, answer = { code = 17 } }
    c.producer:send(message, { retries = 0 })
    assert(c.mock:wait(function() return #assert(c.producer:queues "Orders") == 7 end))
    local result = assert(c.producer:send(message, { selector = function() return kept end }))
    assert.equal(tostring(kept), tostring(result.queue))
    -- One that the route has lost is none of them.
    local lost = { broker = "broker-b", id = 3 }
    local _, err = c.producer:send(message, { selector = function() return lost end })
    assert.matches("returned Orders@broker%-b#3, which is none of them", err.message)
    c.mock:broker("broker-b"):set_topic("Orders", { queues = 4 })
  end)

  it("is told of the attempt and of the broker that failed", function()
    local told = {}
    c.mock:broker("broker-a"):stop()
    -- One without connections, so that nothing is written to the broker.
    local producer = c:add_producer()
    local result = assert(producer:send(message, { selector = function(queues, _, _, ctx)
      told[#told + 1] = { ctx.attempt, ctx.last_broker, ctx.failures(queues[1]) > 0 }
      return ctx.attempt == 1 and queues[1] or queues[8]
    end }))
    c.mock:broker("broker-a"):start()
    assert.equal(2, result.attempts)
    assert.same({ 1, nil, false }, { told[1][1], told[1][2], told[1][3] })
    assert.same({ 2, "broker-a", true }, told[2])
  end)
end)
