-- Hooks see each message of a batch as if it went alone.
local cluster = require "spec.support.cluster"

local BATCH = "SEND_BATCH_MESSAGE"

describe("hooks of a batch", function()
  local c, producer
  before_each(function()
    c = cluster.new({ brokers = 2, topics = { Orders = 2 } }, { max_message_size = 10000 })
    producer = c.producer
  end)
  after_each(function() c:finish() end)

  local function messages(n)
    local list = {}
    for i = 1, n or 3 do
      list[i] = { topic = "Orders", body = "m" .. i, tags = "t" .. i,
        properties = { n = tostring(i) } }
    end
    return list
  end

  -- What became of each message, by its body.
  local function count_ends()
    local ends = {}
    producer:add_hook { name = "counter", after = function(ctx)
      local at = ctx.message.properties.n
      ends[at] = ends[at] or { n = 0 }
      ends[at].n = ends[at].n + 1
      if ctx.will_retry then return end
      ends[at].last = ctx.err and ctx.err.kind or ctx.result and ctx.result.status or "sent"
      ends[at].id, ends[at].result, ends[at].err = ctx.msg_id, ctx.result, ctx.err
      ends[at].broker, ends[at].attempt = ctx.broker, ctx.attempt
    end }
    return ends
  end

  it("are called for each, and see its own", function()
    local ids = {}
    producer:add_hook { before = function(ctx)
      ids[ctx.message.properties.n] = ctx.msg_id
      assert.equal("m" .. ctx.message.properties.n, ctx.message.body)
      assert.equal(ctx.broker, ctx.queue.broker)
    end }
    local ends = count_ends()
    local results = assert(producer:send_batch(messages()))
    for i = 1, 3 do
      local at = ends[tostring(i)]
      assert.equal(1, at.n)
      assert.equal("SEND_OK", at.last)
      assert.same({ ids[tostring(i)], results[i].msg_id }, { at.id, at.id })
      assert.same(results[i]:fields(), at.result:fields())
      assert.equal(results[i].queue.broker, at.broker)
    end
    assert.equal(0, producer:stats().hook_errors)
  end)

  it("change each by itself, anew in each attempt", function()
    producer:add_hook { before = function(ctx)
      ctx.message.body = ctx.message.body .. "!" .. ctx.attempt
      if ctx.message.tags == "t2" then ctx.message.properties.second = "yes" end
    end }
    local ends = count_ends()
    c.mock:rule { code = BATCH, times = 1, close = true }
    assert(producer:send_batch(messages()))
    local stored = c.mock:messages "Orders"
    assert.equal(3, #stored)
    for i, message in ipairs(stored) do
      assert.equal(("m%d!2"):format(i), message.body)
      assert.equal(i == 2 and "yes" or nil, message.properties.second)
      assert.equal(2, ends[tostring(i)].n)
      assert.equal(2, ends[tostring(i)].attempt)
    end
  end)

  it("stop one, and the others go without it", function()
    producer:add_hook { name = "guard", check_forbidden = function(ctx)
      if ctx.message.body == "m2" then return "not this one" end
    end }
    local ends = count_ends()
    local results, err = producer:send_batch(messages())
    assert.same({ true, false, true }, { results[1] and true, results[2], results[3] and true })
    assert.matches("blocked by hook guard: not this one", err.failed[2].message)
    assert.equal(2, #c.mock:messages "Orders")
    assert.same({ "SEND_OK", "hook", "SEND_OK" },
      { ends["1"].last, ends["2"].last, ends["3"].last })
    assert.same({ 1, 0, 1 }, { ends["1"].attempt, ends["2"].attempt, ends["3"].attempt })
  end)

  it("stop all", function()
    producer:add_hook { check_forbidden = function() return "none" end }
    local ends = count_ends()
    local results, err = producer:send_batch(messages())
    assert.same({ false, false, false }, results)
    for i = 1, 3 do
      assert.equal("hook", err.failed[i].kind)
      assert.equal("hook", ends[tostring(i)].last)
    end
    assert.equal(0, c.mock:count())
  end)

  it("stop one after an attempt, which is told with it", function()
    producer:add_hook { check_forbidden = function(ctx)
      if ctx.attempt == 2 and ctx.message.body == "m3" then return "enough" end
    end }
    local ends = count_ends()
    c.mock:rule { code = BATCH, times = 1, close = true }
    local results, err = producer:send_batch(messages())
    assert.is_false(results[3])
    assert.same({ "hook", 1, true },
      { err.failed[3].kind, err.failed[3].attempts, err.failed[3].maybe_stored })
    assert.same({ 1, 2 }, { ends["3"].n, ends["1"].n })
    assert.equal("string", type(ends["3"].broker))
  end)

  it("that leave a wrong message, or are strict, fail that one", function()
    producer:add_hook { strict = true, before = function(ctx)
      if ctx.message.body == "m1" then ctx.message.body = 1 end
      if ctx.message.body == "m2" then error "broken" end
    end }
    local ends = count_ends()
    local results, err = producer:send_batch(messages())
    assert.same({ false, false }, { results[1], results[2] })
    assert.matches("body must be a string", err.failed[1].message)
    assert.matches("broken", err.failed[2].message)
    assert.equal("SEND_OK", results[3].status)
    assert.same({ 1, 1, 1 }, { ends["1"].n, ends["2"].n, ends["3"].n })
  end)

  it("may make it too long: what does not fit fails", function()
    producer:add_hook { before = function(ctx) ctx.message.body = ("b"):rep(4000) end }
    local results, err = producer:send_batch(messages())
    assert.same({ true, true, false }, { results[1] and true, results[2] and true, results[3] })
    assert.equal("hook", err.failed[3].kind)
    assert.matches("hooks have made the messages of its batch longer", err.failed[3].message)
    assert.matches("Send fewer at a time, with auto_batch by a lower batch_max_bytes.",
      err.failed[3].message, 1, true)
    assert.equal(2, #c.mock:messages "Orders")
  end)

  it("see results that are not as safe as asked for", function()
    local other = c:add_producer { retry_another_broker_when_not_store_ok = true }
    local seen = {}
    other:add_hook { after = function(ctx)
      seen[#seen + 1] = { ctx.message.body, ctx.attempt, ctx.will_retry, ctx.result.status,
        ctx.result.msg_id == ctx.msg_id }
    end }
    c.mock:rule { code = BATCH, times = 1, answer = { code = "FLUSH_DISK_TIMEOUT" }, store = true }
    assert(other:send_batch(messages(2)))
    assert.same({ { "m1", 1, true, "FLUSH_DISK_TIMEOUT", true },
      { "m2", 1, true, "FLUSH_DISK_TIMEOUT", true }, { "m1", 2, false, "SEND_OK", true },
      { "m2", 2, false, "SEND_OK", true } }, seen)
  end)

  it("are called for a oneway batch, too", function()
    local ends = count_ends()
    assert(producer:send_batch_oneway(messages()))
    assert(c.mock:wait(3))
    assert.is_true(producer:flush())
    assert.same({ "sent", "sent", "sent" }, { ends["1"].last, ends["2"].last, ends["3"].last })
  end)

  it("that send batches for what they have sent come to an end", function()
    local last
    producer:add_hook { after = function()
      local ok, err = producer:send_batch_async { { topic = "Orders", body = "again" } }
      if not ok then last = err end
    end }
    assert(producer:send_batch { { topic = "Orders", body = "first" } })
    assert(c.mock:wait(9))
    assert.is_true(producer:flush())
    assert.equal(9, c.mock:count())
    assert.matches("must leave its own messages alone", last.message)
  end)
end)
