-- Where a selector is given: with a send, with the producer, by its name.
local child = require "spec.support.child"
local cluster = require "spec.support.cluster"
local folder = require "spec.support.folder"
local rocketmq = require "rocketmq"
local wait = require "rocketmq.mock.wait"

describe("the selector of a producer", function()
  local c
  local known -- oneway messages that were seen
  before_each(function()
    known = {}
    c = cluster.new { brokers = 2, topics = { Orders = 4 } }
  end)
  after_each(function() c:finish() end)

  local message = { topic = "Orders", body = "x", properties = { p = "v" } }

  -- Where the message goes in each of the three ways to send.
  local function everywhere(producer, options)
    local texts = {}
    texts[1] = tostring(assert(producer:send(message, options)).queue)
    local got
    assert(producer:send_async(message, options, function(result, err)
      got = result and tostring(result.queue) or err
    end))
    assert(wait(function() return got end, 10000))
    texts[2] = got
    assert(producer:send_oneway(message, options))
    local function stored()
      for _, one in ipairs(c.mock:messages "Orders") do
        if one.oneway and not known[one] then return one end
      end
    end
    local one
    assert(wait(function()
      one = stored()
      return one
    end, 10000))
    known[one] = true
    texts[3] = ("Orders@%s#%d"):format(one.broker, one.queue_id)
    return texts
  end

  it("chooses for sends that name neither queue nor selector", function()
    local asked = {}
    local producer = c:add_producer { selector = function(queues, m, arg, ctx)
      asked[#asked + 1] = { #queues, m.properties and m.properties.p, arg, ctx.attempt }
      return 7
    end }
    for _, text in ipairs(everywhere(producer)) do assert.equal("Orders@broker-b#2", text) end
    assert.same({ { 8, "v", nil, 1 }, { 8, "v", nil, 1 }, { 8, "v", nil, 1 } }, asked)
    asked = {}
    for _, text in ipairs(everywhere(producer, { arg = "a", timeout = 5000 })) do
      assert.equal("Orders@broker-b#2", text)
    end
    assert.same({ 8, "v", "a", 1 }, asked[3])
    assert.equal("Orders@broker-b#2", tostring(assert(producer:send {
      topic = "Orders", body = "x" }).queue))
    -- The fields of a message that has more of them.
    assert.equal("Orders@broker-b#2", tostring(assert(producer:send {
      topic = "Orders", body = "x", tags = "t", keys = { "k" }, flag = 3 }).queue))
  end)

  it("gives way to a send's own queue or selector", function()
    local producer = c:add_producer { selector = function() error "not to be asked" end }
    for _, text in ipairs(everywhere(producer, { queue = { broker = "broker-a", id = 1 } })) do
      assert.equal("Orders@broker-a#1", text)
    end
    for _, text in ipairs(everywhere(producer, { selector = function() return 2 end })) do
      assert.equal("Orders@broker-a#1", text)
    end
    for _, text in ipairs(everywhere(producer, { selector = "hash", arg = 1 })) do
      assert.equal("Orders@broker-a#1", text)
    end
    assert(producer:send(message, { selector = "best" }))
    local _, err = producer:send(message)
    assert.matches("not to be asked", err.message)
  end)

  it("may be a name", function()
    local producer = c:add_producer { selector = "hash" }
    assert.equal("hash", producer:settings().selector)
    for _, text in ipairs(everywhere(producer, { arg = "order-1" })) do
      assert.equal("Orders@broker-b#2", text)
    end
    local result, err = producer:send(message)
    assert.is_nil(result)
    assert.equal("selector", err.kind)
    assert.matches("hash: its argument is nil; give option arg", err.message)
  end)

  it("may be a table that can be called", function()
    local near = rocketmq.selector.machine_room { rooms = { "hz" }, otherwise = "all" }
    local producer = c:add_producer { selector = near }
    local seen = {}
    for _ = 1, 8 do seen[tostring(assert(producer:send(message)).queue)] = true end
    local n = 0
    for _ in pairs(seen) do n = n + 1 end
    assert.equal(8, n)
    assert.is_nil(producer:settings().selector)
  end)

  it("chooses for a batch", function()
    local producer = c:add_producer { selector = "hash" }
    local results = assert(producer:send_batch({ message, message }, { arg = "order-1" }))
    for _, result in ipairs(results) do
      assert.equal("Orders@broker-b#2", tostring(result.queue))
    end
    producer = c:add_producer { selector = function(queues, m)
      return m.body == "x" and queues[3]
    end }
    results = assert(producer:send_batch { message, message })
    for _, result in ipairs(results) do
      assert.equal("Orders@broker-a#2", tostring(result.queue))
    end
    local _, err = producer:send_batch({ message }, { selector = "hash" })
    assert.matches("hash: its argument is nil", err.message)
    results = assert(producer:send_batch({ message }, { queue = { broker = "broker-b", id = 0 } }))
    assert.equal("Orders@broker-b#0", tostring(results[1].queue))
  end)

  it("is not changed by the table of settings, which stays as it was", function()
    local settings = { group = "g", namesrv = c.mock.namesrv, selector = function() return 1 end }
    local producer = rocketmq.producer(settings)
    assert.equal("function", type(settings.selector))
    settings.selector = nil
    assert.equal("Orders@broker-a#0", tostring(assert(producer:send(message)).queue))
    producer:shutdown()
  end)

  it("must be one", function()
    local wrong = {
      { 5, "setting selector must be a function, or a selector's name, not number" },
      { true, "setting selector must be a function, or a selector's name, not boolean" },
      { {}, "setting selector must be a function, or a selector's name, not table" },
      { "hsah", "setting selector: no selector is called 'hsah': did you mean 'hash'%?" },
      { "zzz", "no selector is called 'zzz': there are best, hash, hash_fnv1a, random" },
      { "sticky", "there is no selector 'sticky', but rocketmq.selector.sticky { ... } makes one" },
    }
    for _, case in ipairs(wrong) do
      local settings = { group = "g", namesrv = "127.0.0.1:1", selector = case[1] }
      local ok, err = pcall(function() rocketmq.producer(settings) end)
      assert.is_false(ok)
      assert.matches("given_spec.lua:%d+: ", err)
      assert.matches(case[2], err)
    end
    for _, case in ipairs(wrong) do
      local ok, err = pcall(function() c.producer:send(message, { selector = case[1] }) end)
      assert.is_false(ok)
      assert.matches("given_spec.lua:%d+: option selector", err)
    end
  end)
end)

describe("a selector that was loaded from a file", function()
  it("has its name wherever a selector does", function()
    local c = cluster.new { brokers = 2, topics = { Orders = 4 } }
    finally(function() c:finish() end)
    local where = folder {
      ["last.lua"] = "return { name = 'the_last', select = function(q) return #q end }",
      ["first.lua"] = "return function() return 1 end",
    }
    local ended = child.run { "--namesrv=" .. c.mock.namesrv, "--selector=" .. where .. "/last.lua",
      "--selector=" .. where .. "/first.lua", "-e", [[
        local rocketmq = require "rocketmq"
        local p = rocketmq.producer { group = "g", selector = "the_last" }
        local function send(options)
          print(assert(p:send({ topic = "Orders", body = "x" }, options)).queue)
        end
        send()
        send { selector = "first" }
        send { selector = rocketmq.selector.first }
        send { selector = rocketmq.selector.fallback(function() end, "the_last") }
        send { selector = rocketmq.selector.by(tostring, "first") }
        print(pcall(p.send, p, { topic = "Orders", body = "x" }, { selector = "second" }))
      ]] }
    assert.equal(0, ended.code, ended.stderr)
    local last, first = "Orders@broker-b#3\n", "Orders@broker-a#0\n"
    local queues, rest = ended.stdout:match "^(.-)(false.*)$"
    assert.equal(last .. first .. first .. last .. first, queues)
    assert.matches("option selector: no selector is called 'second': there are best, .*the_last",
      rest)
  end)
end)

describe("the selector best", function()
  it("is the producer's own choice in everything", function()
    local c = cluster.new({ brokers = 2, topics = { Orders = 2 } }, { selector = "hash" })
    finally(function() c:finish() end)
    -- A given queue is not tried elsewhere when the message may have been stored; a native choice is.
    local rule = c.mock:rule { at = "broker-a", code = "SEND_MESSAGE_V2", close = true }
    local went = {}
    for _ = 1, 8 do
      local result = assert(c.producer:send({ topic = "Orders", body = "x" },
        { selector = "best" }))
      assert.equal("broker-b", result.queue.broker)
      went[result.attempts] = true
    end
    assert.is_true(went[2])
    assert.is_true(rule.acted > 0)
    rule:remove()
    local seen = {}
    for _ = 1, 4 do
      local result = assert(c.producer:send({ topic = "Orders", body = "x" },
        { selector = rocketmq.selector.best }))
      seen[tostring(result.queue)] = true
    end
    local n = 0
    for _ in pairs(seen) do n = n + 1 end
    assert.equal(4, n)
  end)

  it("leaves out what latency_fault avoids, also inside a combinator", function()
    local c = cluster.new({ brokers = 2, topics = { Orders = 2 } },
      { latency_fault = true, latency_max = { 5000 }, not_available_duration = { 60000 } })
    finally(function() c:finish() end)
    c.mock:rule { at = "broker-a", code = "SEND_MESSAGE_V2", answer = { code = "SYSTEM_BUSY" } }
    local s = rocketmq.selector
    while #c.producer:faults() < 2 do
      assert(c.producer:send({ topic = "Orders", body = "x" }, { selector = s.best }))
    end
    for _, selector in ipairs { s.best, s.fallback(s.best, s.best), s.available("best"),
      s.available(s.random), s.available(s.round_robin {}), s.sticky {} } do
      for _ = 1, 6 do
        local result = assert(c.producer:send({ topic = "Orders", body = "x" },
          { selector = selector }))
        assert.same({ "broker-b", 1 }, { result.queue.broker, result.attempts })
      end
    end
  end)
end)

describe("the selector sticky", function()
  it("moves on when any message has failed at the broker", function()
    local c = cluster.new { brokers = 2, topics = { Orders = 2 } }
    finally(function() c:finish() end)
    local sticky = rocketmq.selector.sticky {}
    local function send(options)
      options = options or { selector = sticky }
      return c.producer:send({ topic = "Orders", body = "x" }, options)
    end
    local first = assert(send()).queue
    for _ = 1, 10 do assert.equal(first, assert(send()).queue) end
    local rule = c.mock:rule { at = first.broker, code = "SEND_MESSAGE_V2", times = 1,
      close = true }
    -- Another message, which has nothing to do with the selector.
    local _, err = send { queue = { broker = first.broker, id = 1 } }
    assert.equal("closed", err.kind)
    rule:remove()
    local second = assert(send()).queue
    assert.are_not.equal(first.broker, second.broker)
    for _ = 1, 10 do assert.equal(second, assert(send()).queue) end
  end)
end)
