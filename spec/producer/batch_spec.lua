-- Several messages in one request: each with an id, a result and an error of its own.
local child = require "spec.support.child"
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"
local wait = require "rocketmq.mock.wait"

local BATCH = "SEND_BATCH_MESSAGE"

local function messages_of(n, size)
  local messages = {}
  for i = 1, n do
    local body = ("body %d "):format(i)
    messages[i] = { topic = "Orders", body = body .. ("x"):rep((size or 0) - #body) }
  end
  return messages
end

describe("send_batch", function()
  local c, producer
  before_each(function()
    c = cluster.new { brokers = 2, topics = { Orders = 4, Others = 1 } }
    producer = c.producer
  end)
  after_each(function()
    rocketmq.on_error(nil)
    c:finish()
  end)

  local function batches() return c.mock:requests { code = BATCH } end

  it("stores each message with what belongs to it, in one request", function()
    local messages = {
      { topic = "Orders", body = "one", tags = "paid", keys = { "k1", "k2" }, flag = 7 },
      { topic = "Orders", body = "\0\1\2\255", properties = { region = "北京", emoji = "🚀" } },
      { topic = "Orders", body = "three", keys = "single", flag = -1 },
    }
    local results, err = producer:send_batch(messages)
    assert.is_nil(err)
    assert.equal(1, #batches())
    local stored = c.mock:messages()
    assert.equal(3, #results)
    for i, result in ipairs(results) do
      local message = stored[i]
      assert.equal("SEND_OK", result.status)
      assert.same({ message.msg_id, message.offset_msg_id, message.queue_offset },
        { result.msg_id, result.offset_msg_id, result.queue_offset })
      assert.same({ message.broker, message.queue_id }, { result.queue.broker, result.queue.id })
      assert.equal(i - 1, result.queue_offset)
      assert.equal(1, result.attempts)
      assert.is_true(message.batch)
      assert.equal(messages[i].body, message.body)
    end
    assert.same({ "paid", { "k1", "k2" }, 7 }, { stored[1].tags, stored[1].keys, stored[1].flag })
    assert.same({ "北京", "🚀" }, { stored[2].properties.region, stored[2].properties.emoji })
    assert.is_nil(stored[2].properties.KEYS)
    assert.same({ { "single" }, -1 }, { stored[3].keys, stored[3].flag })
    assert.are_not.equal(results[1].msg_id, results[2].msg_id)
  end)

  it("says in the request that it is a batch, and how to wait, and nothing else", function()
    assert(producer:send_batch(messages_of(2)))
    local ext = batches()[1].ext
    assert.same({ "true", "WAIT\1true\2", "0", "0" }, { ext.m, ext.i, ext.f, ext.h })
    local messages = messages_of(2)
    for _, message in ipairs(messages) do message.wait = false end
    local results = assert(producer:send_batch(messages))
    assert.equal("WAIT\1false\2", batches()[2].ext.i)
    assert.is_nil(results[1].transaction_id)
  end)

  it("goes to a given queue, and where a selector says, which is asked once", function()
    local results = assert(producer:send_batch(messages_of(3),
      { queue = { broker = "broker-b", id = 2 } }))
    assert.equal("Orders@broker-b#2", tostring(results[3].queue))
    local asked = {}
    results = assert(producer:send_batch(messages_of(3), {
      selector = function(queues, message, arg)
        asked[#asked + 1] = { #queues, message.body, arg }
        return queues[2]
      end,
      arg = "the argument",
    }))
    assert.same({ { 8, "body 1 ", "the argument" } }, asked)
    for _, result in ipairs(results) do
      assert.equal("Orders@broker-a#1", tostring(result.queue))
    end
  end)

  it("fails as a whole when its selector does, with an error for each", function()
    local results, err = producer:send_batch(messages_of(2),
      { selector = function() return nil end })
    assert.same({ false, false }, results)
    assert.equal("selector", err.kind)
    assert.matches("2 of 2 messages failed", err.message)
    assert.matches("returned nil", err.failed[2].message)
    assert.equal(0, c.mock:count())
  end)

  it("tells each message what the broker refused", function()
    c.mock:rule { code = BATCH, answer = { code = 13, remark = "too long for me" } }
    local results, err = producer:send_batch(messages_of(2))
    assert.same({ false, false }, results)
    for i = 1, 2 do
      local own = err.failed[i]
      assert.same({ "broker", 13, 1 }, { own.kind, own.code, own.attempts })
      assert.matches("too long for me", own.message)
      assert.matches("maxMessageSize", own.message)
      assert.equal(32, #own.msg_id)
    end
    assert.are_not.equal(err.failed[1].msg_id, err.failed[2].msg_id)
    assert.same({ "broker", 13 }, { err.kind, err.code })
    assert.matches("^broker error 13: 2 of 2 messages failed; the first: Sending to topic",
      tostring(err))
  end)

  it("does not believe an offset behind which there is no room for the others", function()
    local function answer(offset)
      return { code = 0, ext = { msgId = "A,B,C", queueId = "1", queueOffset = offset } }
    end
    c.mock:rule { code = BATCH, times = 1, answer = answer "9223372036854775805" }
    c.mock:rule { code = BATCH, answer = answer "9223372036854775806" }
    local results = assert(producer:send_batch(messages_of(3)))
    assert.equal("9223372036854775807LL", tostring(results[3].queue_offset))
    local _, err = producer:send_batch(messages_of(3))
    assert.equal("closed", err.failed[3].kind)
    assert.is_true(err.failed[3].maybe_stored)
    assert.matches("no proper queueOffset", err.failed[3].message)
  end)

  it("is tried again on the other broker, with the same ids", function()
    c.mock:rule { code = BATCH, times = 1, answer = { code = 2 } }
    local results = assert(producer:send_batch(messages_of(3)))
    local requests = batches()
    assert.equal(2, #requests)
    assert.are_not.equal(requests[1].broker, requests[2].broker)
    assert.equal(requests[1].body, requests[2].body)
    assert.equal(2, results[3].attempts)
    assert.equal(3, c.mock:count())
    assert.equal(1, producer:stats().retried)
  end)

  it("keeps a result of 'stored, but' for each", function()
    c.mock:rule { code = BATCH, answer = { code = 10 } }
    local results = assert(producer:send_batch(messages_of(2)))
    for i, result in ipairs(results) do
      assert.equal("FLUSH_DISK_TIMEOUT", result.status)
      assert.equal(i - 1, result.queue_offset)
    end
  end)

  it("sends nothing when a message is wrong, and names it", function()
    local function refused(i, changes, pattern, options)
      local messages = messages_of(3)
      for name, value in pairs(changes) do messages[i][name] = value end
      local results, err = producer:send_batch(messages, options)
      assert.is_nil(results)
      assert.equal("message", err.kind)
      assert.matches("^messages%[" .. i .. "%]: ", err.message)
      assert.matches(pattern, err.message)
      local failed = {}
      for number, own in pairs(err.failed) do failed[number] = tostring(own) end
      assert.same({ [i] = tostring(err) }, failed)
      assert.is_nil(err.failed[i].failed)
    end
    refused(2, { body = "" }, "body is empty")
    refused(1, { topic = "no good" }, "topic has a space")
    refused(3, { topic = "Others" }, 'topic is "Others" and that of messages%[1%] is "Orders"')
    refused(2, { wait = false }, "wait differs")
    refused(2, { tags = "a\1" }, "tags has byte 1")
    refused(2, { keys = { "a b" } }, "keys%[1%].*space")
    refused(2, { flag = 1.5 }, "flag is 1.5")
    refused(3, { properties = { WAIT = "no" } }, "WAIT is used by RocketMQ itself")
    refused(3, { properties = { x = ("y"):rep(32768) } }, "RocketMQ stores at most 32767")
    refused(3, { properties = { x = ("y"):rep(32000) } }, "at most 32000. Send it alone")
    refused(2, { delay_level = 3 }, "it has a delay, and cannot be in a batch; send it alone")
    refused(2, { delay_ms = 3 }, "it has a delay")
    refused(1, { topic = "%RETRY%group" }, "cannot be in a batch")
    refused(2, { lmq = "a" }, "light queues")
    for _, method in ipairs { "send_batch_async", "send_batch_oneway" } do
      local ok, err = producer[method](producer, { { topic = "Orders", body = "x" },
        { topic = "Orders", body = "" } })
      assert.is_nil(ok)
      assert.same({ [2] = err.message }, { [2] = err.failed[2].message })
    end
    local good = { topic = "Orders", body = "x" }
    local _, missing = producer:send_batch { { body = "x" }, good }
    assert.equal("messages[1]: topic is missing", missing.message)
    _, missing = producer:send_batch { good, { body = "x" } }
    assert.equal("messages[2]: topic is missing; each message of a batch has it, and it is "
      .. '"Orders" here', missing.message)
    local choosing = rocketmq.producer { group = "choosing", namesrv = c.mock.namesrv,
      selector = function() return 1 end }
    for _, sender in ipairs { producer, choosing } do
      for _, options in ipairs { {}, { selector = function() return 1 end },
        { selector = "hash" } } do
        local results, err = sender:send_batch({}, options)
        assert.is_nil(results)
        assert.matches("no messages in this batch", err.message)
      end
    end
    choosing:shutdown()
    assert.same({}, c.mock:requests { code = "SEND_BATCH_MESSAGE" })
    assert.equal(0, producer:stats().sent)
    -- Nothing of all that is left behind.
    assert(producer:send_batch(messages_of(3)))
    assert.equal(3, c.mock:count())
  end)

  it("is shown to the selector as it was, whatever reading it does to the list", function()
    local list, shown = {}, nil
    list[1] = setmetatable({ topic = "Orders" }, { __index = function(_, name)
      if name == "body" then return "b" end
      if name == "wait" then list[1] = nil end
    end })
    assert(producer:send_batch(list, { selector = function(_, message)
      shown = message.body
      return 1
    end }))
    assert.equal("b", shown)
  end)

  it("raises for a wrong type or an unknown name, naming it, at the caller's line", function()
    local function raises(pattern, messages, options)
      local ok, text = pcall(function() producer:send_batch(messages, options) end)
      assert.is_false(ok)
      assert.matches("^spec/producer/batch_spec.lua:%d+: " .. pattern, text)
    end
    local good = { topic = "Orders", body = "x" }
    raises("messages%[2%].body must be a string, not number",
      { good, { topic = "Orders", body = 1 } })
    raises("messages%[1%].topic must be a string, not table", { { topic = {}, body = "x" } })
    raises("messages%[2%] must be a table, not string", { good, "x" })
    raises("unknown field 'tag' in messages%[2%]: did you mean 'tags'",
      { good, { topic = "Orders", body = "x", tag = "y" } })
    raises("messages%[1%].properties.a must be a string",
      { { topic = "Orders", body = "x", properties = { a = 1 } } })
    raises("messages%[1%].keys%[2%] must be a string",
      { { topic = "Orders", body = "x", keys = { "a", 2 } } })
    raises("messages%[1%].delay_ms must be a number",
      { { topic = "Orders", body = "x", delay_ms = "1" } })
    raises("messages%[1%].wait must be a boolean", { { topic = "Orders", body = "x", wait = 1 } })
    raises("send_batch: the messages must be a list of messages, not a table with the key 'body'",
      { body = "x" })
    raises("send_batch: the messages must be a list, not string", "x")
    raises("unknown option 'spilt' in the send's options: did you mean 'split'", { good },
      { spilt = true })
    raises("option split must be a boolean, not string", { good }, { split = "yes" })
    raises("option timeout must be a number", { good }, { timeout = "1" })
    raises("the send's options must be a table, not number", { good }, 1)
    assert.error_matches(function() producer.send_batch { good } end,
      "call producer:send_batch{...} with a colon", nil, true)
    assert.equal(0, c.mock:count())
  end)

  it("does not change the messages, and does not mind what happens to them later", function()
    local messages = messages_of(2)
    local results
    assert(producer:send_batch_async(messages, function(value) results = value end))
    messages[1].body, messages[2], messages[3] = "changed", nil, "no message"
    collectgarbage()
    assert.is_true(producer:flush())
    assert.equal(2, #results)
    assert.equal("body 1 ", c.mock:messages()[1].body)
    assert.equal("body 2 ", c.mock:messages()[2].body)
  end)

  it("leaves nothing behind when a metamethod of a message raises, or sends itself", function()
    local odd = setmetatable({ topic = "Orders" }, { __index = function(_, name)
      if name == "body" then error "no body today" end
    end })
    local message = messages_of(1)[1]
    assert.error_matches(function() producer:send_batch { message, odd } end, "no body today")
    local nested = setmetatable({ topic = "Orders" }, { __index = function(_, name)
      if name == "body" then
        assert(producer:send_batch(messages_of(2)))
        return "outer"
      end
    end })
    assert(producer:send_batch { { topic = "Orders", body = "first" }, nested })
    local bodies = {}
    for i, stored in ipairs(c.mock:messages()) do bodies[i] = stored.body end
    assert.same({ "body 1 ", "body 2 ", "first", "outer" }, bodies)
  end)

  it("is split when it is too long, in order, to one queue when one is given", function()
    local messages = messages_of(50, 200000)
    local results, err = producer:send_batch(messages, { queue = { broker = "broker-a", id = 1 } })
    assert.is_nil(err)
    assert.equal(3, #batches())
    for i, result in ipairs(results) do assert.equal(i - 1, result.queue_offset) end
    for i, message in ipairs(c.mock:messages()) do assert.equal(messages[i].body, message.body) end
    for _, request in ipairs(batches()) do assert.is_true(#request.body <= 4194304) end
  end)

  it("is refused when it is too long and must not be split", function()
    local results, err = producer:send_batch(messages_of(50, 200000), { split = false })
    assert.is_nil(results)
    assert.same({ "message", 13 }, { err.kind, err.code })
    assert.matches("50 messages take %d+ bytes as one batch", err.message)
    assert.matches("max_message_size allows 4194304", err.message)
    assert.equal(0, c.mock:count())
    assert(producer:send_batch(messages_of(20, 200000), { split = false }))
    assert.equal(1, #batches())
  end)

  it("counts messages, not requests", function()
    assert(producer:send_batch(messages_of(5)))
    local stats = producer:stats()
    assert.same({ 5, 5, 0, 0, 0 }, { stats.sent, stats.acknowledged, stats.failed, stats.inflight,
      stats.inflight_bytes })
  end)

  it("has one budget", function()
    c.mock:rule { code = BATCH, silent = true }
    local results, err = producer:send_batch(messages_of(2), { timeout = 100 })
    assert.same({ false, false }, results)
    assert.equal("timeout", err.kind)
    assert.is_true(err.failed[1].maybe_stored)
    assert.is_true(err.failed[1].elapsed_ms >= 100)
  end)

  it("cannot wait where no send can", function()
    assert.error_matches(function()
      table.sort({ 1, 2 }, function() producer:send_batch(messages_of(1)) return true end)
    end, "send_batch cannot wait here")
  end)

  describe("with callbacks", function()
    local ends
    before_each(function() ends = {} end)
    local function note(results, err) ends[#ends + 1] = { results = results, err = err } end

    it("returns at once and calls back once, with all of it", function()
      assert.is_true(producer:send_batch_async(messages_of(3), note))
      assert.same({}, ends)
      assert(wait(function() return #ends > 0 end, 10000))
      assert.is_nil(ends[1].err)
      assert.equal(3, #ends[1].results)
      assert.equal(2, ends[1].results[3].queue_offset)
      local queue = { broker = "broker-b", id = 0 }
      assert.is_true(producer:send_batch_async(messages_of(1), { queue = queue }, note))
      assert.is_true(producer:flush())
      assert.equal(2, #ends)
      assert.equal("Orders@broker-b#0", tostring(ends[2].results[1].queue))
    end)

    it("tells a callback of failures, and refuses at once what cannot be sent", function()
      c.mock:rule { code = BATCH, answer = { code = 13, remark = "no" } }
      assert.is_true(producer:send_batch_async(messages_of(2), note))
      assert.is_true(producer:flush())
      assert.same({ false, false }, ends[1].results)
      assert.equal(13, ends[1].err.failed[2].code)
      local ok, err = producer:send_batch_async({ { topic = "Orders", body = "" } }, note)
      assert.is_nil(ok)
      assert.matches("messages%[1%]: body is empty", err.message)
      assert.error_matches(function() producer:send_batch_async(messages_of(1), {}, "f") end,
        "send_batch_async: the callback must be a function, not string")
      assert.equal(1, #ends)
    end)

    it("shows a selector that is asked late what was given", function()
      local fresh = c:add_producer()
      local messages, shown = messages_of(2), nil
      assert.is_true(fresh:send_batch_async(messages, {
        selector = function(queues, message)
          shown = message.body
          return queues[1]
        end,
      }))
      messages[1].body = "changed"
      assert.is_true(fresh:flush())
      assert.equal("body 1 ", shown)
    end)

    it("waits for room, and lets nobody overtake", function()
      local narrow = c:add_producer { max_inflight = 4 }
      c.mock:rule { code = BATCH, delay = 20 }
      for _ = 1, 3 do assert.is_true(narrow:send_batch_async(messages_of(3), note)) end
      assert.is_true(narrow:stats().inflight <= 4)
      assert.is_true(narrow:flush())
      assert.equal(3, #ends)
      assert.equal(0, narrow:stats().waiting)
    end)

    it("sends more than there is room for in turns", function()
      local narrow = c:add_producer { max_inflight = 4 }
      assert.is_true(narrow:send_batch_async(messages_of(11), note))
      assert.is_true(narrow:flush())
      assert.is_nil(ends[1].err)
      assert.equal(11, c.mock:count())
      assert.equal(3, #batches())
      local results, err = narrow:send_batch(messages_of(5), { split = false })
      assert.is_nil(results)
      assert.matches("max_inflight 4 messages", err.message)
    end)

    it("returns true when there was no room in time, and the callback hears of it", function()
      local narrow = c:add_producer { max_inflight = 2 }
      c.mock:rule { code = BATCH, delay = 300 }
      assert.is_true(narrow:send_batch_async(messages_of(2), note))
      assert.is_true(narrow:send_batch_async(messages_of(2), { timeout = 50 }, note))
      assert(wait(function() return #ends > 0 end, 10000))
      assert.equal("timeout", ends[1].err.kind)
      assert.matches("for room", ends[1].err.failed[2].message)
      assert.is_true(narrow:flush())
      assert.is_nil(ends[2].err)
    end)

    it("is an overload at once where waiting is impossible", function()
      local narrow = c:add_producer { max_inflight = 2 }
      local ok, err
      assert(narrow:send_batch(messages_of(1), {
        selector = function(queues)
          ok, err = narrow:send_batch_async(messages_of(2))
          return queues[1]
        end,
      }))
      assert.is_nil(ok)
      assert.equal("overload", err.kind)
      assert.equal(1, c.mock:count())
    end)
  end)

  it("oneway asks for no answer", function()
    assert.is_true(producer:send_batch_oneway(messages_of(3)))
    assert.is_true(producer:flush())
    assert(wait(function() return c.mock:count() == 3 end, 10000))
    assert.is_true(batches()[1].oneway)
    assert.is_true(c.mock:messages()[3].batch)
  end)

  it("that fails unheard is told in the log, and by the exit status", function()
    local ended = child.run { "--mock", "-e", [[
      local rocketmq = require "rocketmq"
      local producer = rocketmq.producer { group = "g", timeout = 20000 }
      producer:send_batch_oneway({ { topic = "T", body = "a" }, { topic = "T", body = "b" } },
        { queue = { broker = "nobody", id = 0 } })
    ]] }
    assert.equal(3, ended.code, ended.stderr)
    assert.matches("send_oneway: .*nobody", ended.stderr)
  end)

  it("after the shutdown is refused; what a shutdown cuts short is told", function()
    c.mock:rule { code = BATCH, silent = true }
    local task = rocketmq.spawn(function() return producer:send_batch(messages_of(2)) end)
    assert(wait(function() return #batches() == 1 end, 10000))
    local ok, err = producer:shutdown(10)
    assert.is_nil(ok)
    assert.matches("^2 sends had no answer", err.message)
    local results
    results, err = task:wait()
    assert.same({ false, false }, results)
    assert.equal("state", err.kind)
    assert.is_true(err.failed[2].maybe_stored)
    results, err = producer:send_batch(messages_of(1))
    assert.is_nil(results)
    assert.equal("state", err.kind)
  end)
end)
