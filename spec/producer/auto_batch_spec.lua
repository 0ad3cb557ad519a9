-- auto_batch: single sends that go the same way leave as batches, and nobody notices but by the speed.
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"
local wait = require "rocketmq.mock.wait"

describe("auto_batch", function()
  local c, producer
  before_each(function()
    c = cluster.new({ brokers = 2, topics = { Orders = 4, Others = 1 } }, { auto_batch = true })
    producer = c.producer
    assert(producer:send { topic = "Orders", body = "the route is known" })
  end)
  after_each(function() c:finish() end)

  local function batches() return c.mock:requests { code = "SEND_BATCH_MESSAGE" } end

  -- Sends messages 1 to n from as many tasks; gives what each got.
  local function send_together(n, change, options)
    local tasks, got = {}, {}
    for i = 1, n do
      tasks[i] = rocketmq.spawn(function()
        local message = { topic = "Orders", body = "body " .. i }
        if change then change(message, i) end
        local result, err = producer:send(message, options)
        got[i] = { result = result, err = err }
      end)
    end
    for i = 1, n do tasks[i]:wait() end
    return got
  end

  local function by_body()
    local found = {}
    for _, message in ipairs(c.mock:messages()) do found[message.body] = message end
    return found
  end

  it("is off unless it is asked for", function()
    local plain = c:add_producer()
    assert.is_false(plain:settings().auto_batch)
    for _ = 1, 20 do assert(plain:send_async { topic = "Orders", body = "x" }) end
    assert(plain:flush())
    assert.equal(0, #batches())
  end)

  it("takes Java's names and checks its settings", function()
    local other = c:add_producer { autoBatch = true, batchMaxDelayMs = 5, batchMaxBytes = 1000,
      totalBatchMaxBytes = 5000 }
    local settings = other:settings()
    assert.same({ true, 5, 1000, 5000 }, { settings.auto_batch, settings.batch_max_delay,
      settings.batch_max_bytes, settings.batch_total_bytes })
    for name, value in pairs { batch_max_delay = 0, batch_max_bytes = 2097153,
      batch_total_bytes = 0, auto_batch = "yes" } do
      assert.error_matches(function() c:add_producer { [name] = value } end, name)
    end
  end)

  it("gives each caller its own result", function()
    local got = send_together(50)
    local found = by_body()
    for i, own in ipairs(got) do
      local message = found["body " .. i]
      assert.is_nil(own.err)
      assert.same({ message.msg_id, message.offset_msg_id, message.queue_offset, message.broker },
        { own.result.msg_id, own.result.offset_msg_id, own.result.queue_offset,
          own.result.queue.broker })
      assert.equal("SEND_OK", own.result.status)
    end
    assert.is_true(#batches() >= 1)
    local stats = producer:stats()
    assert.equal(51, stats.acknowledged)
    assert.is_true(stats.batches >= 1)
    assert.same({ 0, 0, 0 }, { stats.gathered, stats.inflight, stats.inflight_bytes })
  end)

  it("leaves a lone message alone", function()
    for _ = 1, 5 do assert(producer:send { topic = "Orders", body = "x" }) end
    assert.equal(0, #batches())
    assert.equal(6, #c.mock:requests { code = "SEND_MESSAGE_V2" })
  end)

  it("takes all modes", function()
    local done = 0
    for i = 1, 30 do
      assert(producer:send_async({ topic = "Orders", body = "async " .. i }, function(result, err)
        assert(result, err)
        done = done + 1
      end))
      assert(producer:send_oneway { topic = "Orders", body = "oneway " .. i })
    end
    assert.is_true(producer:flush())
    assert.equal(30, done)
    assert(wait(function() return c.mock:count() == 61 end, 10000))
    for _, request in ipairs(batches()) do
      local kinds = {}
      for body in request.body:gmatch "(%l+) %d" do kinds[body] = true end
      assert.is_true(kinds[request.oneway and "oneway" or "async"])
      assert.is_nil(kinds[request.oneway and "async" or "oneway"])
    end
  end)

  it("puts together only what has the same topic, tags and wait", function()
    send_together(60, function(message, i)
      if i % 2 == 0 then message.tags = "even" end
      if i % 3 == 0 then message.wait = false end
      if i % 5 == 0 then message.topic = "Others" end
    end)
    local groups = 0
    for _, request in ipairs(batches()) do
      local seen
      for _, message in ipairs(c.mock:messages()) do
        if message.batch and request.body:find(message.msg_id, 1, true) then
          local key = ("%s %s %s"):format(message.topic, tostring(message.tags),
            message.properties.WAIT)
          assert.is_true(seen == nil or seen == key)
          seen = key
        end
      end
      groups = groups + 1
    end
    assert.is_true(groups >= 8)
  end)

  it("sends alone what a batch cannot take", function()
    local alone = {
      { topic = "Orders", body = "level", delay_level = 1 },
      { topic = "Orders", body = "delay", delay_ms = 1000 },
      { topic = "Orders", body = "light", lmq = "a" },
      { topic = "Orders", body = ("long "):rep(2000) }, -- is to be compressed
      { topic = "Orders", body = "p", properties = { p = ("v"):rep(32100) } },
    }
    for _ = 1, 2 do
      for _, message in ipairs(alone) do assert(producer:send_async(message)) end
    end
    assert.is_true(producer:flush())
    assert.equal(0, #batches())
    assert.equal(11, c.mock:count())
  end)

  it("sends alone what is longer than batch_max_bytes", function()
    local small = c:add_producer { auto_batch = true, batch_max_bytes = 500 }
    for _ = 1, 4 do assert(small:send_async { topic = "Orders", body = ("x"):rep(600) }) end
    assert.is_true(small:flush())
    assert.equal(0, #batches())
  end)

  it("asks a selector for each message first, and gathers by queue", function()
    local asked = 0
    local got = send_together(24, nil, {
      selector = function(queues, message)
        asked = asked + 1
        return queues[tonumber(message.body:match "%d+") % 3 + 1]
      end,
    })
    assert.equal(24, asked)
    assert.equal(3, #batches())
    for i, own in ipairs(got) do
      assert.equal(("Orders@broker-a#%d"):format(i % 3), tostring(own.result.queue))
    end
  end)

  it("keeps the order of what one task sends to one queue, whatever its tags", function()
    local queue = { broker = "broker-b", id = 1 }
    for i = 1, 60 do
      local message = { topic = "Orders", body = ("%d"):format(i) }
      if i % 7 < 2 then message.tags = "t" end
      if i % 11 == 0 then message.delay_level = 1 end
      assert(producer:send_async(message, { queue = queue }))
    end
    assert.is_true(producer:flush())
    local delivered = 0
    for i, message in ipairs(c.mock:messages("Orders", "broker-b", 1)) do
      if message.delivered then -- what waits has no place in the queue yet
        assert.equal(delivered, message.queue_offset)
        delivered = delivered + 1
      end
      if message.body ~= "the route is known" then
        if i > 1 then
          local before = c.mock:messages("Orders", "broker-b", 1)[i - 1].body
          if tonumber(before) then assert.is_true(tonumber(before) < tonumber(message.body)) end
        end
      end
    end
  end)

  it("tells each what the broker refused", function()
    c.mock:rule { code = "SEND_BATCH_MESSAGE", answer = { code = 13, remark = "no" } }
    local got = send_together(10)
    local ids = {}
    for _, own in ipairs(got) do
      assert.is_nil(own.result)
      assert.same({ "broker", 13, 1, "Orders" },
        { own.err.kind, own.err.code, own.err.attempts, own.err.topic })
      assert.matches("no", own.err.message)
      ids[own.err.msg_id] = true
    end
    local n = 0
    for _ in pairs(ids) do n = n + 1 end
    assert.equal(10, n)
    assert.equal(10, producer:stats().failed)
  end)

  it("tries a batch again as one, with the same ids", function()
    c.mock:rule { code = "SEND_BATCH_MESSAGE", times = 1, answer = { code = 2 } }
    local got = send_together(10)
    assert.equal(2, #batches())
    assert.equal(batches()[1].body, batches()[2].body)
    for _, own in ipairs(got) do assert.equal(2, own.result.attempts) end
  end)

  it("lets what waits leave after batch_max_delay, and at a flush", function()
    local slow = c:add_producer { auto_batch = true, batch_max_delay = 30000, timeout = 60000 }
    local function later(body)
      assert(slow:send_async({ topic = "Orders", body = body }, function() end))
    end
    local lone = c.mock:rule { code = "SEND_MESSAGE_V2", silent = true }
    later "first"
    assert(wait(function() return lone.seen == 1 end, 10000))
    later "second"
    later "third"
    rocketmq.sleep(20)
    assert.equal(2, slow:stats().gathered)
    local task = rocketmq.spawn(function() return slow:flush(20) end)
    assert(wait(function() return #batches() == 1 end, 10000))
    task:wait()
    assert.equal(0, slow:stats().gathered)
    slow:shutdown(1)
    slow = c:add_producer { auto_batch = true, batch_max_delay = 5, timeout = 60000 }
    later "first"
    assert(wait(function() return lone.seen == 2 end, 10000))
    later "second"
    later "third"
    assert(wait(function() return #batches() == 2 end, 10000))
    slow:shutdown(1)
  end)

  it("charges nothing for what is refused", function()
    local tight = c:add_producer { auto_batch = true, batch_total_bytes = 1000 }
    assert(tight:send { topic = "Orders", body = "the route is known" })
    for _ = 1, 100 do
      assert.is_nil((tight:send_async { topic = "Orders", body = "" }))
      assert.is_nil((tight:send_async { topic = "Orders", body = "x", keys = { "a b" } }))
    end
    assert.equal(0, tight:stats().gathered)
    assert(tight:queues "Orders") -- what waits for a route is not gathered yet
    for _ = 1, 4 do assert(tight:send_async { topic = "Orders", body = "x" }) end
    assert.equal(4, tight:stats().gathered)
    assert.is_true(tight:flush())
  end)

  it("bounds what waits: beyond batch_total_bytes messages go alone", function()
    local tight = c:add_producer { auto_batch = true, batch_total_bytes = 1000 }
    assert(tight:send { topic = "Orders", body = "the route is known" })
    for _ = 1, 100 do assert(tight:send_async { topic = "Orders", body = ("x"):rep(100) }) end
    local gathered = tight:stats().gathered
    assert.is_true(gathered > 1 and gathered <= 10)
    assert.is_true(tight:flush())
    assert.equal(101, tight:stats().acknowledged)
  end)

  it("calls hooks for each message", function()
    local before, after = {}, {}
    producer:add_hook {
      before = function(ctx)
        before[ctx.message.body] = (before[ctx.message.body] or 0) + 1
        ctx.message.properties = { seen = ctx.message.body }
      end,
      after = function(ctx)
        local id = ctx.result and ctx.result.msg_id
        after[ctx.message.body] = id
      end,
    }
    local got = send_together(20)
    local found = by_body()
    for i, own in ipairs(got) do
      local body = "body " .. i
      assert.equal(1, before[body])
      assert.equal(own.result.msg_id, after[body])
      assert.equal(body, found[body].properties.seen)
    end
    assert.is_true(#batches() >= 1)
  end)

  it("lets a hook forbid one message and send the others", function()
    producer:add_hook { check_forbidden = function(ctx)
      if ctx.message.body == "body 3" then return "not this one" end
    end }
    local got = send_together(5)
    assert.equal("hook", got[3].err.kind)
    assert.matches("not this one", got[3].err.message)
    for i, own in ipairs(got) do
      if i ~= 3 then assert.equal("SEND_OK", own.result.status) end
    end
    assert.equal(5, c.mock:count())
  end)

  it("leaves nothing at the shutdown", function()
    for i = 1, 500 do assert(producer:send_async { topic = "Orders", body = "x" .. i }) end
    assert.is_true(producer:shutdown())
    local stats = producer:stats()
    assert.same({ 501, 0, 0, 0, 0 }, { stats.acknowledged, stats.failed, stats.gathered,
      stats.inflight, stats.inflight_bytes })
    assert.equal(501, c.mock:count())
  end)

  it("stays within max_inflight", function()
    local narrow = c:add_producer { auto_batch = true, max_inflight = 8 }
    for _ = 1, 200 do
      assert(narrow:send_async { topic = "Orders", body = "x" })
      assert.is_true(narrow:stats().inflight <= 8)
    end
    assert.is_true(narrow:flush())
    assert.equal(200, narrow:stats().acknowledged)
  end)
end)
