-- Recalling a message that waits for its time.
local cluster = require "spec.support.cluster"
local wire = require "rocketmq.wire"

describe("recall", function()
  local c

  after_each(function() c:finish() end)

  local function start(description, settings)
    description = description or {}
    description.topics = { Orders = 2, Others = 1 }
    description.timer_scale = description.timer_scale or 0.01
    c = cluster.new(description, settings)
  end

  local function send(fields)
    fields = fields or { delay_seconds = 600 }
    fields.topic, fields.body = "Orders", "x"
    return assert(c.producer:send(fields))
  end

  it("takes a message back, which is never delivered", function()
    start()
    local gone = send { delay_ms = 5000 }
    local stays = send { delay_ms = 5000 }
    assert.equal(gone.msg_id, c.producer:recall("Orders", gone.recall_handle))
    assert(c.mock:wait(function(mock) return mock:messages()[2].delivered end))
    local messages = c.mock:messages()
    assert.same({ gone.msg_id, false, true },
      { messages[1].msg_id, messages[1].delivered, messages[1].recalled })
    assert.same({ stays.msg_id, true, false },
      { messages[2].msg_id, messages[2].delivered, messages[2].recalled })
  end)

  it("goes to the broker that has the message, and names the group", function()
    start { brokers = 3 }
    for _, broker in ipairs { "broker-b", "broker-c" } do
      local result = assert(c.producer:send({ topic = "Orders", body = "x", delay_seconds = 600 },
        { queue = { broker = broker, id = 0 } }))
      assert(c.producer:recall("Orders", result.recall_handle))
      local request = c.mock:requests({ code = "RECALL_MESSAGE", at = broker })[1]
      assert.equal("spec", request.ext.producerGroup)
      assert.equal("Orders", request.ext.topic)
      assert.equal(result.recall_handle, request.ext.recallHandle)
      assert.equal(broker, request.ext.bname)
    end
    assert.equal(2, #c.mock:requests { code = "RECALL_MESSAGE" })
  end)

  it("works from another producer, which asks for the route first", function()
    start()
    local result = send()
    local other = c:add_producer { group = "other" }
    assert.equal(result.msg_id, other:recall("Orders", result.recall_handle))
  end)

  it("gives the id that the handle has when the broker says none", function()
    start()
    local result = send()
    c.mock:rule { code = "RECALL_MESSAGE", answer = { code = 0, ext = { msgId = "" } } }
    assert.equal(result.msg_id, c.producer:recall("Orders", result.recall_handle))
  end)

  it("may be done again", function()
    start()
    local result = send()
    assert(c.producer:recall("Orders", result.recall_handle))
    assert(c.producer:recall("Orders", result.recall_handle))
  end)

  it("is too late when the message is delivered", function()
    start()
    local result = send { delay_ms = 100 }
    assert(c.mock:wait(function(mock) return mock:messages()[1].delivered end))
    local id, err = c.producer:recall("Orders", result.recall_handle)
    assert.is_nil(id)
    assert.same({ "broker", 604 }, { err.kind, err.code })
    assert.matches("recall failed, timestamp invalid", err.message, 1, true)
    assert.matches("only until their time has come", err.message, 1, true)
    assert.equal("broker-a", err.broker)
  end)

  it("is refused by a broker where it is off", function()
    start { recall = false }
    local _, err = c.producer:recall("Orders", send().recall_handle)
    assert.same({ "broker", 16 }, { err.kind, err.code })
    assert.matches("recallMessageEnable", err.message)
  end)

  it("is not known to older brokers", function()
    start { version = 475 } -- 5.3.1
    local result = send()
    assert.is_nil(result.recall_handle)
    local handle = wire.encode_recall_handle { topic = "Orders", broker = "broker-a",
      deliver_at = 1, msg_id = result.msg_id }
    local _, err = c.producer:recall("Orders", handle)
    assert.same({ "broker", 3 }, { err.kind, err.code })
    assert.matches("from 5.3.3 on", err.message, 1, true)
  end)

  it("has no handle for delay levels and messages without a delay", function()
    start()
    assert.is_nil(send({ delay_level = 3 }).recall_handle)
    assert.is_nil(send({ tags = "t" }).recall_handle)
    assert.is_nil(send({ deliver_at = 1e12 }).recall_handle) -- past: delivered at once
  end)

  it("refuses what cannot be meant, before it asks anybody", function()
    start()
    local handle = send().recall_handle
    local before = #c.mock:requests()
    for _, case in ipairs {
      { "Others", handle, "of a message to topic \"Orders\", not to topic \"Others\"" },
      { "Orders", "", "the recall handle \"\" is none" },
      { "Orders", "no handle", "recall handle \"no handle\" is none" },
      { "Orders", handle:sub(2), "is none" },
      { "a b", handle, "topic has a space" },
      { "", handle, "topic is empty" },
      { "%RETRY%g", handle, "cannot be recalled" },
      { "%DLQ%g", handle, "cannot be recalled" },
    } do
      local id, err = c.producer:recall(case[1], case[2])
      assert.is_nil(id)
      assert.equal("message", err.kind)
      assert.matches(case[3], err.message, 1, true)
    end
    assert.equal(before, #c.mock:requests())
  end)

  it("raises for wrong types and unknown options", function()
    start()
    local p = c.producer
    assert.error_matches(function() p:recall(1, "x") end, "the topic must be a string, not number")
    assert.error_matches(function() p:recall("Orders") end, "the recall handle must be a string")
    assert.error_matches(function() p:recall("Orders", "x", 5) end, "options must be a table")
    assert.error_matches(function() p:recall("Orders", "x", { time = 5 }) end,
      "unknown option 'time'; there is timeout")
    assert.error_matches(function() p:recall("Orders", "x", { timeout = "5" }) end, "timeout")
  end)

  it("ends within its time", function()
    start()
    local handle = send().recall_handle
    c.mock:rule { code = "RECALL_MESSAGE", silent = true }
    local _, err = c.producer:recall("Orders", handle, { timeout = 30 })
    assert.equal("timeout", err.kind)
    _, err = c.producer:recall("Orders", handle, { timeout = 0 })
    assert.equal("message", err.kind)
    assert.matches("timeout", err.message)
  end)

  it("says that no route names the broker", function()
    start()
    local handle = wire.encode_recall_handle { topic = "Orders", broker = "broker-z",
      deliver_at = 2e12, msg_id = "ID" }
    local _, err = c.producer:recall("Orders", handle)
    assert.equal("route", err.kind)
    assert.matches("broker-z", err.message, 1, true)
  end)

  it("is refused when the producer is shut down", function()
    start()
    local handle = send().recall_handle
    c.producer:shutdown()
    local _, err = c.producer:recall("Orders", handle)
    assert.equal("state", err.kind)
  end)
end)
