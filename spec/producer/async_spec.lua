-- send_async: returns at once, and tells its callback once what has come of it.
local child = require "spec.support.child"
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"
local wait = require "rocketmq.mock.wait"

local SEND = "SEND_MESSAGE_V2"

describe("send_async", function()
  local c, producer, ends
  before_each(function()
    c = cluster.new { brokers = 2, topics = { Orders = 4 } }
    producer, ends = c.producer, {}
  end)
  after_each(function()
    rocketmq.on_error(nil)
    c:finish()
  end)

  local message = { topic = "Orders", body = "x" }

  -- A callback that notes what it is told.
  local function note(result, err) ends[#ends + 1] = { result = result, err = err } end
  local function came(n) return assert(wait(function() return #ends >= n end, 10000)) end

  it("returns true, and the callback gets the result later", function()
    local returned = false
    assert.is_true(producer:send_async(message, function(result, err)
      assert.is_true(returned)
      note(result, err)
    end))
    returned = true
    came(1)
    assert.is_nil(ends[1].err)
    assert.equal("SEND_OK", ends[1].result.status)
    assert.equal(c.mock:messages()[1].msg_id, ends[1].result.msg_id)
    assert.equal(1, c.mock:count())
  end)

  it("takes options before the callback, or none", function()
    local queue = { broker = "broker-b", id = 3 }
    assert.is_true(producer:send_async({ topic = "Orders", body = "x", tags = "there" },
      { queue = queue }, note))
    assert.is_true(producer:send_async(message, nil, note))
    assert.is_true(producer:send_async(message))
    came(2)
    assert.is_true(producer:flush())
    assert.equal(3, c.mock:count())
    local there
    for _, stored in ipairs(c.mock:messages("Orders", "broker-b", 3)) do
      there = there or stored.tags == "there"
    end
    assert.is_true(there)
  end)

  it("gives what is wrong with a message at once, and does not call back", function()
    local ok, err = producer:send_async({ topic = "no good", body = "x" }, note)
    assert.is_nil(ok)
    assert.equal("message", err.kind)
    assert.equal("no good", err.topic)
    ok, err = producer:send_async({ topic = "Orders", body = "" }, note)
    assert.is_nil(ok)
    assert.equal("message", err.kind)
    ok, err = producer:send_async({ topic = "Orders", body = "x", keys = { "a b" } }, note)
    assert.is_nil(ok)
    assert.equal("message", err.kind)
    assert.is_true(producer:shutdown())
    ok, err = producer:send_async(message, note)
    assert.is_nil(ok)
    assert.equal("state", err.kind)
    assert.same({}, ends)
  end)

  it("raises for a wrong type, naming it, at the caller's line", function()
    assert.error_matches(function() producer:send_async(message, {}, "f") end,
      "send_async: the callback must be a function, not string")
    assert.error_matches(function() producer:send_async(message, 3, note) end,
      "the send's options must be a table, not number")
    assert.error_matches(function() producer:send_async("x", note) end,
      "the message must be a table, not string")
    assert.error_matches(function() producer.send_async(message, note) end,
      "call producer:send_async{...} with a colon", nil, true)
    assert.error_matches(function() producer:send_async({ topic = "Orders", body = 1 }, note) end,
      "body of the message must be a string, not number")
    assert.error_matches(function() producer:send_async(message, { retrys = 1 }, note) end,
      "unknown option 'retrys'")
  end)

  it("hands errors to the callback as send returns them", function()
    c.mock:rule { code = SEND, answer = { code = 1, remark = "no" } }
    assert(producer:send_async(message, { retries = 1 }, note))
    came(1)
    assert.is_nil(ends[1].result)
    assert.equal("broker", ends[1].err.kind)
    assert.equal(2, ends[1].err.attempts)
    assert.equal("no", ends[1].err.message:match "no")
    assert.equal(32, #ends[1].err.msg_id)
  end)

  it("has a number of retries of its own, under both names", function()
    c.mock:rule { code = SEND, answer = { code = 1 } }
    for _, name in ipairs { "retry_times_when_send_async_failed",
      "retryTimesWhenSendAsyncFailed" } do
      ends = {}
      local other = c:add_producer { [name] = 3, retries = 0 }
      assert(other:send_async(message, note))
      came(1)
      assert.equal(4, ends[1].err.attempts)
    end
  end)

  it("keeps the body, short or long, whatever becomes of the script's own values", function()
    c.mock:rule { code = SEND, times = 40, delay = 20 }
    local sizes = { 1, 100, 4096, 4097, 100000 }
    for i = 1, 40 do
      local size = sizes[i % #sizes + 1]
      assert(producer:send_async({ topic = "Orders", body = ("%d"):format(i % 10):rep(size) },
        note))
    end
    for _ = 1, 5 do
      collectgarbage()
      rocketmq.sleep(1)
    end
    came(40)
    local by_size = {}
    for _, stored in ipairs(c.mock:messages()) do
      assert.equal(stored.body:sub(1, 1):rep(#stored.body), stored.body)
      by_size[#stored.body] = (by_size[#stored.body] or 0) + 1
    end
    assert.same({ [1] = 8, [100] = 8, [4096] = 8, [4097] = 8, [100000] = 8 }, by_size)
    assert.equal(0, producer:stats().inflight)
    assert.equal(0, producer:stats().inflight_bytes)
  end)

  it("runs callbacks as tasks, which may wait and send again", function()
    for _ = 1, 5 do
      assert(producer:send_async(message, function(result)
        rocketmq.sleep(1)
        local second = assert(producer:send(message))
        assert(producer:send_async(message, function(third) note { result, second, third } end))
      end))
    end
    came(5)
    assert.equal(15, c.mock:count())
    local ids = {}
    for _, one in ipairs(ends) do
      for _, result in ipairs(one.result) do ids[result.msg_id] = true end
    end
    local count = 0
    for _ in pairs(ids) do count = count + 1 end
    assert.equal(15, count)
  end)

  it("makes an error in a callback an uncaught one; the others come all the same", function()
    local caught = {}
    rocketmq.on_error(function(err, traceback) caught[#caught + 1] = { err, traceback } end)
    for i = 1, 4 do
      assert(producer:send_async(message, function(result, err)
        note(result, err)
        if i % 2 == 0 then error("callback " .. i) end
      end))
    end
    came(4)
    assert(wait(function() return #caught == 2 end, 5000))
    table.sort(caught, function(a, b) return a[1] < b[1] end)
    assert.matches("async_spec.lua:%d+: callback 2", caught[1][1])
    assert.matches("async_spec.lua:%d+: callback 4\nstack traceback", caught[2][2])
    assert.is_true(producer:flush())
    assert.equal(0, producer:stats().inflight)
  end)

  it("ends the process with 1 for an error in a callback, after a flush", function()
    local ended = child.run { "--namesrv=" .. c.mock.namesrv, "-e", [[
      local rocketmq = require "rocketmq"
      local producer = rocketmq.producer { group = "g" }
      for i = 1, 10 do
        assert(producer:send_async({ topic = "Orders", body = "x" }, function()
          if i == 1 then error "in the callback" end
        end))
      end
    ]] }
    assert.equal(1, ended.code)
    assert.matches("in the callback\nstack traceback", ended.stderr)
    assert.equal(10, c.mock:count())
  end)

  describe("without a callback", function()
    it("counts and logs failures, at most a line a second, and ends the process with 3", function()
      c.mock:rule { code = SEND, answer = { code = 29, remark = "so not" } }
      local ended = child.run { "--namesrv=" .. c.mock.namesrv, "-e", [[
        local rocketmq = require "rocketmq"
        local producer = rocketmq.producer { group = "g" }
        for i = 1, 100 do assert(producer:send_async { topic = "Orders", body = "x" }) end
        producer:flush()
        print(producer:stats().failed)
      ]] }
      assert.equal("100\n", ended.stdout)
      assert.equal(3, ended.code)
      local _, lines = ended.stderr:gsub("so not", "")
      assert.equal(2, lines, ended.stderr)
      assert.matches("send_async: Sending to topic \"Orders\" failed", ended.stderr)
      assert.matches("99 sends failed", ended.stderr)
      assert.matches("100 messages sent without asking for the result were not delivered",
        ended.stderr)
    end)
  end)

  describe("completes once", function()
    -- Sends `n`, lets everything that may still come come, and looks that each has ended once.
    local function each_ends_once(n, options, settle_ms)
      local counts = {}
      for i = 1, n do
        counts[i] = 0
        assert(producer:send_async(message, options, function(result, err)
          counts[i] = counts[i] + 1
          note(result, err)
          assert((result == nil) ~= (err == nil))
        end))
      end
      came(n)
      if settle_ms then rocketmq.sleep(settle_ms) end
      for i = 1, n do assert.equal(1, counts[i]) end
      local stats = producer:stats()
      assert.same({ 0, 0, 0 }, { stats.inflight, stats.waiting, stats.inflight_bytes })
      assert.equal(stats.sent, stats.acknowledged + stats.failed)
    end

    it("with answers around the deadline", function()
      assert(producer:send(message))
      for _, delay in ipairs { 25, 29, 30, 31, 35 } do
        local rule = c.mock:rule { code = SEND, delay = delay }
        each_ends_once(50, { timeout = 30, retries = 0 }, 10)
        rule:remove()
        ends = {}
      end
    end)

    it("when connections are closed and reset", function()
      for _, how in ipairs { "close", "reset" } do
        local rule = c.mock:rule { code = SEND, nth = 10, times = 5, [how] = true }
        each_ends_once(60, { retries = 1 })
        rule:remove()
        ends = {}
      end
    end)

    it("with answers that come twice, for nobody, or are no frames", function()
      local wire = require "rocketmq.wire"
      assert(producer:send(message))
      local function frame(opaque)
        return wire.encode { code = 0, opaque = opaque, flag = 1,
          ext = { msgId = "0", queueId = "0", queueOffset = "0" } }
      end
      -- Answers to what nobody has asked, and many times over, in place of an answer.
      local answers = { frame(123456789):rep(3), frame(-1), "\0\0\0", "GET / HTTP/1.1\r\n\r\n" }
      for _, raw in ipairs(answers) do
        local rule = c.mock:rule { code = SEND, nth = 3, times = 2, raw = raw }
        each_ends_once(30, { timeout = 200, retries = 0 })
        rule:remove()
        ends = {}
      end
    end)

    it("when the producer is shut down in the middle", function()
      c.mock:rule { code = SEND, nth = 20, silent = true }
      local n = 0
      for _ = 1, 100 do
        assert(producer:send_async(message, function(result, err)
          n = n + 1
          note(result, err)
        end))
      end
      assert(wait(function() return producer:stats().acknowledged == 19 end, 10000))
      local ok, err = producer:shutdown(30)
      assert.is_nil(ok)
      assert.equal("timeout", err.kind)
      came(100)
      rocketmq.sleep(5)
      assert.equal(100, n)
      local kinds = {}
      for _, one in ipairs(ends) do
        local kind = one.err and one.err.kind or "stored"
        kinds[kind] = (kinds[kind] or 0) + 1
      end
      assert.same({ stored = 19, state = 81 }, kinds)
    end)
  end)
end)
