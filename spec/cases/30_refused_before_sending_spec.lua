--- What one client refused, another sent: empty bodies, topics with blanks, topics of 128
--- letters. Some of it was found out by the broker, some by nobody.
local cluster = require "spec.support.cluster"

local FOUR_MIB = 4194304

describe("a message that cannot be", function()
  local c

  before_each(function() c = cluster.new { topics = { Orders = 1 } } end)
  after_each(function() c:finish() end)

  -- The error of a message that must be refused before a byte goes out.
  local function refusal(message)
    local result, err = c.producer:send(message)
    assert.is_nil(result)
    assert.equal("message", err.kind)
    assert.equal(0, #c.mock:requests())
    return err
  end

  local topics = {
    { "no topic", nil, "topic" },
    { "an empty topic", "", "topic" },
    { "a blank topic", "  ", "topic" },
    { "a blank in its topic", "a b", "topic.*space at position 2" },
    { "a slash in its topic", "a/b", "topic.*'/' at position 2" },
    { "a topic that is not ASCII", "\208\150", "topic" },
    { "a topic that is no text", "\255\254", "topic" },
    { "a NUL in its topic", "a\0b", "topic" },
    { "a topic of 128 letters", ("t"):rep(128), "topic.*127" },
    { "the broker's own topic", "SCHEDULE_TOPIC_XXXX", "SCHEDULE_TOPIC_XXXX" },
    { "the topic of half messages", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_HALF_TOPIC" },
    { "the topic of their ends", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC" },
    { "the topic of lost checks", "TRANS_CHECK_MAX_TIME_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC" },
    { "the self test's topic", "SELF_TEST_TOPIC", "SELF_TEST_TOPIC" },
    { "the topic of moved offsets", "OFFSET_MOVED_EVENT", "OFFSET_MOVED_EVENT" },
  }
  for _, row in ipairs(topics) do
    it("because it has " .. row[1], function()
      assert.matches(row[3], refusal { topic = row[2], body = "x" }.message)
    end)
  end

  it("because it has no body, or an empty one, or one that is too long", function()
    for body, shown in pairs { [false] = "body", [""] = "empty",
      [("x"):rep(FOUR_MIB + 1)] = "4194305.*4194304" } do
      local err = refusal { topic = "Orders", body = body or nil }
      assert.equal(13, err.code)
      assert.matches(shown, err.message)
    end
  end)

  it("because it is not UTF-8 where text is wanted", function()
    for field, value in pairs { tags = "\255", keys = "\192\128",
      properties = { a = "\237\160\128" } } do
      assert.matches(field .. ".*UTF%-8.*position 1",
        refusal({ topic = "Orders", body = "x", [field] = value }).message)
    end
    assert.matches("name.*UTF%-8",
      refusal({ topic = "Orders", body = "x", properties = { ["\255"] = "a" } }).message)
  end)

  it("is one that just fits, too", function()
    local longest = ("t"):rep(127)
    for _, topic in ipairs { longest, "%RETRY%group", "a-b_c|d" } do
      assert(c.producer:send { topic = topic, body = "x" })
      assert.equal(1, #c.mock:messages(topic))
    end
    local body = ("\0\1\2\255"):rep(FOUR_MIB / 4)
    assert(c.producer:send { topic = "Orders", body = body })
    assert.is_true(body == c.mock:messages("Orders")[1].body)
  end)

  it("is told apart from a call that is wrong, which raises", function()
    assert.error_matches(function() c.producer:send("Orders") end, "message must be a table")
    assert.error_matches(function()
      c.producer:send { topic = "Orders", body = "x", tag = "t" }
    end, "tag.*tags")
    assert.error_matches(function()
      c.producer:send({ topic = "Orders", body = "x" }, { timeuot = 1 })
    end, "timeuot.*timeout")
    assert.error_matches(function() c.producer:send { topic = "Orders", body = 7 } end, "body")
    assert.error_matches(function()
      c.producer:send { topic = "Orders", body = "x", flag = "1" }
    end, "flag")
    assert.equal(0, #c.mock:requests())
  end)
end)
