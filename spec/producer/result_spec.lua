-- The values that a send gives: results, queues and errors.
local cluster = require "spec.support.cluster"
local ffi = require "ffi"
local rocketmq = require "rocketmq"

describe("a result", function()
  local c, producer
  setup(function()
    c = cluster.new { topics = { Orders = 4 } }
    producer = c.producer
  end)
  teardown(function() c:finish() end)

  local function send(options)
    return assert(producer:send({ topic = "Orders", body = "x" }, options))
  end

  it("says where and how the message is stored", function()
    local result = send()
    local messages = c.mock:messages "Orders"
    local message = messages[#messages]
    assert.equal("SEND_OK", result.status)
    assert.equal(message.properties.UNIQ_KEY, result.msg_id)
    assert.truthy(result.msg_id:find "^%x+$")
    assert.truthy(result.offset_msg_id:find "^%x+$")
    assert.equal("Orders", result.queue.topic)
    assert.equal(message.broker, result.queue.broker)
    assert.equal(message.queue_id, result.queue.id)
    assert.equal(message.queue_offset, result.queue_offset)
    assert.equal("DefaultRegion", result.region_id)
    assert.equal(1, result.attempts)
    assert.is_true(result.elapsed_ms >= 0)
    assert.is_boolean(result.trace_on)
    assert.equal(result.msg_id, result.transaction_id)
    assert.is_nil(result.recall_handle)
    assert.is_nil(result.nothing)
  end)

  it("as a plain table has the same fields", function()
    local result = send()
    local fields = result:fields()
    assert.equal("table", type(fields))
    for name, value in pairs(fields) do
      if name == "queue" then
        assert.same({ topic = "Orders", broker = result.queue.broker, id = result.queue.id }, value)
      else
        assert.equal(result[name], value)
      end
    end
    assert.equal(result.msg_id, fields.msg_id)
  end)

  it("reads well", function()
    local result = send { queue = { broker = "broker-a", id = 2 } }
    assert.equal(("SEND_OK in Orders@broker-a#2 at offset %d, msg_id %s"):format(
      result.queue_offset, result.msg_id), tostring(result))
    assert.equal("got " .. tostring(result), "got " .. result)
  end)

  it("outlives its producer", function()
    local other = c:add_producer()
    local result = assert(other:send { topic = "Orders", body = "x" })
    local id = result.msg_id
    other:shutdown()
    collectgarbage()
    assert.equal(id, result.msg_id)
  end)

  for code, status in pairs { FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT",
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT", SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE" } do
    it("has the status " .. status, function()
      c.mock:rule { code = "SEND_MESSAGE_V2", times = 1, answer = { code = code } }
      assert.equal(status, send().status)
    end)
  end

  it("has offsets that a number cannot hold", function()
    for text, value in pairs { ["9007199254740991"] = 2 ^ 53 - 1,
      ["9007199254740992"] = ffi.new("int64_t", 2 ^ 53),
      ["9223372036854775807"] = 0x7fffffffffffffffLL,
      ["1311768467463790320"] = 0x123456789abcdef0LL } do
      c.mock:rule { code = "SEND_MESSAGE_V2", times = 1,
        answer = { code = "SUCCESS", ext = { queueOffset = text } } }
      local result = send()
      assert.equal(type(value), type(result.queue_offset))
      assert.is_true(value == result.queue_offset)
      assert.truthy(tostring(result):find("offset " .. text, 1, true))
    end
  end)
end)

describe("a queue", function()
  local c, queues
  setup(function()
    c = cluster.new { brokers = 2, topics = { Orders = 2 } }
    queues = assert(c.producer:queues "Orders")
  end)
  teardown(function() c:finish() end)

  it("list is sorted by broker and id", function()
    local names = {}
    for i, queue in ipairs(queues) do names[i] = tostring(queue) end
    assert.same({ "Orders@broker-a#0", "Orders@broker-a#1", "Orders@broker-b#0",
      "Orders@broker-b#1" }, names)
  end)

  it("has its parts", function()
    assert.equal("Orders", queues[4].topic)
    assert.equal("broker-b", queues[4].broker)
    assert.equal(1, queues[4].id)
    assert.is_nil(queues[4].name)
  end)

  it("is equal to another with the same parts", function()
    local again = assert(c.producer:queues "Orders")
    assert.is_false(rawequal(queues[1], again[1]))
    assert.is_true(queues[1] == again[1])
    assert.is_false(queues[1] == again[2])
    assert.is_false(queues[1] == again[3])
  end)

  it("of a topic that cannot be is refused", function()
    local list, err = c.producer:queues "a b"
    assert.is_nil(list)
    assert.equal("message", err.kind)
    assert.error_matches(function() c.producer:queues(7) end, "topic must be a string, not number")
    assert.error_matches(function() c.producer:queues() end, "topic must be a string, not n")
  end)
end)

describe("an error", function()
  local c, producer
  setup(function()
    c = cluster.new({ brokers = 2, topics = { Orders = 4 } }, { retries = 1 })
    producer = c.producer
  end)
  teardown(function() c:finish() end)

  local function fail(answer)
    c.mock:rule { code = "SEND_MESSAGE_V2", times = 2, answer = answer }
    local result, err = producer:send { topic = "Orders", body = "x" }
    assert.is_nil(result)
    return err
  end

  it("says what every attempt met", function()
    local err = fail { code = "SYSTEM_ERROR", remark = "out of paper" }
    assert.equal("broker", err.kind)
    assert.equal(1, err.code)
    assert.equal("Orders", err.topic)
    assert.equal(2, err.attempts)
    assert.equal(2, #err.tries)
    assert.is_not.equal(err.tries[1].broker, err.tries[2].broker)
    for _, attempt in ipairs(err.tries) do
      assert.equal("broker", attempt.kind)
      assert.equal(1, attempt.code)
      assert.truthy(attempt.addr:find "^127.0.0.1:%d+$")
      assert.truthy(attempt.message:find "out of paper")
      assert.is_true(attempt.written)
      assert.is_number(attempt.elapsed_ms)
    end
    assert.equal(err.tries[2].broker, err.broker)
    assert.equal(err.tries[2].addr, err.addr)
    assert.is_false(err.maybe_stored)
    assert.truthy(err.msg_id:find "^%x+$")
    assert.is_true(err.elapsed_ms >= 0)
  end)

  it("says what to do, also when an old broker gives all codes in one", function()
    for _, case in ipairs {
      { 29, "request queueId[99] is illegal, TopicConfig", "producer:queues(topic)" },
      { 1, "request queueId[99] is illegal, TopicConfig", "producer:queues(topic)" },
      { 1, "java.lang.RuntimeException: message body size exceeded", "maxMessageSize" },
      { 1, "the queue is illegal", "in the broker's log" },
    } do
      local rule = c.mock:rule { code = "SEND_MESSAGE_V2",
        answer = { code = case[1], remark = case[2] } }
      local _, err = c.producer:send({ topic = "Orders", body = "x" }, { retries = 0 })
      rule:remove()
      assert.equal(case[1], err.code)
      assert.matches(case[2], err.message, 1, true)
      assert.matches(case[3], err.message, 1, true)
    end
  end)

  it("reads well, alone and in a longer text", function()
    local err = fail { code = "SYSTEM_ERROR", remark = "out of paper" }
    assert.truthy(tostring(err):find('^broker error 1: .*"Orders".*out of paper'), tostring(err))
    assert.equal("failed: " .. tostring(err), "failed: " .. err)
    assert.equal(tostring(err) .. "!", err .. "!")
  end)

  it("can be raised and caught as it is", function()
    local err = fail { code = "SYSTEM_ERROR" }
    local ok, caught = pcall(error, err)
    assert.is_false(ok)
    assert.equal(err, caught)
  end)

  it("is known as one", function()
    local errors = require "rocketmq.error"
    assert.is_true(errors.is(fail { code = "SYSTEM_ERROR" }))
    assert.is_false(errors.is { kind = "broker" })
    assert.is_false(errors.is "broker")
  end)

  it("has kind route when the topic has none", function()
    local other = c:add_producer { auto_create_topic = false }
    local result, err = other:send { topic = "Unheard", body = "x" }
    assert.is_nil(result)
    assert.equal("route", err.kind)
    assert.equal("Unheard", err.topic)
    assert.truthy(err.message:find("Unheard", 1, true))
  end)
end)

describe("the module", function()
  it("has a version and no surprises", function()
    assert.truthy(rocketmq.version:find "^%d+%.%d+%.%d+$")
    assert.is_nil(rocketmq.nonsense)
    assert.equal(require "rocketmq.mock", rocketmq.mock)
  end)

  it("gives the same kinds of values when it is loaded anew", function()
    local c = cluster.new()
    local queue = assert(c.producer:send { topic = "Orders", body = "x" }).queue
    package.loaded["rocketmq.producer"], package.loaded["rocketmq.native.producer"] = nil, nil
    local again = require("rocketmq.producer").new { group = "again", namesrv = c.mock.namesrv }
    local result = assert(again:send({ topic = "Orders", body = "x" }, { queue = queue }))
    assert.equal(queue, result.queue)
    again:shutdown()
    c:finish()
  end)
end)
