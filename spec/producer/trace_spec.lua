-- Message trace, as a script turns it on and as the mock's trace topic shows it.
local child = require "spec.support.child"
local cluster = require "spec.support.cluster"
local new_mock = require "rocketmq.mock"
local rocketmq = require "rocketmq"

local TRACE = "RMQ_SYS_TRACE_TOPIC"

describe("message trace", function()
  local c, producer, mock

  local function start(settings, description)
    description = description or { brokers = 2, topics = { Orders = 4 } }
    c = cluster.new(description, settings)
    producer, mock = c.producer, c.mock
  end

  after_each(function() c:finish() end)

  local function now() return os.time() * 1000 end

  it("records each send, with what the script was told of it", function()
    start { trace = true }
    local before = now() - 1000
    local result = assert(producer:send { topic = "Orders", body = "hello", tags = "paid",
      keys = { "o-1", "订单" } })
    assert(producer:flush())
    local traces = mock:traces()
    assert.equal(1, #traces)
    local trace = traces[1]
    assert.is_true(trace.timestamp > before and trace.timestamp < before + 60000)
    assert.is_true(trace.cost <= result.elapsed_ms + 1)
    assert.same({ "Pub", "DefaultRegion", "spec", "Orders", result.msg_id, "paid", "o-1 订单",
      mock:broker(result.queue.broker).addr, 5, "Normal_Msg", result.offset_msg_id, true },
      { trace.kind, trace.region, trace.group, trace.topic, trace.msg_id, trace.tags, trace.keys,
        trace.store_host, trace.body_length, trace.msg_type, trace.offset_msg_id, trace.success })
    table.sort(trace.carrier.keys)
    local keys = { result.msg_id, "o-1", "订单" }
    table.sort(keys)
    assert.same(keys, trace.carrier.keys)
    local stats = producer:stats()
    assert.same({ 1, 0, 0, 1, 1, 0 }, { stats.trace_sent, stats.trace_dropped, stats.trace_pending,
      stats.sent, stats.acknowledged, stats.inflight })
  end)

  it("goes to a topic of one's own", function()
    for _, settings in ipairs { { trace = "Mine" }, { enable_trace = true, trace_topic = "Mine" },
      { enableTrace = true, traceTopic = "Mine" } } do
      start(settings, { topics = { Orders = 1, Mine = 1 } })
      assert.same({ true, "Mine" }, { producer:settings().enable_trace,
        producer:settings().trace_topic })
      assert(producer:send { topic = "Orders", body = "x" })
      producer:flush()
      assert.equal(1, #mock:traces "Mine")
      assert.equal(0, #mock:traces())
      c:finish()
    end
  end)

  it("is off until it is wanted", function()
    start()
    assert(producer:send { topic = "Orders", body = "x" })
    producer:flush()
    assert.equal(0, #mock:messages(TRACE))
    assert.same({ false, TRACE }, { producer:settings().enable_trace,
      producer:settings().trace_topic })
    for setting, pattern in pairs {
      [1] = { { trace = 1 },
        "setting trace must be a boolean or the name of a topic, not number" },
      [2] = { { trace = "a b" }, "trace_topic has a space" },
      [3] = { { trace = "" }, "trace_topic is empty" },
      [4] = { { trace_msg_batch_num = 0 }, "trace_msg_batch_num must be a whole number from 1" },
    } do
      local settings = { group = "spec", namesrv = mock.namesrv }
      for name, value in pairs(pattern[1]) do settings[name] = value end
      local ok, err = pcall(rocketmq.producer, settings)
      assert.is_false(ok, setting)
      assert.matches(pattern[2], err)
    end
  end)

  it("records failures, which Java leaves out", function()
    start { trace = true, retries = 0 }
    local _, err = producer:send({ topic = "Orders", body = "x", keys = "k" },
      { queue = { broker = "broker-b", id = 1000 } })
    local _, nowhere = producer:send({ topic = "Orders", body = "x" },
      { queue = { broker = "nobody", id = 0 } })
    local ok = producer:send { topic = "Orders", body = "" }
    assert.is_nil(ok)
    producer:flush()
    local traces = mock:traces()
    assert.equal(2, #traces)
    assert.same({ false, err.msg_id, mock:broker("broker-b").addr, "k" },
      { traces[1].success, traces[1].msg_id, traces[1].store_host, traces[1].keys })
    assert.is_nil(traces[1].offset_msg_id)
    assert.same({ false, nowhere.msg_id }, { traces[2].success, traces[2].msg_id })
    assert.is_nil(traces[2].store_host)
  end)

  it("records every mode, and batches message by message", function()
    start { trace = true }
    local first = assert(producer:send { topic = "Orders", body = "x" })
    local second
    producer:send_async({ topic = "Orders", body = "x" }, function(result) second = result end)
    producer:send_oneway { topic = "Orders", body = "x" }
    local batch = assert(producer:send_batch {
      { topic = "Orders", body = "one", keys = "k1" }, { topic = "Orders", body = "three3" } })
    producer:flush()
    local by_id = {}
    for _, trace in ipairs(mock:traces()) do by_id[trace.msg_id] = trace end
    -- What came of a oneway message nobody knows.
    assert.equal(4, #mock:traces())
    assert.truthy(by_id[first.msg_id] and by_id[second.msg_id])
    assert.same({ "k1", 3, batch[1].offset_msg_id, true }, { by_id[batch[1].msg_id].keys,
      by_id[batch[1].msg_id].body_length, by_id[batch[1].msg_id].offset_msg_id,
      by_id[batch[1].msg_id].success })
    assert.same({ 6, batch[2].offset_msg_id }, { by_id[batch[2].msg_id].body_length,
      by_id[batch[2].msg_id].offset_msg_id })
    assert.is_nil(by_id[batch[2].msg_id].keys)
  end)

  it("knows delayed messages, and how long a compressed body was", function()
    start { trace = true }
    local delayed = assert(producer:send { topic = "Orders", body = "x", delay_level = 1 })
    local long = assert(producer:send { topic = "Orders", body = ("x"):rep(100000) })
    producer:flush()
    local by_id = {}
    for _, trace in ipairs(mock:traces()) do by_id[trace.msg_id] = trace end
    assert.equal("Delay_Msg", by_id[delayed.msg_id].msg_type)
    local length = by_id[long.msg_id].body_length
    assert.is_true(length > 0 and length < 1000)
    local requests = mock:requests { code = "SEND_MESSAGE_V2", topic = "Orders" }
    assert.equal(#requests[2].body, length)
  end)

  it("is no business of the user's: no hook, no limit and no counter knows of it", function()
    start { trace = true, trace_msg_batch_num = 1, max_inflight = 1 }
    local seen = {}
    producer:add_hook {
      before = function(ctx) seen[#seen + 1] = ctx.message.topic end,
      after = function(ctx) seen[#seen + 1] = ctx.message.topic end,
    }
    mock:rule { code = "SEND_MESSAGE_V2", topic = TRACE, delay = 30 }
    for _ = 1, 5 do assert(producer:send { topic = "Orders", body = "x" }) end
    local under_way = producer:stats()
    assert.equal(0, under_way.inflight)
    assert.equal(5, under_way.trace_pending + under_way.trace_sent)
    assert(producer:flush())
    for _, topic in ipairs(seen) do assert.equal("Orders", topic) end
    assert.equal(10, #seen)
    local stats = producer:stats()
    assert.same({ 5, 5, 0, 5 }, { stats.sent, stats.acknowledged, stats.retried,
      stats.trace_sent })
    assert.equal(5, #mock:traces())
  end)

  it("follows what a hook makes of a message", function()
    start { trace = true }
    producer:add_hook { before = function(ctx)
      ctx.message.keys = { "new" }
      ctx.message.body = "longer"
    end }
    assert(producer:send { topic = "Orders", body = "x", keys = "old" })
    producer:flush()
    assert.same({ "new", 6 }, { mock:traces()[1].keys, mock:traces()[1].body_length })
  end)

  it("does not record what a broker does not want recorded", function()
    start { trace = true }
    mock:rule { code = "SEND_MESSAGE_V2", topic = "Orders", times = 1,
      answer = { code = 0, ext = { TRACE_ON = "false" } } }
    local result = assert(producer:send { topic = "Orders", body = "x" })
    assert.is_false(result.trace_on)
    producer:flush()
    assert.equal(0, #mock:traces())
  end)

  it("survives brokers that say anything", function()
    start { trace = true, trace_msg_batch_num = 1 }
    for _, region in ipairs { "a\1b\2c", ("x"):rep(100000), "东", "" } do
      mock:rule { code = "SEND_MESSAGE_V2", topic = "Orders", times = 1,
        answer = { code = 0, ext = { MSG_REGION = region } } }
      assert(producer:send { topic = "Orders", body = "x" })
    end
    producer:flush()
    local traces = mock:traces()
    assert.equal(4, #traces)
    for _, trace in ipairs(traces) do
      assert.same({ "Pub", "spec", "Orders", true },
        { trace.kind, trace.group, trace.topic, trace.success })
      assert.is_true(#trace.region <= 512)
    end
    assert.equal(0, producer:stats().trace_dropped)
  end)

  it("loses records, and not messages, when nobody takes them", function()
    start({ trace = true, trace_msg_batch_num = 1 })
    mock:rule { code = "SEND_MESSAGE_V2", topic = TRACE, answer = { code = 13, remark = "no" } }
    for _ = 1, 20 do assert(producer:send { topic = "Orders", body = "x" }) end
    assert(producer:flush())
    local stats = producer:stats()
    assert.same({ 20, 0, 0, 20, 0 }, { stats.acknowledged, stats.failed, stats.trace_sent,
      stats.trace_dropped, stats.trace_pending })
  end)

  it("gets its time when the producer shuts down, and no more than that", function()
    start { trace = true }
    for _ = 1, 25 do assert(producer:send { topic = "Orders", body = "x" }) end
    assert(producer:shutdown())
    assert.equal(25, #mock:traces())
    assert.equal(25, producer:stats().trace_sent)
    c:finish()
    start { trace = true }
    mock:rule { code = "SEND_MESSAGE_V2", topic = TRACE, silent = true }
    assert(producer:send { topic = "Orders", body = "x" })
    assert(producer:shutdown(50))
    assert.same({ 1, 0 }, { producer:stats().trace_dropped, producer:stats().trace_pending })
  end)

  it("is stored when a script just ends, and is no reason for another exit status", function()
    start()
    local script = [[
      local producer = require("rocketmq").producer { group = "child", trace = true,
        flush_timeout = 100 }
      for _ = 1, 3 do assert(producer:send { topic = "Orders", body = "x" }) end
    ]]
    local ended = child.run { "--namesrv=" .. mock.namesrv, "-e", script }
    assert.equal(0, ended.code, ended.stderr)
    assert.equal(3, #mock:traces())
    mock:rule { code = "SEND_MESSAGE_V2", topic = TRACE, silent = true }
    ended = child.run { "--namesrv=" .. mock.namesrv, "-e", script }
    assert.equal(0, ended.code, ended.stderr)
    assert.equal("", ended.stderr)
    assert.equal(6, #mock:messages "Orders")
  end)
end)

describe("the end of a transaction", function()
  local mock, producer, state

  local function start(transaction_timeout)
    mock = new_mock { topics = { Orders = 4 }, transaction_timeout = transaction_timeout,
      transaction_check_interval = 30 }
    producer = rocketmq.transaction_producer { group = "tx", namesrv = mock.namesrv, trace = true,
      check = function() return state end }
  end
  after_each(function()
    producer:shutdown()
    mock:close()
  end)

  -- The records of a message, by kind.
  local function traces_of(msg_id)
    local found = {}
    for _, trace in ipairs(mock:traces()) do
      if trace.msg_id == msg_id then found[trace.kind] = trace end
    end
    return found
  end

  it("is recorded beside its half message, and hooks hear of it", function()
    start(60000)
    local heard = {}
    producer:add_hook { end_transaction = function(ctx)
      heard[#heard + 1] = { ctx.state, ctx.from_check, ctx.msg_id, ctx.message.body, ctx.topic }
    end }
    for _, case in ipairs { { "commit", "COMMIT_MESSAGE" }, { "rollback", "ROLLBACK_MESSAGE" } } do
      local result = assert(producer:send_in_transaction({ topic = "Orders", body = "x",
        tags = "paid", keys = { "k1", "k2" } }, function() return case[1] end))
      assert(producer:flush())
      local traces = traces_of(result.msg_id)
      assert.same({ "Trans_Msg_Half", true }, { traces.Pub.msg_type, traces.Pub.success })
      local ending = traces.EndTransaction
      assert.same({ "DefaultRegion", "tx", "Orders", "paid", "k1 k2", "Trans_msg_Commit",
        result.transaction_id or result.msg_id, case[2], false,
        mock:broker(result.queue.broker).addr },
        { ending.region, ending.group, ending.topic, ending.tags, ending.keys, ending.msg_type,
          ending.transaction_id, ending.state, ending.from_check, ending.store_host })
      assert.same({ case[1], false, result.msg_id, "x", "Orders" }, table.remove(heard))
    end
  end)

  it("that answers a check says so", function()
    start(30)
    local heard
    state = "commit"
    producer:add_hook { end_transaction = function(ctx) heard = heard or ctx.from_check and {
      ctx.state, ctx.msg_id, ctx.message.body, ctx.message.keys } end }
    local result = assert(producer:send_in_transaction({ topic = "Orders", body = "x",
      keys = "k1" }, function() return "unknown" end))
    assert(mock:wait(function() return heard end))
    assert.same({ "commit", result.msg_id, "x", { "k1" } }, heard)
    local answer
    assert(mock:wait(function()
      producer:flush()
      answer = traces_of(result.msg_id).EndTransaction
      return answer and answer.from_check
    end))
    assert.same({ "COMMIT_MESSAGE", "k1", "Orders" }, { answer.state, answer.keys, answer.topic })
  end)
end)

describe("a recall", function()
  it("is recorded when the broker has answered", function()
    local c = cluster.new({ topics = { Orders = 4 } }, { trace = true })
    local result = assert(c.producer:send { topic = "Orders", body = "x", delay_ms = 60000 })
    assert(c.producer:recall("Orders", result.recall_handle))
    c.mock:rule { code = "RECALL_MESSAGE", answer = { code = 604, remark = "too late" } }
    local again = c.producer:recall("Orders", result.recall_handle)
    assert.is_nil(again)
    c.producer:flush()
    local recalls = {}
    for _, trace in ipairs(c.mock:traces()) do
      if trace.kind == "Recall" then recalls[#recalls + 1] = trace end
      if trace.kind == "Pub" then assert.equal("Delay_Msg", trace.msg_type) end
    end
    assert.same({ "Orders", result.msg_id, true, result.msg_id, false },
      { recalls[1].topic, recalls[1].msg_id, recalls[1].success, recalls[2].msg_id,
        recalls[2].success })
    c:finish()
  end)
end)
