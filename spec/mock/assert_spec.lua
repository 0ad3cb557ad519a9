local cluster = require "spec.support.cluster"
local child = require "spec.support.child"
local mock_assert = require "rocketmq.mock.assert"

-- The message that a call raises.
local function failure(fn, ...)
  local ok, err = pcall(fn, ...)
  assert.is_false(ok)
  return type(err) == "table" and tostring(err.message) or tostring(err)
end

describe("an assertion about a mock", function()
  local c, mock

  setup(function()
    c = cluster.new({ brokers = 2, topics = { Orders = 2, Bills = 1 } }, { retries = 2 })
    mock = c.mock
    local queue = { broker = "broker-a", id = 1 }
    assert(c.producer:send({ topic = "Orders", body = "a", tags = "paid", keys = { "k1", "k2" },
      properties = { region = "north", kind = "x" } }, { queue = queue }))
    assert(c.producer:send({ topic = "Orders", body = "b", tags = "unpaid" }, { queue = queue }))
    assert(c.producer:send({ topic = "Orders", body = ("long \1"):rep(100) }, { queue = queue }))
    mock:rule { code = "SEND_MESSAGE_V2", topic = "Bills", times = 1, answer = { code = 2 } }
    assert(c.producer:send { topic = "Bills", body = "bill" })
  end)

  teardown(function() c:finish() end)

  it("holds for what was sent, and gives it", function()
    assert.sent(mock)
    assert.sent(mock, { topic = "Orders" }, 3)
    local found = assert.sent(mock, { body = "a", tags = "paid", keys = "k1",
      properties = { region = "north" }, broker = "broker-a", queue_id = 1, group = "spec" })
    assert.equal("x", found[1].properties.kind)
    assert.sent(mock, { keys = { "k2", "k1" } }, 1)
    assert.sent(mock, { body = function(body) return #body > 500 end }, 1)
    assert.sent(mock, { properties = { region = function(v) return v ~= nil end } }, 1)
    assert.sent(mock, { tags = "none" }, 0)
    assert.not_sent(mock, { topic = "Orders", tags = "refused" })
    assert.is_not.sent(mock, { body = "a" }, 2)
    assert.sent(mock, { body = match.is_string() }, 4)
  end)

  it("holds for an order", function()
    local found = assert.sent_in_order(mock, { { body = "a" }, {}, { topic = "Bills" } })
    assert.same({ "a", "b", "bill" }, { found[1].body, found[2].body, found[3].body })
    assert.not_sent_in_order(mock, { { body = "b" }, { body = "a" } })
    assert.not_sent_in_order(mock, { { body = "a" }, { body = "a" } })
  end)

  it("holds for requests and for attempts", function()
    assert.requests(mock, { at = "broker-a", code = "HEART_BEAT" })
    assert.requests(mock, { code = 310, topic = "Bills" }, 2)
    assert.requests(mock, { at = "broker", ext = {
      i = function(properties) return (properties or ""):find "TAGS" end } }, 2)
    assert.not_requests(mock, { at = "namesrv", code = "SEND_MESSAGE_V2" })
    assert.attempts(mock, { topic = "Bills", body = "bill" }, 2)
    assert.attempts(mock, { topic = "Orders" }, 3)
    local tries = assert.attempts(mock, { body = "bill" })
    assert.equal(tries[1].msg_id, tries[2].msg_id)
    assert.sent(mock, { body = "bill" }, 1)
  end)

  it("says what is there instead, the nearest first", function()
    local text = failure(function()
      assert.sent(mock, { topic = "Orders", tags = "paid", body = "b" })
    end)
    assert.matches('sent: expected at least one message like { body = "b", tags = "paid", '
      .. 'topic = "Orders" }, found 0.\n', text, 1, true)
    local a, b = text:find('Orders@broker-a#1 body "a", tags "paid", keys { "k1", "k2" }: '
      .. 'body is "a"\n', 1, true), text:find('tags "unpaid": tags is "unpaid"\n', 1, true)
    local bill = text:find('body is "bill"', 1, true)
    assert.is_true(a and b and bill and a < bill and b < bill, text)
    assert.matches('"long \\x01long .*" %(600 bytes%)', text)
  end)

  it("says what is there when there are too many, and names each property", function()
    local text = failure(function() assert.sent(mock, { topic = "Orders" }, 2) end)
    assert.matches("expected exactly 2 messages like .* found 3%.\nThese messages are as wanted:\n"
      .. "  Orders@broker%-a#1 body \"a\"", text)
    text = failure(function()
      assert.sent(mock, { body = "a", properties = { region = "south", x = "1" } })
    end)
    assert.matches('properties.region is "north", properties.x is nil', text, 1, true)
    text = failure(function() assert.not_sent(mock, { tags = "paid" }) end)
    assert.matches("expected not any message like .* found 1", text)
    text = failure(function() assert.not_requests(mock, { code = "HEART_BEAT" }) end)
    assert.matches("HEART_BEAT (34) at broker-", text, 1, true)
    text = failure(function() assert.sent_in_order(mock, { { body = "b" }, { body = "a" } }) end)
    assert.matches('no message like { body = "a" } (number 2) after those', text, 1, true)
  end)

  it("says what came when nothing was stored", function()
    local other = cluster.new { topics = { Orders = 1 } }
    finally(function() other:finish() end)
    assert.matches("There are no messages, and no request has come.",
      failure(function() assert.sent(other.mock) end), 1, true)
    assert(other.producer:queues "Orders")
    assert.matches("1 GET_ROUTEINFO_BY_TOPIC at namesrv-1",
      failure(function() assert.sent(other.mock) end), 1, true)
  end)

  it("refuses what makes no sense, at the line that says it", function()
    local function refuses(pattern, fn)
      local text = failure(fn)
      assert.matches(pattern, text)
      assert.matches("assert_spec.lua:%d+: ", text)
    end
    refuses("sent: unknown name 'tag', did you mean 'tags'", function()
      assert.sent(mock, { tag = "paid" })
    end)
    refuses("sent: the first argument must be a mock, not nil", function() assert.sent(nil, {}) end)
    refuses("sent: the count must be a whole number", function() assert.sent(mock, {}, "2") end)
    refuses("requests code: unknown name 'HEARTBEAT'", function()
      assert.requests(mock, { code = "HEARTBEAT" })
    end)
    refuses("^spec/mock/assert_spec.lua:%d+: requests at: unknown name 'broker%-x'", function()
      assert.requests(mock, { at = "broker-x" })
    end)
    refuses("'properties' must be a table", function() assert.sent(mock, { properties = "x" }) end)
    refuses("sent_in_order: needs a list", function() mock_assert.sent_in_order(mock, "x") end)
  end)

  it("says whose function failed, of those that say what is wanted", function()
    local function fails(text) return text:nonsense() end
    for _, of in ipairs { assert, mock_assert } do
      for _, name in ipairs { "sent", "attempts" } do
        assert.matches("assert_spec.lua:%d+: the function for 'tags' failed: "
          .. ".*assert_spec.lua:%d+: attempt to", failure(function()
          of[name](mock, { tags = fails })
        end))
      end
      assert.matches("the function for 'properties' failed: ", failure(function()
        of.sent(mock, { properties = { region = fails } })
      end))
      assert.matches("the function for 'body' failed: ", failure(function()
        of.sent_in_order(mock, { { body = fails } })
      end))
    end
  end)

  it("says that it cannot tell of what the mock keeps no longer", function()
    local small = cluster.new({ topics = { Orders = 1 }, keep = 3 }, {})
    finally(function() small:finish() end)
    local function send(body) assert(small.producer:send { topic = "Orders", body = body }) end
    for number = 1, 2 do send("m" .. number) end
    assert.not_sent(small.mock, { body = "m9" })
    assert.sent(small.mock, nil, 2)
    for number = 3, 5 do send("m" .. number) end
    assert.sent(small.mock, { body = "m5" })
    local cannot = "assert_spec.lua:%d+: [a-z_]+: this cannot be told: %d+ [a-z]+ are no longer "
      .. "kept; give the mock a greater 'keep' or 'keep_bytes' %(they are 3 and %d+%)"
    for _, of in ipairs {
      function() assert.not_sent(small.mock, { body = "m1" }) end,
      function() assert.sent(small.mock, { body = "m1" }) end,
      function() assert.sent(small.mock, { body = "m5" }, 1) end,
      function() assert.sent_in_order(small.mock, { { body = "m5" }, { body = "m1" } }) end,
      function() assert.not_requests(small.mock, { code = 105 }) end,
      function() mock_assert.not_attempts(small.mock, { body = "m1" }) end,
    } do
      assert.matches(cannot, failure(of))
    end
    -- Three of them are more than two, whatever there was besides.
    assert.not_sent(small.mock, nil, 2)
    assert.matches("sent: expected exactly 2 messages like {}, found 3", failure(function()
      assert.sent(small.mock, nil, 2)
    end), 1, true)
    small.mock:clear()
    assert.not_sent(small.mock, { body = "m1" })
    assert.not_requests(small.mock)
  end)

  it("is a plain function too, and stands for the assert that it hides", function()
    assert.equal(1, #mock_assert.sent(mock, { body = "a" }))
    mock_assert.not_sent(mock, { body = "zz" })
    assert.matches("assert_spec.lua:%d+: sent: expected at least one message", failure(function()
      mock_assert.sent(mock, { body = "zz" })
    end))
    assert.equal(5, mock_assert(5))
    mock_assert.equal(1, 1)
  end)

  it("works where there is no luassert", function()
    local ended = child.run_text([[
      package.preload.luassert = function() error "none here" end
      local rocketmq = require "rocketmq"
      local assert = require "rocketmq.mock.assert"
      local mock = rocketmq.mock { topics = { T = 1 } }
      local producer = rocketmq.producer { group = "g", namesrv = mock.namesrv }
      assert(producer:send { topic = "T", body = "x" })
      print(#assert.sent(mock, { body = "x" }, 1))
      print(pcall(assert.sent, mock, { body = "y" }))
      print(pcall(function() return assert.snet end))
    ]])
    assert.equal(0, ended.code, ended.stderr)
    assert.matches('^1\nfalse\t.*sent: expected at least one message like { body = "y" }, found 0',
      ended.stdout)
    assert.matches("unknown name 'snet', did you mean 'sent'", ended.stdout)
  end)
end)
