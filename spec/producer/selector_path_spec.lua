-- Selectors: how they are called, what they may give, and what their errors come to.
local child = require "spec.support.child"
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"
local wait = require "rocketmq.mock.wait"

local SEND = "SEND_MESSAGE_V2"

describe("a selector", function()
  local c, producer
  before_each(function()
    c = cluster.new { brokers = 2, topics = { Orders = 4 } }
    producer = c.producer
  end)
  after_each(function() c:finish() end)

  local message = { topic = "Orders", body = "x", tags = "t", properties = { p = "v" } }

  -- The three modes alike: what a send with these options comes to.
  local modes = {
    send = function(options) return producer:send(message, options) end,
    ["send in a coroutine"] = function(options)
      return coroutine.wrap(function() return producer:send(message, options) end)()
    end,
    send_async = function(options)
      local ended, result, err
      local ok, why = producer:send_async(message, options, function(...)
        ended, result, err = true, ...
      end)
      if not ok then return nil, why end
      assert(wait(function() return ended end, 10000))
      return result, err
    end,
  }

  for name, send in pairs(modes) do
    describe("of " .. name, function()
      it("gets queues, message, argument and ctx", function()
        local asked
        local options = { arg = { "mine" }, selector = function(queues, m, arg, ctx)
          asked = { texts = {}, m = m, arg = arg, attempt = ctx.attempt,
            last_broker = ctx.last_broker, available = ctx.available(queues[1]) }
          for i, queue in ipairs(queues) do asked.texts[i] = tostring(queue) end
          return queues[6]
        end }
        for _ = 1, 2 do
          local result = assert(send(options))
          assert.equal("Orders@broker-b#1", tostring(result.queue))
          assert.same({ "Orders@broker-a#0", "Orders@broker-a#1", "Orders@broker-a#2",
            "Orders@broker-a#3", "Orders@broker-b#0", "Orders@broker-b#1", "Orders@broker-b#2",
            "Orders@broker-b#3" }, asked.texts)
          assert.same(message, asked.m)
          assert.equal(options.arg, asked.arg)
          assert.same({ 1, nil, true }, { asked.attempt, asked.last_broker, asked.available })
        end
      end)

      it("may give a queue, its number, or a table that names it", function()
        for _, given in ipairs { 1, 8, { broker = "broker-b", id = 3 },
          assert(producer:queues "Orders")[5] } do
          local result = assert(send { selector = function() return given end })
          local expected = type(given) ~= "number" and given
            or assert(producer:queues "Orders")[given]
          assert.same({ expected.broker, expected.id }, { result.queue.broker, result.queue.id })
        end
      end)

      it("gets false and nil as arguments, too", function()
        local got = {}
        local function selector(_, _, arg)
          got[#got + 1] = tostring(arg)
          return 1
        end
        assert(send { selector = selector, arg = false })
        assert(send { selector = selector })
        assert.same({ "false", "nil" }, got)
      end)

      local wrong = {
        { "nil", function() return nil end, "returned nil%. It must return one of the 8 queues" },
        { "nothing", function() end, "returned nil" },
        { "a number out of range", function() return 9 end, "returned 9%..* from 1 to 8" },
        { "0", function() return 0 end, "returned 0" },
        { "a fraction", function() return 1.5 end, "returned 1%.5" },
        { "NaN", function() return 0 / 0 end, "returned nan" },
        { "a text", function() return "1" end, "returned a string" },
        { "an empty table", function() return {} end, "returned a table" },
        { "a queue that is not there", function() return { broker = "broker-b", id = 4 } end,
          "returned Orders@broker%-b#4, which is none of them" },
        { "an unknown broker", function() return { broker = "z", id = 0 } end,
          "returned Orders@z#0, which is none of them" },
        { "an error", function() error "boom" end,
          "selector_path_spec.lua:%d+: boom\nstack trace" },
        { "an error that is no text", function() error(setmetatable({}, {
          __tostring = function() return "special" end })) end, "special\nstack traceback" },
        { "an error without a text", function() error {} end, "error object is a table value" },
        { "a yield", function() coroutine.yield() end, "selector has to answer at once" },
        { "a wait", function() rocketmq.sleep(1) end, "sleep cannot wait here" },
        { "a send that waits", function() producer:send(message) end, "send cannot wait here" },
        { "a send that waits in a coroutine", function()
          coroutine.wrap(function() producer:send(message) end)()
        end, "send cannot wait here" },
      }
      for _, one in ipairs(wrong) do
        it("that gives " .. one[1] .. " fails its message clearly, and no other", function()
          local result, err = send { selector = one[2] }
          assert.is_nil(result)
          assert.equal("selector", err.kind)
          assert.equal("Orders", err.topic)
          assert.equal(0, err.attempts)
          assert.is_false(err.maybe_stored)
          assert.matches(one[3], err.message)
          assert.matches("selector_path_spec.lua:%d+", err.message)
          assert.equal(0, c.mock:count())
          assert(send { selector = function() return 1 end })
          assert.equal(1, c.mock:count())
          assert.equal(0, producer:stats().inflight)
        end)
      end

      it("may do what it likes to the list and the ctx, the next one has them whole", function()
        local harm = {
          function(queues) table.remove(queues, 1) end,
          function(queues) queues[#queues] = nil end,
          function(queues) queues[1], queues[2] = queues[2], queues[1] end,
          function(queues) queues[3] = "a text" end,
          function(queues) queues[#queues + 1] = queues[1] end,
          function(queues) for i = #queues, 1, -1 do queues[i] = nil end end,
          function(_, ctx) ctx.available = nil ctx.attempt = 17 ctx.last_broker = "x" end,
        }
        for _, one in ipairs(harm) do
          assert(send { selector = function(queues, _, _, ctx)
            one(queues, ctx)
            return 1
          end })
          assert(send { selector = function(queues, _, _, ctx)
            assert(#queues == 8 and tostring(queues[1]) == "Orders@broker-a#0"
              and tostring(queues[2]) == "Orders@broker-a#1" and ctx.attempt == 1
              and tostring(queues[3]) == "Orders@broker-a#2" and ctx.last_broker == nil
              and tostring(queues[8]) == "Orders@broker-b#3" and ctx.available(queues[1]))
            return 8
          end })
        end
      end)

      it("gets the same list until the route changes", function()
        local lists = {}
        local function selector(queues)
          lists[#lists + 1] = queues
          return #queues
        end
        assert(send { selector = selector })
        assert(send { selector = selector })
        assert.equal(lists[1], lists[2])
        c.mock:broker("broker-b"):set_topic("Orders", { queues = 2 })
        c.mock:rule { code = SEND, times = 1, answer = { code = 17 } }
        producer:send(message, { retries = 0 })
        assert(wait(function() return #assert(producer:queues "Orders") == 6 end, 5000))
        local result = assert(send { selector = selector })
        assert.equal("Orders@broker-b#1", tostring(result.queue))
        assert.equal(6, #lists[3])
      end)

      it("is asked again when nothing was written, and told of the broker", function()
        c.mock:broker("broker-a"):stop()
        local asked = {}
        local result = assert(send { selector = function(queues, _, _, ctx)
          asked[#asked + 1] = { ctx.attempt, ctx.last_broker }
          return ctx.attempt == 1 and 1 or queues[5]
        end })
        assert.equal("broker-b", result.queue.broker)
        assert.same({ { 1 }, { 2, "broker-a" } }, asked)
        assert.equal(2, result.attempts)
        c.mock:broker("broker-a"):start()
      end)

      it("is not asked again when the message may have been stored", function()
        c.mock:rule { at = "broker-a", code = SEND, close = true }
        local asked = 0
        local result, err = send { selector = function()
          asked = asked + 1
          return 1
        end }
        assert.is_nil(result)
        assert.equal("closed", err.kind)
        assert.is_true(err.maybe_stored)
        assert.matches("may have been stored", err.message)
        assert.same({ 1, 1 }, { asked, err.attempts })
      end)

      it("may send, also with a selector, without waiting", function()
        local inner = {}
        assert(send { selector = function()
          inner[1] = { producer:send_oneway(message) }
          inner[2] = { producer:send_async(message, { selector = function(queues)
            inner[3] = #queues
            return 2
          end }) }
          return 1
        end })
        assert.same({ { true }, { true }, 8 }, inner)
        assert(c.mock:wait(3))
      end)

      it("that calls itself by sending is stopped", function()
        local depth, errors = 0, {}
        local function selector()
          depth = depth + 1
          producer:send_async(message, { selector = selector }, function(_, err)
            errors[#errors + 1] = err
          end)
          return 1
        end
        assert(send { selector = selector })
        assert(wait(function() return #errors == 1 end, 5000))
        assert.matches("nested too deep", errors[1].message)
        assert.equal(16, depth)
      end)
    end)
  end

  it("sees the fields that a message has from its metatable", function()
    local shared = setmetatable({}, { __index = { topic = "Orders", body = "from afar" } })
    local seen = {}
    local options = { selector = function(_, shown)
      seen[#seen + 1] = shown.body
      return 1
    end }
    assert(producer:send(shared, options))
    local done
    assert(producer:send_async(shared, options, function(result) done = result end))
    assert(wait(function() return done end, 10000))
    assert(producer:send_batch({ shared }, options))
    assert.same({ "from afar", "from afar", "from afar" }, seen)
  end)

  it("of an async send sees the message as it was", function()
    local seen = {}
    local reused = { topic = "Orders", properties = {} }
    for i = 1, 5 do
      reused.body, reused.properties.n = "body " .. i, tostring(i)
      -- No route is known yet, so all of these are asked later.
      assert(producer:send_async(reused, { arg = i, selector = function(_, m, arg)
        seen[arg] = m.body .. " " .. m.properties.n
        return 1
      end }))
    end
    assert.same({}, seen)
    assert.is_true(producer:flush())
    assert.same({ "body 1 1", "body 2 2", "body 3 3", "body 4 4", "body 5 5" }, seen)
  end)

  it("does not change the order of sends", function()
    for i = 1, 200 do
      assert(producer:send_async({ topic = "Orders", body = tostring(i) },
        { selector = function() return 3 end }))
    end
    assert.is_true(producer:flush())
    for i, stored in ipairs(c.mock:messages("Orders", "broker-a", 2)) do
      assert.equal(tostring(i), stored.body)
    end
    assert.equal(200, #c.mock:messages("Orders", "broker-a", 2))
  end)

  it("gets an ordered topic's queues by broker and id all the same", function()
    c:finish()
    c = cluster.new { brokers = 2, topics = { Ordered = { order = "broker-b:2;broker-a:3" } } }
    producer = c.producer
    local seen = {}
    local result = assert(producer:send({ topic = "Ordered", body = "x" },
      { selector = function(queues)
        for i, queue in ipairs(queues) do seen[i] = tostring(queue) end
        return 4
      end }))
    assert.same({ "Ordered@broker-a#0", "Ordered@broker-a#1", "Ordered@broker-a#2",
      "Ordered@broker-b#0", "Ordered@broker-b#1" }, seen)
    assert.equal("Ordered@broker-b#0", tostring(result.queue))
  end)

  it("keeps nothing alive that has passed through it", function()
    local weak = setmetatable({}, { __mode = "k" })
    for _ = 1, 50 do
      local arg = {}
      weak[arg] = true
      assert(producer:send(message, { arg = arg, selector = function() return 1 end }))
      arg = {}
      weak[arg] = true
      assert(producer:send_async(message, { arg = arg, selector = function() return 1 end },
        function() return arg end))
    end
    assert.is_true(producer:flush())
    rocketmq.sleep(1)
    collectgarbage()
    collectgarbage()
    local left = 0
    for _ in pairs(weak) do left = left + 1 end
    assert.is_true(left <= 2, left .. " are left") -- the last ones may still lie on a stack
  end)

  it("must be a function, without a queue beside it", function()
    assert.error_matches(function() producer:send(message, { selector = 5 }) end,
      "option selector must be a function, or a selector's name, not number")
    assert.error_matches(function()
      producer:send(message, { selector = print, queue = { broker = "b", id = 0 } })
    end, "options queue and selector exclude each other")
    assert.error_matches(function() producer:send_async(message, { arg = 1 }) end,
      "option arg is for the selector")
    assert.error_matches(function() producer:send(message, { selektor = print }) end,
      "did you mean 'selector'")
  end)

  it("keeps ctx.available harmless when the producer is gone", function()
    local ended = child.run { "--namesrv=" .. c.mock.namesrv, "-e", [[
      local rocketmq = require "rocketmq"
      local kept, queue
      do
        local producer = rocketmq.producer { group = "g" }
        assert(producer:send({ topic = "Orders", body = "x" }, { selector = function(q, _, _, ctx)
          kept, queue = ctx, q[1]
          return 1
        end }))
        print(kept.available(queue), pcall(kept.available, "x"))
        producer:shutdown()
      end
      collectgarbage() collectgarbage()
      rocketmq.sleep(10)
      print(kept.available(queue))
    ]] }
    assert.equal("true\tfalse\tavailable must be given a queue, not string\nfalse\n", ended.stdout)
    assert.equal(0, ended.code, ended.stderr)
  end)
end)
