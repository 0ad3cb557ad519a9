-- rocketmq.hook.log
local child = require "spec.support.child"
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"

local SEND = "SEND_MESSAGE_V2"

describe("the log hook", function()
  local c, producer, lines
  before_each(function()
    c = cluster.new { brokers = 1, topics = { Orders = 1 } }
    producer = c.producer
    lines = {}
  end)
  after_each(function() c:finish() end)

  local function write(line, level) lines[#lines + 1] = level .. ": " .. line end
  local message = { topic = "Orders", body = "x" }

  it("tells of what is sent", function()
    producer:add_hook(rocketmq.hook.log { write = write })
    local result = assert(producer:send(message))
    assert.equal(1, #lines)
    assert.matches("^info: sent to Orders@broker%-a#0 in %d+%.%d ms, attempt 1: SEND_OK, msg_id "
      .. result.msg_id .. "$", lines[1])
    assert(producer:send_oneway(message))
    assert.is_true(producer:flush())
    assert.matches("attempt 1: oneway, msg_id", lines[2])
  end)

  it("tells of each attempt that fails", function()
    producer:add_hook(rocketmq.hook.log { write = write })
    c.mock:rule { code = SEND, answer = { code = "SYSTEM_BUSY" } }
    producer:send(message, { retries = 1 })
    assert.equal(2, #lines)
    assert.matches("^warn: not sent to Orders@broker%-a#0 in %d+%.%d ms, attempt 1, trying again: "
      .. "broker error 2: ", lines[1])
    assert.matches("attempt 2: broker error 2: ", lines[2])
  end)

  it("tells only what was slow", function()
    producer:add_hook(rocketmq.hook.log { write = write, slow = 60000 })
    assert(producer:send(message))
    assert.same({}, lines)
    producer:send({ topic = "Orders", body = "x" }, { queue = { broker = "nobody", id = 0 } })
    assert.matches("^warn: not sent to Orders in 0%.0 ms, attempt 0: route error", lines[1])
  end)

  it("writes to stderr", function()
    local ended = child.run { "--mock=default", "-e", [[
      local rocketmq = require "rocketmq"
      local producer = rocketmq.producer { group = "g" }
      producer:add_hook(rocketmq.hook.log {})
      producer:send { topic = "T", body = "x" }
    ]] }
    assert.matches("\n%d+%-%d+%-%d+ [%d:.]+ info  sent to T@broker%-%w#%d in ",
      ended.stderr)
  end)

  it("is strict about its options", function()
    assert.error_matches(function() rocketmq.hook.log { slwo = 1 } end,
      "unknown name 'slwo', did you mean 'slow'")
    assert.error_matches(function() rocketmq.hook.log { slow = -1 } end,
      "slow must be a number from 0 on, not %-1")
    assert.error_matches(function() rocketmq.hook.log { write = 1 } end, "must be a function")
    assert.error_matches(function() rocketmq.hook.log(7) end, "takes a table of options")
  end)
end)
