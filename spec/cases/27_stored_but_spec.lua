--- Three answers mean that the message is stored but not yet as safe as was asked for. Clients
--- made errors of them, and scripts that sent again made duplicates.
local cluster = require "spec.support.cluster"

local STATUSES = { [10] = "FLUSH_DISK_TIMEOUT", [11] = "SLAVE_NOT_AVAILABLE",
  [12] = "FLUSH_SLAVE_TIMEOUT" }

describe("a message that is stored, but", function()
  local c

  before_each(function()
    c = cluster.new { brokers = 2, topics = { Orders = 1 } }
  end)

  after_each(function() c:finish() end)

  for code, status in pairs(STATUSES) do
    it("with " .. status .. " is a result with that status, sent once", function()
      c.mock:rule { at = "broker", code = "SEND_MESSAGE_V2", answer = { code = code } }
      local result = assert(c.producer:send { topic = "Orders", body = "x" })
      assert.equal(status, result.status)
      assert.equal(1, result.attempts)
      local messages = c.mock:messages("Orders")
      assert.equal(1, #messages)
      assert.equal(messages[1].offset_msg_id, result.offset_msg_id)
      assert.equal(messages[1].msg_id, result.msg_id)
      assert.equal(messages[1].broker, result.queue.broker)
      assert.equal(0, result.queue_offset)
    end)

    it("with " .. status .. " goes to another broker when that is asked for", function()
      c.mock:rule { code = "SEND_MESSAGE_V2", times = 1, answer = { code = code } }
      local producer = c:add_producer { retry_another_broker_when_not_store_ok = true }
      local result = assert(producer:send { topic = "Orders", body = "x" })
      assert.equal("SEND_OK", result.status)
      assert.equal(2, result.attempts)
      local messages = c.mock:messages("Orders")
      assert.equal(2, #messages)
      assert.are_not.equal(messages[1].broker, messages[2].broker)
      assert.equal(messages[1].msg_id, messages[2].msg_id)
    end)
  end

  it("by no broker fully is still a result", function()
    c.mock:rule { code = "SEND_MESSAGE_V2", answer = { code = 11 } }
    local producer = c:add_producer { retry_another_broker_when_not_store_ok = true }
    local result = assert(producer:send { topic = "Orders", body = "x" })
    assert.equal("SLAVE_NOT_AVAILABLE", result.status)
  end)

  it("is stored, is a result also when the next attempt fails", function()
    c.mock:rule { code = "SEND_MESSAGE_V2", times = 1, answer = { code = 12 } }
    c.mock:rule { code = "SEND_MESSAGE_V2", answer = { code = 13 } }
    local producer = c:add_producer { retry_another_broker_when_not_store_ok = true }
    local result = assert(producer:send { topic = "Orders", body = "x" })
    assert.equal("FLUSH_SLAVE_TIMEOUT", result.status)
    assert.equal(1, c.mock:count())
  end)
end)
