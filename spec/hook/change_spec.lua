-- What a before hook may change in a message, and what it must not leave there.
local cluster = require "spec.support.cluster"

local SEND = "SEND_MESSAGE_V2"

describe("a before hook", function()
  local c, producer
  before_each(function()
    c = cluster.new { brokers = 2, topics = { Orders = 2 } }
    producer = c.producer
  end)
  after_each(function() c:finish() end)

  local message = { topic = "Orders", body = "x", tags = "t", keys = "k1 k2",
    properties = { p = "v", q = "w" }, flag = 3 }

  local function change(work) producer:add_hook { name = "changer", before = work } end

  local function send_and_get()
    local count = #c.mock:messages "Orders"
    assert(producer:send(message))
    return c.mock:messages("Orders")[count + 1]
  end

  it("that only looks changes nothing", function()
    change(function(ctx)
      local m = ctx.message
      return m.body and m.tags and m.keys and m.properties and m.flag and m.wait and m.topic
    end)
    local got = send_and_get()
    assert.same({ "x", "t", { "k1", "k2" }, 3 }, { got.body, got.tags, got.keys, got.flag })
    assert.equal("v", got.properties.p)
    assert.equal("w", got.properties.q)
    assert.is_string(got.properties.UNIQ_KEY)
  end)

  local good = {
    { "adds a property", function(m) m.properties.new = "n" end,
      function(got) return { got.properties.new, got.properties.p }, { "n", "v" } end },
    { "changes and removes properties",
      function(m) m.properties.p, m.properties.q = "changed", nil end,
      function(got) return { got.properties.p, got.properties.q }, { "changed" } end },
    { "sets other properties", function(m) m.properties = { only = "this" } end,
      function(got)
        return { got.properties.only, got.properties.p, got.tags }, { "this", nil, "t" }
      end },
    { "removes all properties", function(m) m.properties = nil end,
      function(got)
        return { got.properties.p, got.properties.q, got.tags }, { nil, nil, "t" }
      end },
    { "changes tags", function(m) m.tags = "other" end,
      function(got) return { got.tags, got.properties.p }, { "other", "v" } end },
    { "removes tags that it has looked at", function(m) m.tags = m.tags and nil end,
      function(got) return { got.tags }, {} end },
    { "removes tags that it has not looked at", function(m) m.tags = nil end,
      function(got) return { got.tags }, {} end },
    { "adds a key", function(m) m.keys[#m.keys + 1] = "k3" end,
      function(got) return got.keys, { "k1", "k2", "k3" } end },
    { "sets a key", function(m) m.keys = "only" end,
      function(got) return got.keys, { "only" } end },
    { "removes the keys", function(m) m.keys = {} end,
      function(got) return got.keys or {}, {} end },
    { "changes the body", function(m) m.body = m.body .. "\0\1\2\255" end,
      function(got) return { got.body, got.tags }, { "x\0\1\2\255", "t" } end },
    { "makes a long body", function(m) m.body = ("b"):rep(100000) end,
      function(got) return { #got.body }, { 100000 } end },
  }
  for _, case in ipairs(good) do
    it("that " .. case[1], function()
      change(function(ctx) case[2](ctx.message) end)
      for _ = 1, 2 do
        local is, should_be = case[3](send_and_get())
        assert.same(should_be, is)
      end
      assert.same({ p = "v", q = "w" }, message.properties)
      assert.same({ "x", "t", "k1 k2" }, { message.body, message.tags, message.keys })
    end)
  end

  it("sees what the one before it has made of the message", function()
    change(function(ctx)
      ctx.message.tags = "first"
      ctx.message.properties.p = "first"
    end)
    local seen
    producer:add_hook { before = function(ctx)
      seen = { ctx.message.tags, ctx.message.properties.p }
      ctx.message.properties.q = "second"
    end }
    local got = send_and_get()
    assert.same({ "first", "first" }, seen)
    assert.same({ "first", "first", "second" }, { got.tags, got.properties.p, got.properties.q })
  end)

  it("starts from the script's message in each attempt", function()
    local bodies = {}
    change(function(ctx)
      bodies[#bodies + 1] = ctx.message.body
      ctx.message.body = ctx.message.body .. "!"
      ctx.message.properties["n" .. ctx.attempt] = "y"
    end)
    c.mock:rule { code = SEND, times = 2, close = true }
    assert(producer:send(message))
    assert.same({ "x", "x", "x" }, bodies)
    local got = c.mock:messages("Orders")[1]
    assert.equal("x!", got.body)
    assert.same({ nil, nil, "y" }, { got.properties.n1, got.properties.n2, got.properties.n3 })
  end)

  it("leaves what RocketMQ itself reads as it was", function()
    local id
    change(function(ctx)
      id = ctx.msg_id
      ctx.message.properties = { a = "b" }
    end)
    local result = assert(producer:send { topic = "Orders", body = "x", wait = false })
    local got = c.mock:messages("Orders")[1]
    assert.equal(id, result.msg_id)
    assert.equal(id, got.properties.UNIQ_KEY)
    assert.equal("false", got.properties.WAIT)
  end)

  -- One clear error that names hook and line, for that message only.
  local bad = {
    { "a body that is a number", function(m) m.body = 42 end, "body must be a string, not number" },
    { "no body", function(m) m.body = nil end, "body is nil; a message must have one" },
    { "an empty body", function(m) m.body = "" end, "body is empty" },
    { "a body over max_message_size", function(m) m.body = ("b"):rep(4194305) end,
      "body is 4194305 bytes long; max_message_size allows 4194304" },
    { "tags that are a number", function(m) m.tags = 1 end, "tags must be a string, not number" },
    { "keys that are a number", function(m) m.keys = 1 end, "keys must be a string or a list" },
    { "keys with a gap", function(m) m.keys = { "a", x = "b" } end, "without gaps" },
    { "a key with a space", function(m) m.keys = { "a b" } end, "has a space" },
    { "a key that is a table", function(m) m.keys = { {} } end, "each of keys must be a string" },
    { "properties that are a string", function(m) m.properties = "p" end,
      "properties must be a table of strings, not string" },
    { "a property that is a number", function(m) m.properties.count = 1 end,
      "properties.count must be a string, not number" },
    { "a property whose name is a number", function(m) m.properties[1] = "x" end,
      "each name in properties must be a string, not number" },
    { "a reserved property", function(m) m.properties.UNIQ_KEY = "x" end,
      "the property name UNIQ_KEY is used by RocketMQ itself; each message gets an id" },
    { "a delay", function(m) m.properties.DELAY = "3" end,
      "DELAY is used by RocketMQ itself, and a hook cannot set it; set delay_level where the" },
    { "another WAIT", function(m) m.properties.WAIT = "true" end,
      "WAIT is used by RocketMQ itself, and a hook cannot set it; set wait where the message" },
    { "keys among the properties", function(m) m.properties.KEYS = "k" end,
      "KEYS is used by RocketMQ itself; set the message's keys instead" },
    { "a separator in a property", function(m) m.properties.p = "a\1b" end,
      "RocketMQ separates properties with bytes 1 and 2" },
    { "tags that are no UTF-8", function(m) m.tags = "\255" end, "tags is not valid UTF%-8" },
    { "too many properties", function(m) m.properties.p = ("v"):rep(33000) end,
      "RocketMQ stores at most 32767" },
    { "another topic", function(m) m.topic = "Other" end, "topic cannot be changed by a hook" },
    { "another topic, having looked", function(m) m.topic = m.topic .. "2" end,
      "topic cannot be changed by a hook" },
    { "another flag", function(m) m.flag = 9 end, "flag cannot be changed by a hook" },
    { "a field that no message has", function(m) m.bodyy = "x" end,
      "it has the unknown field 'bodyy'; did you mean 'body'%?" },
  }
  for _, case in ipairs(bad) do
    it("that leaves " .. case[1] .. " fails the message", function()
      local broken = true
      local work = function(ctx)
        if broken then case[2](ctx.message) end
      end
      change(work)
      local line = debug.getinfo(work, "S").linedefined
      local result, err = producer:send(message)
      assert.is_nil(result)
      assert.equal("hook", err.kind)
      assert.matches(case[3], err.message)
      assert.matches("hook changer: its before %(.*change_spec.lua:" .. line .. "%)", err.message)
      assert.equal(0, err.attempts)
      assert.is_false(err.maybe_stored)
      assert.equal(1, producer:stats().hook_errors)
      assert.equal(0, c.mock:count())
      broken = false
      assert(producer:send(message))
    end)
  end

  it("that leaves what cannot be sent does not show it to after", function()
    local breaks = {
      function(m) m.body, m.tags = 42, "other" end,
      function(m) m.keys = 1 end,
      function(m) m.properties = "p" end,
      function(m) m.topic = nil end,
      function(_, ctx) rawset(ctx, "message", { body = {} }) end,
    }
    for _, work in ipairs(breaks) do
      local seen
      local hook = producer:add_hook {
        before = function(ctx)
          assert(ctx.message.keys)
          work(ctx.message, ctx)
        end,
        after = function(ctx)
          local m = ctx.message
          seen = { m.topic, m.body, m.tags, m.keys, m.properties }
        end,
      }
      assert.is_nil((producer:send(message)))
      assert.same({ "Orders", "x", "t", { "k1", "k2" }, { p = "v", q = "w" } }, seen)
      producer:remove_hook(hook)
    end
  end)

  it("may set keys to a text or nil, and properties to nil: others see tables", function()
    local seen = {}
    local function look(ctx) seen[#seen + 1] = { ctx.message.keys, ctx.message.properties } end
    local work
    change(function(ctx) work(ctx.message) end)
    producer:add_hook { before = look, after = look }
    work = function(m) m.keys, m.properties = "only", nil end
    assert.same({ "only" }, send_and_get().keys)
    work = function(m) m.keys = nil end
    assert(producer:send(message))
    local properties = { p = "v", q = "w" }
    assert.same({ { { "only" }, {} }, { { "only" }, {} }, { {}, properties }, { {}, properties } },
      seen)
  end)

  it("that replaces ctx.message fails the message", function()
    producer:add_hook { before = function(ctx)
      assert(ctx.message)
      rawset(ctx, "message", { body = "y" })
    end }
    local _, err = producer:send(message)
    assert.matches("ctx.message was replaced by another value", err.message)
  end)

  it("is told when what it sets would not be sent", function()
    local texts = {}
    change(function(ctx)
      for _, name in ipairs { "body", "tags", "message", "topic" } do
        local _, text = pcall(function() ctx[name] = "y" end)
        texts[#texts + 1] = text
      end
    end)
    assert.equal("x", send_and_get().body)
    assert.matches("ctx.body is not what is sent; set ctx.message.body", texts[1])
    assert.matches("ctx.tags is not what is sent", texts[2])
    assert.matches("ctx.message cannot be set", texts[3])
    assert.matches("ctx.topic cannot be set", texts[4])
  end)

  it("alone may change the message", function()
    local texts = {}
    local function try(ctx)
      local _, text = pcall(function() ctx.message.body = "y" end)
      texts[#texts + 1] = text
    end
    producer:add_hook { check_forbidden = try, after = try }
    assert.equal("x", send_and_get().body)
    for i = 1, 2 do assert.matches("can be changed by a before hook only", texts[i]) end
  end)
end)
