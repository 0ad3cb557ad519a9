-- Hooks that raise, refuse, wait or send: what becomes of the message, and what is told.
local child = require "spec.support.child"
local cluster = require "spec.support.cluster"
local folder = require "spec.support.folder"
local rocketmq = require "rocketmq"

local SEND = "SEND_MESSAGE_V2"

describe("a hook", function()
  local c, producer
  before_each(function()
    c = cluster.new { brokers = 1, topics = { Orders = 2 } }
    producer = c.producer
  end)
  after_each(function() c:finish() end)

  local message = { topic = "Orders", body = "x" }
  local function errors() return producer:stats().hook_errors end

  for _, place in ipairs { "before", "after" } do
    it("that raises in " .. place .. " does not keep the message from being sent", function()
      producer:add_hook { [place] = function() error "broken" end }
      for i = 1, 3 do
        assert(producer:send(message))
        assert.equal(i, errors())
      end
      assert.equal(3, #c.mock:messages "Orders")
    end)

    it("that raises in " .. place .. " keeps no other hook from being called", function()
      local called = 0
      local function count() called = called + 1 end
      producer:add_hook { [place] = count }
      producer:add_hook { [place] = function() error {} end }
      producer:add_hook { [place] = count }
      assert(producer:send(message))
      assert.equal(2, called)
    end)
  end

  it("that raises has changed what it has changed until then", function()
    producer:add_hook { before = function(ctx)
      ctx.message.tags = "set"
      error "broken"
    end }
    assert(producer:send(message))
    assert.equal("set", c.mock:messages("Orders")[1].tags)
  end)

  it("that is strict fails the send before it is sent", function()
    local line, later, ends = nil, 0, {}
    local function raise()
      line = debug.getinfo(1, "l").currentline + 1
      error "broken"
    end
    producer:add_hook { name = "careful", strict = true, before = raise }
    producer:add_hook { before = function() later = later + 1 end,
      after = function(ctx) ends[#ends + 1] = ctx.err end }
    local result, err = producer:send(message)
    assert.is_nil(result)
    assert.equal("hook", err.kind)
    assert.equal("Orders", err.topic)
    assert.matches('Sending to topic "Orders" failed because of its strict hook careful: '
      .. ".*error_spec.lua:" .. line .. ": broken\nstack traceback:", err.message)
    assert.is_false(err.maybe_stored)
    assert.same({ 0, 0, 1 }, { c.mock:count(), later, errors() })
    assert.equal(1, #ends)
    assert.equal(err.message, ends[1].message)
  end)

  it("that is strict fails a send that is stored, and says so", function()
    producer:add_hook { strict = true, after = function() error "broken" end }
    local result, err = producer:send(message)
    assert.is_nil(result)
    assert.equal("hook", err.kind)
    assert.is_true(err.maybe_stored)
    assert.equal(1, #c.mock:messages "Orders")
  end)

  it("that is strict leaves a failure as it is", function()
    producer:add_hook { strict = true, after = function() error "broken" end }
    c.mock:rule { code = SEND, answer = { code = "MESSAGE_ILLEGAL" } }
    local _, err = producer:send(message)
    assert.equal("broker", err.kind)
    assert.equal(1, errors())
  end)

  local refusals = {
    { "a reason", function() return "not today" end, ": not today$" },
    { "an error", function() error("not today", 0) end, ": not today\nstack traceback" },
    { "true", function() return true end, "returned a boolean; it must return the reason" },
    { "a table", function() return {} end, "error_spec.lua:%d+%) returned a table; it must" },
  }
  for _, case in ipairs(refusals) do
    it("forbids with " .. case[1], function()
      producer:add_hook { name = "guard", check_forbidden = case[2] }
      local result, err = producer:send(message)
      assert.is_nil(result)
      assert.equal("hook", err.kind)
      assert.matches('^Sending to topic "Orders" was blocked by hook guard: ', err.message)
      assert.matches(case[3], err.message)
      assert.same({ 0, 0 }, { c.mock:count(), err.attempts })
    end)
  end

  it("forbids a retry, too", function()
    producer:add_hook { check_forbidden = function(ctx)
      if ctx.attempt > 1 then return "once is enough" end
    end }
    c.mock:rule { code = SEND, times = 1, close = true }
    local _, err = producer:send(message)
    assert.equal("hook", err.kind)
    assert.equal(1, err.attempts)
    assert.is_true(err.maybe_stored)
    assert(producer:send(message))
  end)

  it("lets pass with nil and false", function()
    producer:add_hook { check_forbidden = function() end }
    producer:add_hook { check_forbidden = function() return false end }
    assert(producer:send(message))
  end)

  local waits = {
    { "sends", function() producer:send { topic = "Orders", body = "y" } end,
      "send cannot wait here" },
    { "sleeps", function() rocketmq.sleep(1) end, "sleep cannot wait here" },
    { "flushes", function() producer:flush() end, "flush cannot wait here" },
    { "yields", function() coroutine.yield() end, "a hook has to answer at once, it cannot yield" },
  }
  for _, case in ipairs(waits) do
    for _, place in ipairs { "before", "after", "check_forbidden" } do
      it("that " .. case[1] .. " in " .. place .. " is told that it cannot wait", function()
        producer:add_hook { name = "waiter", strict = true, [place] = case[2] }
        local result, err = producer:send(message)
        assert.is_nil(result)
        assert.equal("hook", err.kind)
        assert.matches(case[3], err.message)
        producer:remove_hook(producer.hooks[1].hook)
        assert(producer:send(message))
      end)
    end
  end

  it("may send without waiting", function()
    producer:add_hook { after = function(ctx)
      if ctx.topic == "Audit" then return end
      assert(producer:send_async({ topic = "Audit", body = ctx.msg_id }))
      assert(producer:send_oneway({ topic = "Audit", body = ctx.msg_id }))
    end }
    local result = assert(producer:send(message))
    assert(c.mock:wait(3))
    for _, stored in ipairs(c.mock:messages "Audit") do
      assert.equal(result.msg_id, stored.body)
    end
  end)

  for _, place in ipairs { "before", "after" } do
    it("that sends for what it has sent in " .. place .. " comes to an end", function()
      local last
      producer:add_hook { [place] = function()
        local ok, err = producer:send_async { topic = "Orders", body = "again" }
        if not ok then last = err end
      end }
      assert(producer:send(message))
      assert(c.mock:wait(9))
      assert.is_true(producer:flush())
      assert.equal(9, c.mock:count())
      assert.equal("hook", last.kind)
      assert.matches("a hook that sends must leave its own messages alone", last.message)
    end)
  end

  it("may send with another producer, whose hooks send with the first", function()
    local other = c:add_producer()
    local refused = 0
    local function pass_on(to)
      return { before = function()
        if not to:send_oneway { topic = "Orders", body = "again" } then refused = refused + 1 end
      end }
    end
    producer:add_hook(pass_on(other))
    other:add_hook(pass_on(producer))
    assert(producer:send(message))
    assert.is_true(refused > 0)
    assert.is_true(c.mock:count() < 100)
    assert.equal(0, errors() + other:stats().hook_errors)
  end)

  it("survives a collection in the middle, and a producer that loses its handle", function()
    producer:add_hook {
      before = function(ctx)
        ctx.message.properties.a = ctx.message.body:rep(10)
        collectgarbage()
      end,
      after = function(ctx)
        collectgarbage()
        assert(ctx.message.properties.a == ctx.message.body:rep(10))
      end,
    }
    for _ = 1, 20 do assert(producer:send(message)) end
    assert.equal(0, errors())
  end)

  it("is told once for each place, with a traceback", function()
    local ended = child.run { "--mock=default", "-e", [[
      local producer = require("rocketmq").producer { group = "g" }
      local n = 0
      producer:add_hook { name = "broken", before = function()
        n = n + 1
        if n % 2 == 0 then error("even " .. n) end
        error("odd " .. n)
      end }
      for _ = 1, 6 do assert(producer:send { topic = "T", body = "x" }) end
      print(producer:stats().hook_errors)
    ]] }
    assert.equal(0, ended.code)
    assert.equal("6\n", ended.stdout)
    local told, odd, even = 0, 0, 0
    for line in ended.stderr:gmatch "[^\n]+" do
      if line:find("hook broken: its function before failed; this is told once", 1, true) then
        told = told + 1
      end
      if line:find "odd 1" then odd = odd + 1 end
      if line:find "even 2" then even = even + 1 end
    end
    assert.same({ 2, 1, 1 }, { told, odd, even })
    assert.matches("stack traceback:", ended.stderr)
  end)

  it("that never returns is stopped", function()
    local where = folder {
      ["h.lua"] = [[
        local stuck = true
        return { name = "stuck", strict = true, before = function()
          while stuck do end
        end }]],
      ["s.lua"] = [[
        local producer = require("rocketmq").producer { group = "g" }
        local _, err = producer:send({ topic = "T", body = "x" }, { timeout = 60000 })
        print(err.kind, err.message:match "strict hook stuck: h.lua:%d+")]],
    }
    local ended = child.run { "--mock=default", "--plugin-warn=10", "--plugin-limit=50", "--hook",
      "h.lua", "s.lua", cwd = where }
    assert.equal("hook\tstrict hook stuck: h.lua:3\n", ended.stdout, ended.stderr)
    assert.matches("the hook 'stuck' %(h.lua:2%) has not returned", ended.stderr)
  end)

  it("that ends the process with os.exit does so", function()
    local ended = child.run { "--mock=default", "-e", [[
      local producer = require("rocketmq").producer { group = "g" }
      producer:add_hook { before = function() os.exit(7) end }
      producer:send { topic = "T", body = "x" }
    ]] }
    assert.equal(7, ended.code)
  end)
end)
