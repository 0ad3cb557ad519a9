-- The hashes: what they make of each kind of argument, as functions and as C chooses by them.
local cluster = require "spec.support.cluster"
local ffi = require "ffi"
local queues = require "spec.support.queues"
local selector = require("rocketmq").selector

local eight = queues.list { ["broker-a"] = 4, ["broker-b"] = 4 }
local seventeen = queues.list { b = 17 }

describe("the selector hash", function()
  -- The argument, Java's hashCode, and what it is there.
  local cases = {
    { "order-1", -1207111310, "a String" },
    { "", 0, "an empty String" },
    { "订单", 1129459, "Chinese" },
    { "😀", 1772899, "a surrogate pair" },
    { "polygenelubricants", -2147483648, "the least int" },
    { "a\0b", 93315, "a String with a NUL" },
    { "\xff", 0xFFFD, "a byte that is no UTF-8" },
    { 0, 0, "an Integer" },
    { -0.0, 0, "minus zero" },
    { 10086, 10086, "an Integer" },
    { -1, -1, "a negative Integer" },
    { -2147483648, -2147483648, "the least Integer" },
    { 2147483647, 2147483647, "the greatest Integer" },
    { 2147483648, -2147483648, "a Long" },
    { -2147483649, -2147483648, "a negative Long" },
    { -5000000000, 705032702, "a negative Long" },
    { 4294967296, 1, "a Long" },
    { 9007199254740991, -2097152, "2^53 - 1" },
    { 5LL, 5, "a small Long" },
    { -1LL, 0, "a negative Long" },
    { 9007199254740993LL, 2097153, "a Long beyond doubles" },
    { 0x7fffffffffffffffLL, -2147483648, "the greatest Long" },
    { 0xffffffffffffffffULL, 0, "a uint64_t: the Long with its bits" },
    { true, 1231, "a Boolean" },
    { false, 1237, "a Boolean" },
  }

  local function place(hash, n) return math.abs(math.fmod(hash, n)) end

  for _, case in ipairs(cases) do
    local arg, hash, what = case[1], case[2], case[3]
    it(("hashes %s (%s) as Java does"):format(tostring(arg), what), function()
      for _, list in ipairs { eight, seventeen } do
        assert.equal(place(hash, #list) + 1, selector.hash(list, nil, arg))
      end
    end)
  end

  local refused = {
    { nil, "hash: its argument is nil; give option arg, a string" },
    { {}, "hash: its argument is a table; give it a string" },
    { print, "hash: its argument is a function" },
    { 1.5, "hash: its argument is 1.5; a number must be whole" },
    { 0 / 0, "hash: its argument is nan; a number must be whole" },
    { 1 / 0, "hash: its argument is inf; a number must be whole" },
    { 2 ^ 53, "hash: its argument is 9007199254740992; from 2%^53 on" },
    { -2 ^ 53, "hash: its argument is %-9007199254740992; from 2%^53 on" },
    { ffi.new "int32_t[1]", "hash: its argument is a cdata that is neither int64_t nor uint64_t" },
  }
  for i = 1, 9 do
    local arg, text = refused[i][1], refused[i][2]
    it("refuses " .. tostring(arg), function()
      assert.error_matches(function() return (selector.hash(eight, nil, arg)) end, text)
    end)
  end

  it("refuses an empty list", function()
    assert.error_matches(function() return (selector.hash({}, nil, "x")) end,
      "hash: the list of queues is empty")
  end)

  describe("given to a send", function()
    local c
    setup(function() c = cluster.new { brokers = 2, topics = { Orders = 4 } } end)
    teardown(function() c:finish() end)

    local function text(number)
      local queue = eight[number]
      return ("Orders@%s#%d"):format(queue.broker, queue.id)
    end

    it("goes where the function says, in every way to send and to name it", function()
      for _, case in ipairs(cases) do
        local options = { selector = selector.hash, arg = case[1] }
        local expected = text(selector.hash(eight, nil, case[1]))
        assert.equal(expected,
          tostring(assert(c.producer:send({ topic = "Orders", body = "x" }, options)).queue))
        options.selector = "hash"
        local got
        assert(c.producer:send_async({ topic = "Orders", body = "x" }, options,
          function(result) got = tostring(result.queue) end))
        assert.is_true(c.producer:flush())
        assert.equal(expected, got)
        options.selector = function(...) return selector.hash(...) end
        assert.equal(expected,
          tostring(assert(c.producer:send({ topic = "Orders", body = "x" }, options)).queue))
      end
    end)

    it("fails that message only when it cannot hash, and says where", function()
      for _, method in ipairs { "send", "send_async", "send_oneway" } do
        for i = 1, 9 do
          local arg = refused[i][1]
          local before = c.mock:count()
          local result, err = c.producer[method](c.producer, { topic = "Orders", body = "x" },
            { selector = "hash", arg = arg })
          assert.is_nil(result)
          assert.equal("selector", err.kind)
          assert.equal("Orders", err.topic)
          assert.equal(0, err.attempts)
          assert.matches('^Sending to topic "Orders" failed: its selector: '
            .. "spec/selector/hash_spec.lua:%d+: " .. refused[i][2], err.message)
          assert.equal(before, c.mock:count())
        end
      end
      assert(c.producer:send({ topic = "Orders", body = "x" }, { selector = "hash", arg = 1 }))
    end)

    it("is asked again when nothing was written, and says the same", function()
      -- broker-a is where this key goes; nobody else may get it.
      c.mock:broker("broker-a"):stop()
      local result, err = c.producer:send({ topic = "Orders", body = "x" },
        { selector = "hash", arg = "订单", timeout = 600 })
      c.mock:broker("broker-a"):start()
      assert.is_nil(result)
      assert.equal("broker-a", err.broker)
      for _, try in ipairs(err.tries) do assert.equal("broker-a", try.broker) end
    end)
  end)
end)

describe("the selector hash_fnv1a", function()
  it("agrees with client-go", function()
    for key, index in pairs { ["order-1"] = 5, ["order-2"] = 4, ["user-10086"] = 6 } do
      assert.equal(index + 1, selector.hash_fnv1a(eight, nil, key))
    end
    -- 3052481238 is beyond int32: Go takes the remainder of an unsigned number.
    assert.equal(3052481238 % 17 + 1, selector.hash_fnv1a(seventeen, nil, "user-10086"))
  end)

  it("takes any queue for an empty key, and nothing but strings", function()
    local seen = queues.counts(200, function() return selector.hash_fnv1a(eight, nil, "") end)
    for i = 1, 8 do assert.truthy(seen[i]) end
    assert.error_matches(function() return (selector.hash_fnv1a(eight, nil, 5)) end,
      "hash_fnv1a: its argument is a number; give it a string, as client%-go does")
    assert.error_matches(function() return (selector.hash_fnv1a(eight)) end,
      "hash_fnv1a: its argument is nil; give option arg, a string")
  end)

  it("goes to the same queue when a send is given it", function()
    local c = cluster.new { brokers = 2, topics = { Orders = 4 } }
    finally(function() c:finish() end)
    for key, text in pairs { ["order-1"] = "Orders@broker-b#1",
      ["user-10086"] = "Orders@broker-b#2" } do
      assert.equal(text, tostring(assert(c.producer:send({ topic = "Orders", body = "x" },
        { selector = "hash_fnv1a", arg = key })).queue))
    end
    local _, err = c.producer:send({ topic = "Orders", body = "x" }, { selector = "hash_fnv1a" })
    assert.equal("selector", err.kind)
    local seen = queues.counts(100, function()
      return tostring(assert(c.producer:send({ topic = "Orders", body = "x" },
        { selector = "hash_fnv1a", arg = "" })).queue)
    end)
    local n = 0
    for _ in pairs(seen) do n = n + 1 end
    assert.equal(8, n)
  end)
end)
