-- Hooks: when they are called, in which order, and what they see.
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"
local wait = require "rocketmq.mock.wait"

local SEND = "SEND_MESSAGE_V2"

-- Everything that a ctx has, while its hook runs.
local FIELDS = { "producer", "group", "mode", "topic", "message_type", "queue", "broker", "addr",
  "born_host", "msg_id", "attempt", "elapsed_ms", "will_retry", "result", "err" }

local function look(ctx)
  local seen = {}
  for _, name in ipairs(FIELDS) do seen[name] = ctx[name] end
  seen.body, seen.tags, seen.flag, seen.wait =
    ctx.message.body, ctx.message.tags, ctx.message.flag, ctx.message.wait
  seen.keys, seen.properties, seen.message_topic =
    ctx.message.keys, ctx.message.properties, ctx.message.topic
  return seen
end

describe("hooks", function()
  local c, producer
  before_each(function()
    c = cluster.new { brokers = 2, topics = { Orders = 2 } }
    producer = c.producer
  end)
  after_each(function() c:finish() end)

  local message = { topic = "Orders", body = "x\0y", tags = "t", keys = { "k1", "k2" },
    properties = { p = "v" }, flag = 7, wait = false }

  -- What a send in each mode comes to.
  local modes = {
    sync = function(options) return producer:send(message, options) end,
    async = function(options)
      local ended, result, err
      assert(producer:send_async(message, options, function(...)
        ended, result, err = true, ...
      end))
      assert(wait(function() return ended end, 10000))
      return result, err
    end,
    oneway = function(options)
      assert(producer:send_oneway(message, options))
      assert(producer:flush())
    end,
  }

  it("see what type the message is of", function()
    local seen
    local hook = { before = function(ctx) seen = { ctx.message_type } end,
      after = function(ctx) seen[2] = ctx.message_type end }
    producer:add_hook(hook)
    local soon = os.time() * 1000 + 5000
    for _, case in ipairs {
      { "delay", { delay_level = 1 } },
      { "delay", { delay_ms = 1 } },
      { "delay", { delay_seconds = 1 } },
      { "delay", { deliver_at = soon } },
      { "normal", {} },
      { "normal", { sharding_key = "s", properties = { TAG = "delay", half = "true" } } },
    } do
      case[2].topic, case[2].body = "Orders", "x"
      assert(producer:send(case[2]))
      assert.same({ case[1], case[1] }, seen, (next(case[2])))
    end
    local transactions = rocketmq.transaction_producer { group = "tx", namesrv = c.mock.namesrv,
      check = function() return "commit" end }
    transactions:add_hook(hook)
    assert(transactions:send_in_transaction({ topic = "Orders", body = "x" },
      function() return "commit" end))
    assert.same({ "half", "half" }, seen)
    -- What the same producer sends beside its transactions is none.
    assert(transactions:send { topic = "Orders", body = "x" })
    assert.same({ "normal", "normal" }, seen)
    transactions:shutdown()
  end)

  for mode, send in pairs(modes) do
    it("of a send that is " .. mode .. " see all of it", function()
      local before, after
      producer:add_hook { before = function(ctx) before = look(ctx) end,
        after = function(ctx) after = look(ctx) end }
      local result = send()
      for _, seen in ipairs { before, after } do
        assert.equal(producer, seen.producer)
        assert.equal("spec", seen.group)
        assert.equal(mode, seen.mode)
        assert.equal("Orders", seen.topic)
        assert.equal("Orders", seen.message_topic)
        assert.equal("normal", seen.message_type)
        assert.equal(seen.broker, seen.queue.broker)
        assert.equal(c.mock:broker(seen.broker).addr, seen.addr)
        assert.equal(producer.client_id:match "^[^@]*", seen.born_host)
        assert.equal(1, seen.attempt)
        assert.equal("x\0y", seen.body)
        assert.equal("t", seen.tags)
        assert.same({ "k1", "k2" }, seen.keys)
        assert.same({ p = "v" }, seen.properties)
        assert.equal(7, seen.flag)
        assert.is_false(seen.wait)
      end
      assert.same({}, { before.elapsed_ms, before.will_retry, before.result, before.err })
      assert.equal("number", type(after.elapsed_ms))
      assert.is_false(after.will_retry)
      assert.is_nil(after.err)
      if mode == "oneway" then
        assert.is_nil(after.result) -- nobody has said that it is stored
      else
        assert.same(result:fields(), after.result:fields())
        assert.equal(result.msg_id, before.msg_id)
      end
    end)
  end

  it("see empty keys and properties where there are none", function()
    local keys, properties, tags
    producer:add_hook { before = function(ctx)
      keys, properties, tags = ctx.message.keys, ctx.message.properties, ctx.message.tags
    end }
    assert(producer:send { topic = "Orders", body = "x" })
    assert.same({}, keys)
    assert.same({}, properties)
    assert.is_nil(tags)
  end)

  it("are called in the order of their adding, until they are removed", function()
    local calls = {}
    local function note(name) return function() calls[#calls + 1] = name end end
    local first = producer:add_hook { name = "a", before = note "a before", after = note "a after" }
    producer:add_hook { name = "b", check_forbidden = note "b check", before = note "b before",
      after = note "b after" }
    producer:add_hook { name = "c", check_forbidden = note "c check" }
    assert(producer:send(message))
    assert.same({ "b check", "c check", "a before", "b before", "a after", "b after" }, calls)
    calls = {}
    assert.is_true(producer:remove_hook(first))
    assert.is_false(producer:remove_hook(first))
    assert(producer:send(message))
    assert.same({ "b check", "c check", "b before", "b after" }, calls)
  end)

  it("belong to their producer", function()
    local called = 0
    producer:add_hook { before = function() called = called + 1 end }
    assert(c:add_producer():send(message))
    assert.equal(0, called)
  end)

  it("keep what they set in ctx from before to after of an attempt", function()
    local kept = {}
    producer:add_hook {
      before = function(ctx) ctx.mine = ctx.attempt * 10 end,
      after = function(ctx) kept[#kept + 1] = ctx.mine end,
    }
    c.mock:rule { code = SEND, times = 2, answer = { code = "SYSTEM_BUSY" } }
    assert(producer:send(message))
    assert.same({ 10, 20, 30 }, kept)
  end)

  it("see which attempts failed, and whether another follows", function()
    local seen = {}
    producer:add_hook {
      before = function(ctx) seen[#seen + 1] = { "before", ctx.attempt, ctx.broker } end,
      after = function(ctx)
        seen[#seen + 1] = { "after", ctx.attempt, ctx.broker, ctx.will_retry,
          ctx.err and ctx.err.kind, ctx.err and #ctx.err.tries, ctx.result and ctx.result.status }
      end,
    }
    c.mock:rule { at = "broker-a", code = SEND, answer = { code = "SYSTEM_BUSY" } }
    for _ = 1, 4 do
      seen = {}
      local result = assert(producer:send(message))
      assert.equal("broker-b", result.queue.broker)
      if result.attempts == 2 then break end
    end
    assert.same({
      { "before", 1, "broker-a" }, { "after", 1, "broker-a", true, "broker", 1 },
      { "before", 2, "broker-b" }, { "after", 2, "broker-b", false, nil, nil, "SEND_OK" },
    }, seen)
  end)

  it("see the end of a send that had no attempt", function()
    local seen = {}
    producer:add_hook {
      before = function() seen[#seen + 1] = "before" end,
      after = function(ctx)
        seen[#seen + 1] = look(ctx)
      end,
    }
    local _, err = producer:send({ topic = "Orders", body = "x" },
      { queue = { broker = "nowhere", id = 0 } })
    assert.equal("route", err.kind)
    assert.equal(1, #seen)
    assert.equal(0, seen[1].attempt)
    assert.is_false(seen[1].will_retry)
    assert.same({}, { seen[1].queue, seen[1].broker, seen[1].addr })
    assert.equal(err.message, seen[1].err.message)
    assert.equal(err.msg_id, seen[1].msg_id)
  end)

  it("do not see what is refused at once", function()
    local called = 0
    producer:add_hook { after = function() called = called + 1 end }
    assert.is_nil((producer:send { topic = "Orders", body = "" }))
    assert.equal(0, called)
  end)

  it("cannot read what they have not read while they ran", function()
    local kept, kept_message
    local first = producer:add_hook { before = function(ctx)
      kept, kept_message = ctx, ctx.message
      assert(ctx.broker and ctx.message.tags)
    end }
    assert(producer:send(message))
    assert.equal("string", type(kept.broker))
    assert.equal("t", kept_message.tags)
    assert.error_matches(function() return kept.addr end, "'addr' cannot be read any more")
    assert.error_matches(function() return kept_message.body end, "'body' cannot be read any more")
    assert.is_nil(kept.unknown)
    -- Nor while another one runs.
    producer:remove_hook(first)
    producer:add_hook { before = function() kept = { pcall(function() return kept.addr end) } end }
    assert(producer:send(message))
    assert.is_false(kept[1])
  end)

  it("may be added and removed by hooks; attempts keep those that they began with", function()
    local calls, second = {}, nil
    local function late() calls[#calls + 1] = "late" end
    local first
    first = producer:add_hook {
      before = function()
        producer:remove_hook(first)
        second = second or producer:add_hook { before = late, after = late }
      end,
      after = function() calls[#calls + 1] = "first" end,
    }
    assert(producer:send(message))
    assert.same({ "first" }, calls)
    calls = {}
    assert(producer:send(message))
    assert.same({ "late", "late" }, calls)
    assert.is_true(producer:remove_hook(second))
    assert(producer:send(message))
    assert.same({ "late", "late" }, calls)
  end)

  it("may remove the last hook of all; its attempt has its after nevertheless", function()
    local calls, only = {}, nil
    only = producer:add_hook {
      before = function(ctx)
        calls[#calls + 1] = "before"
        ctx.mine = true
        producer:remove_hook(only)
      end,
      after = function(ctx) calls[#calls + 1] = ctx.mine and "after" or "after of another" end,
    }
    assert(producer:send(message))
    assert(producer:send(message))
    assert.same({ "before", "after" }, calls)
  end)

  it("of a producer that is gone cannot be read", function()
    local kept
    local other = rocketmq.producer { group = "other", namesrv = c.mock.namesrv }
    other:add_hook { before = function(ctx) kept = ctx end }
    assert(other:send(message))
    other:shutdown()
    other = nil -- luacheck: ignore 311
    collectgarbage()
    collectgarbage()
    rocketmq.sleep(1)
    assert.error_matches(function() return kept.addr end, "cannot be read any more")
  end)

  it("do not keep their producer once it is shut down", function()
    local weak = setmetatable({}, { __mode = "v" })
    do
      local other = rocketmq.producer { group = "other", namesrv = c.mock.namesrv }
      other:add_hook { before = function() return other.group end }
      assert(other:send(message))
      other:shutdown()
      weak.producer = other
    end
    collectgarbage()
    collectgarbage()
    assert.is_nil(weak.producer)
  end)

  for _, case in ipairs {
    { nil, "must be a table of functions" },
    { {}, "the hook has no function; there are check_forbidden, before" },
    { { befor = print }, "unknown name 'befor', did you mean 'before'%?" },
    { { before = 1 }, "before must be a function, not number" },
    { { before = print, strict = "yes" }, "strict must be a boolean, not string" },
    { { before = print, name = "" }, "the name is empty" },
  } do
    it("must be well-formed: " .. case[2], function()
      local _, text = pcall(function() producer:add_hook(case[1]) end)
      assert.matches("call_spec.lua:%d+: add_hook: .*" .. case[2], text)
    end)
  end

  it("cannot be added twice", function()
    local hook = producer:add_hook { before = function() end }
    assert.error_matches(function() producer:add_hook(hook) end, "has been added already")
  end)

  it("of 500 sends at a time do not mix up their attempts", function()
    local wrong, seen = 0, 0
    producer:add_hook {
      before = function(ctx)
        ctx.number = ctx.message.body
        ctx.message.properties.number = ctx.message.body
      end,
      after = function(ctx)
        if ctx.will_retry then return end
        seen = seen + 1
        if ctx.number ~= ctx.message.body or ctx.message.properties.number ~= ctx.number
          or ctx.result and ctx.result.msg_id ~= ctx.msg_id then wrong = wrong + 1 end
      end,
    }
    c.mock:rule { code = SEND, times = 100, close = true }
    local tasks = {}
    for i = 1, 500 do
      tasks[i] = rocketmq.spawn(function()
        return producer:send({ topic = "Orders", body = tostring(i) }, { retries = 20 })
      end)
    end
    for _, task in ipairs(tasks) do task:wait() end
    assert.equal(500, seen)
    assert.equal(0, wrong)
    for _, stored in ipairs(c.mock:messages "Orders") do
      assert.equal(stored.body, stored.properties.number)
    end
  end)
end)
