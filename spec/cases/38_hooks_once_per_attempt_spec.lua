--- Hooks ran twice for an asynchronous send, once too early and without a result.
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"
local wait = require "rocketmq.mock.wait"

local SEND = "SEND_MESSAGE_V2"

describe("hooks run once before and once after each attempt", function()
  local c, producer, calls
  before_each(function()
    c = cluster.new { brokers = 2, topics = { Orders = 2 } }
    producer = c.producer
    calls = {}
    producer:add_hook {
      before = function(ctx) calls[#calls + 1] = "before " .. ctx.attempt end,
      after = function(ctx)
        local what = ctx.result and ctx.result.status or ctx.err and ctx.err.kind or "sent"
        calls[#calls + 1] = ("after %d %s%s"):format(ctx.attempt, what,
          ctx.will_retry and ", again" or "")
      end,
    }
  end)
  after_each(function() c:finish() end)

  local message = { topic = "Orders", body = "x" }
  local modes = {
    send = function() return producer:send(message) end,
    send_async = function()
      local done
      assert(producer:send_async(message, function() done = true end))
      assert.same({}, calls) -- nothing has come yet, so nothing is over
      assert(wait(function() return done end, 10000))
    end,
  }

  for name, send in pairs(modes) do
    it("of " .. name, function()
      send()
      assert.same({ "before 1", "after 1 SEND_OK" }, calls)
    end)

    it("of " .. name .. " that is tried again", function()
      c.mock:rule { code = SEND, times = 2, close = true }
      send()
      assert.same({ "before 1", "after 1 closed, again", "before 2", "after 2 closed, again",
        "before 3", "after 3 SEND_OK" }, calls)
    end)

    it("of " .. name .. " that fails", function()
      c.mock:rule { code = SEND, answer = { code = "SYSTEM_BUSY" } }
      send()
      assert.same({ "before 1", "after 1 broker, again", "before 2", "after 2 broker, again",
        "before 3", "after 3 broker" }, calls)
    end)
  end

  it("of send_oneway", function()
    assert(producer:send_oneway(message))
    assert.is_true(producer:flush())
    assert.same({ "before 1", "after 1 sent" }, calls)
  end)

  it("and exactly one after of a send has will_retry == false, however it ends", function()
    local last = 0
    producer:add_hook { after = function(ctx)
      if not ctx.will_retry then last = last + 1 end
    end }
    c.mock:rule { at = "broker-a", code = SEND, close = true }
    c.mock:rule { at = "broker-b", code = SEND, nth = 7, delay = 300 }
    local tasks = {}
    for i = 1, 60 do
      tasks[i] = rocketmq.spawn(function()
        return producer:send(message, { timeout = 20 + i * 5, retries = i % 4 })
      end)
    end
    for _, task in ipairs(tasks) do task:wait() end
    assert.equal(60, last)
  end)

  it("and an error in one is logged and does not lose the message, unless it is strict", function()
    local broken = producer:add_hook { before = function() error "broken" end }
    assert(producer:send(message))
    producer:remove_hook(broken)
    producer:add_hook { strict = true, before = function() error "broken" end }
    local _, err = producer:send(message)
    assert.equal("hook", err.kind)
  end)
end)
