--- A retry was started with a negative remaining time, when what came before it had used up all.
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"
local uv = require "luv"
local wait = require "rocketmq.mock.wait"

local SEND = "SEND_MESSAGE_V2"

describe("a send whose time is over", function()
  local c
  before_each(function() c = cluster.new { brokers = 2, topics = { Orders = 2 } } end)
  after_each(function() c:finish() end)

  local message = { topic = "Orders", body = "x" }

  local function block(ms)
    local till = uv.hrtime() + ms * 1e6
    while uv.hrtime() < till do end
  end

  it("makes no further attempt when the answer to try again comes late", function()
    assert(c.producer:send(message)) -- so that the attempt is made at once
    c.mock:rule { code = SEND, delay = 60, answer = { code = "SYSTEM_BUSY" } }
    local calls, err = 0, nil
    assert(c.producer:send_async(message, { timeout = 40, retries = 5 }, function(_, why)
      calls, err = calls + 1, why
    end))
    assert(wait(function() return calls == 1 end, 5000))
    assert.equal("timeout", err.kind)
    assert.equal(1, err.attempts)
    assert.is_true(err.elapsed_ms >= 40)
    rocketmq.sleep(60)
    assert.equal(1, calls)
    assert.equal(2, #c.mock:requests { code = SEND })
  end)

  it("makes none when the script itself held up the loop meanwhile", function()
    assert(c.producer:send(message))
    local before = #c.mock:requests { code = SEND }
    local rule = c.mock:rule { code = SEND, answer = { code = "SYSTEM_BUSY" } }
    local calls, err = 0, nil
    assert(c.producer:send_async(message, { timeout = 30, retries = 100 }, function(_, why)
      calls, err = calls + 1, why
    end))
    assert(c.mock:wait(function() return rule.acted >= 1 end))
    block(50)
    assert(wait(function() return calls == 1 end, 5000))
    rocketmq.sleep(20)
    assert.equal(1, calls)
    -- The last attempt may have been too late to be written.
    local sent = #c.mock:requests { code = SEND } - before
    assert.is_true(sent == err.attempts or sent == err.attempts - 1)
  end)

  it("is a timeout also when it waited for the route only", function()
    c.mock:rule { code = "GET_ROUTEINFO_BY_TOPIC", silent = true }
    local result, err = c.producer:send({ topic = "Other", body = "x" }, { timeout = 30 })
    assert.is_nil(result)
    assert.equal("timeout", err.kind)
    assert.equal(0, err.attempts)
  end)
end)
