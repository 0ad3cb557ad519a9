-- Bad input: each is refused with an error that names it, and nothing of it is sent.
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"

local MAX_BODY = 4 * 1024 * 1024

describe("a message", function()
  local c, producer

  setup(function()
    c = cluster.new { topics = { Orders = 4 } }
    producer = c.producer
  end)
  teardown(function() c:finish() end)

  local function message(fields)
    local m = { topic = "Orders", body = "x" }
    for name, value in pairs(fields) do m[name] = value end
    return m
  end

  -- Refused as a value: nil and an error of kind "message" that matches, and nothing was stored.
  local function refused(m, pattern, options)
    local before = c.mock:count()
    local result, err = producer:send(m, options)
    assert.is_nil(result)
    assert.equal("message", err.kind)
    assert.truthy(err.message:find(pattern), err.message)
    if m.topic ~= "" then assert.equal(m.topic, err.topic) end
    assert.equal(0, err.attempts)
    assert.is_false(err.maybe_stored)
    assert.equal(before, c.mock:count())
    return err
  end

  -- Refused as a mistake of the script: raises, with the script's own place.
  local function raises(m, pattern, options)
    local before = c.mock:count()
    local ok, why = pcall(function()
      local result = producer:send(m, options)
      return result
    end)
    assert.is_false(ok)
    assert.truthy(why:find("input_spec.lua:%d+: "), why)
    assert.truthy(why:find(pattern), why)
    assert.equal(before, c.mock:count())
  end

  local function stored(m, options)
    local result, err = producer:send(m, options)
    assert.is_nil(err)
    assert.equal("SEND_OK", result.status)
    local all = c.mock:messages(m.topic)
    return all[#all]
  end

  describe("topic", function()
    for what, case in pairs {
      ["that is missing"] = { nil, "topic is missing" },
      ["that is empty"] = { "", "topic is empty" },
      ["that is blank"] = { " \t", "topic is blank" },
      ["of 128 characters"] = { ("t"):rep(128), "128 bytes" },
      ["with a space"] = { "a b", "topic has a space at position 2" },
      ["with a slash"] = { "a/b", "topic has '/' at position 2" },
      ["that is not UTF-8"] = { "\255\254", "topic has byte 0xFF at position 1" },
      ["of the system"] = { "SCHEDULE_TOPIC_XXXX", "SCHEDULE_TOPIC_XXXX" },
      ["of transactions"] = { "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_HALF_TOPIC" },
    } do
      it(what .. " is refused", function() refused({ topic = case[1], body = "x" }, case[2]) end)
    end

    it("of 127 characters is sent", function()
      local topic = ("t"):rep(127)
      assert.equal(topic, stored({ topic = topic, body = "x" }).topic)
    end)

    it("is checked before the body, as in Java", function()
      refused({ topic = "a b", body = "" }, "topic")
    end)
  end)

  describe("body", function()
    it("that is missing is refused", function() refused({ topic = "Orders" }, "body is empty") end)
    it("that is empty is refused", function()
      assert.equal(13, refused(message { body = "" }, "body is empty").code)
    end)
    it("over the limit is refused with both sizes", function()
      local err = refused(message { body = ("x"):rep(MAX_BODY + 1) }, "4194305")
      assert.truthy(err.message:find("4194304", 1, true))
      assert.equal(13, err.code)
    end)
    it("at the limit is sent", function()
      assert.equal(MAX_BODY, #stored(message { body = ("x"):rep(MAX_BODY) }).body)
    end)
    it("holds any bytes", function()
      local bytes = {}
      for i = 0, 255 do bytes[#bytes + 1] = string.char(i) end
      local body = table.concat(bytes)
      assert.equal(body, stored(message { body = body }).body)
    end)
  end)

  describe("properties", function()
    for what, case in pairs {
      ["with byte 1 in a value"] = { { a = "x\1y" }, 'properties%["a"%] has byte 1 at position 2' },
      ["with byte 2 in a value"] = { { a = "\2" }, 'properties%["a"%] has byte 2 at position 1' },
      ["with byte 2 in a name"] = { { ["x\2b\1y"] = "z" }, "name in properties has byte 2" },
      ["with an empty value"] = { { a = "" }, 'properties%["a"%] is empty' },
      ["with an empty name"] = { { [""] = "x" }, "properties has an empty name" },
      ["with invalid UTF-8"] = { { a = "ok\255" }, 'properties%["a"%] is not valid UTF%-8.* 3' },
      ["with a name of the system"] = { { KEYS = "k" }, "KEYS.*set the message's keys instead" },
      ["with another name of the system"] = { { POP_CK = "4" }, "POP_CK.*choose another name" },
      ["with over 32767 bytes"] = { { a = ("x"):rep(32767) }, "32767" },
      ["with 70000 bytes"] = { { a = ("x"):rep(70003) }, "70%d%d%d" },
    } do
      it(what .. " are refused", function()
        refused(message { properties = case[1] }, case[2])
      end)
    end

    it("arrive as they were given", function()
      local given = { ["中文"] = "😀", plain = "1", [" "] = "~!@#$%^&*()\t\n" }
      local got = stored(message { properties = given }).properties
      for name, value in pairs(given) do assert.equal(value, got[name]) end
    end)

    it("may be many", function()
      local given = {}
      for i = 1, 2000 do given["p" .. i] = tostring(i) end
      local got = stored(message { properties = given }).properties
      for name, value in pairs(given) do assert.equal(value, got[name]) end
    end)
  end)

  describe("keys", function()
    it("with a space are refused in list form", function()
      refused(message { keys = { "a", "b c" } }, 'keys%[2%] %("b c"%) has a space')
      refused(message { keys = { "b c" } }, 'keys%[1%] %("b c"%) has a space')
    end)
    it("that are empty are refused in list form", function()
      refused(message { keys = { "a", "" } }, "keys%[2%] is empty")
    end)
    it("with byte 1 or invalid UTF-8 are refused", function()
      refused(message { keys = "a\1" }, "keys has byte 1")
      refused(message { keys = { "a", "\255" } }, "keys%[2%] is not valid UTF%-8")
    end)
    it("are joined with single spaces", function()
      assert.equal("k1 k2", stored(message { keys = { "k1", "k2" } }).properties.KEYS)
      assert.equal("a b", stored(message { keys = "a b" }).properties.KEYS)
    end)
    it("that are empty count as absent", function()
      assert.is_nil(stored(message { keys = "" }).properties.KEYS)
      assert.is_nil(stored(message { keys = {} }).properties.KEYS)
    end)
  end)

  describe("tags", function()
    it("with byte 2 or invalid UTF-8 are refused", function()
      refused(message { tags = "a\2b" }, "tags has byte 2 at position 2")
      refused(message { tags = "\192" }, "tags is not valid UTF%-8")
    end)
    it("that are empty count as absent", function()
      assert.is_nil(stored(message { tags = "" }).properties.TAGS)
      assert.is_nil(stored(message { tags = {} }).properties.TAGS)
    end)
    it("arrive", function()
      assert.equal("paid", stored(message { tags = "paid" }).properties.TAGS)
    end)
  end)

  describe("flag", function()
    for _, value in ipairs { 0.5, 2 ^ 31, -2 ^ 31 - 1, 0 / 0, math.huge } do
      it(tostring(value) .. " is refused", function()
        refused(message { flag = value }, "flag is")
      end)
    end
    for _, value in ipairs { -2 ^ 31, 2 ^ 31 - 1, 0 } do
      it(value .. " is sent", function()
        assert.equal(value, stored(message { flag = value }).flag)
      end)
    end
  end)

  it("that asks not to wait says so to the broker", function()
    assert.equal("false", stored(message { wait = false }).properties.WAIT)
    assert.equal("true", stored(message {}).properties.WAIT)
  end)

  describe("with a wrong type", function()
    for what, case in pairs {
      ["in topic"] = { { topic = 1 }, "topic of the message must be a string, not number" },
      ["in body"] = { { body = 12 }, "body of the message must be a string, not number" },
      ["in tags"] = { { tags = { "a" } }, "tags of the message must be a string, not table" },
      ["in keys"] = { { keys = 7 }, "keys of the message must be a string.*, not number" },
      ["in a key"] = { { keys = { "a", 7 } }, "keys%[2%] of the message .*, not number" },
      ["in place of a list"] = { { keys = { id = "a" } }, "keys of the message .* list" },
      ["beside a list"] = { { keys = { "a", id = "b" } },
        "keys of the message .* string as its key" },
      ["behind a gap in a list"] = { { keys = { "a", [7] = "b" } },
        "keys of the message .* number as its key" },
      ["in properties"] = { { properties = "a" }, "properties of the message .*, not string" },
      ["in a property"] = { { properties = { n = 1 } },
        "properties.n of the message must be a string, not number; use tostring" },
      ["in a property's name"] = { { properties = { "v" } },
        "names in properties of the message must be strings, not number" },
      ["in flag"] = { { flag = "1" }, "flag of the message must be a number, not string" },
      ["in wait"] = { { wait = 1 }, "wait of the message must be a boolean, not number" },
    } do
      it(what .. " raises", function() raises(message(case[1]), case[2]) end)
    end

    it("that is no table raises", function()
      raises("hello", "the message must be a table, not string")
      raises(nil, "the message must be a table, not nil")
    end)
  end)

  describe("with an unknown field", function()
    it("raises with the nearest name", function()
      raises(message { tag = "a" }, "unknown field 'tag' in the message: did you mean 'tags'%?")
      raises(message { propertys = {} }, "did you mean 'properties'")
      raises(message { boyd = "x" }, "did you mean 'body'")
    end)
    it("that is like none raises with all names", function()
      raises(message { colour = "red" }, "'colour' in the message: there are topic, body, tags")
    end)
    it("that has no name raises", function()
      raises({ "hello", topic = "Orders", body = "x" }, "a key that is a number")
    end)
    it("raises with the mock however many were sent before", function()
      for _ = 1, 300 do stored(message {}) end
      raises(message { tag = "a" }, "tags")
    end)
  end)

  describe("with options", function()
    it("that are unknown raises", function()
      raises(message {}, "unknown option 'time_out' in the send's options: did you mean 'timeout'",
        { time_out = 3 })
    end)
    it("that are no table raises", function()
      raises(message {}, "options must be a table, not number", 3000)
    end)
    it("of a wrong type raises", function()
      raises(message {}, "timeout must be a number of milliseconds, not string", { timeout = "1" })
      raises(message {}, "retries must be a number", { retries = true })
      raises(message {}, "queue must be a queue or a table", { queue = 3 })
      raises(message {}, "broker of option queue must be a string, not nil", { queue = { id = 3 } })
      raises(message {}, "id of option queue must be a number", { queue = { broker = "broker-a" } })
      raises(message {}, "unknown field 'brokr' in option queue: did you mean 'broker'%?",
        { queue = { broker = "broker-a", id = 0, brokr = "broker-b" } })
    end)
    it("that is not a number is shown as nan, whatever its sign", function()
      for _, nan in ipairs { 0 / 0, -(0 / 0) } do
        refused(message { flag = nan }, "flag is nan;")
        refused(message { delay_level = nan }, "delay_level is nan;")
        refused(message {}, "option timeout is nan;", { timeout = nan })
        refused(message {}, "option retries is nan;", { retries = nan })
        refused(message {}, "the id of option queue is nan;",
          { queue = { broker = "broker-a", id = nan } })
        for name, setting in pairs { send_msg_timeout = nan, latency_max = { nan } } do
          local settings = { group = "g", namesrv = "a:1", [name] = setting }
          local ok, why = pcall(rocketmq.producer, settings)
          assert.is_false(ok)
          assert.matches(" nan$", why)
        end
        local _, err = producer:create_topic { topic = "Orders", queues = nan }
        assert.matches("queues is nan;", err.message)
        _, err = producer:create_topic { topic = "Orders", queues = 1, timeout = nan }
        assert.matches("timeout is nan;", err.message)
      end
    end)
    it("with times that are none is refused", function()
      for _, name in ipairs { "timeout", "attempt_timeout" } do
        for _, value in ipairs { 0, -1, 0 / 0, math.huge, 1e300 } do
          refused(message {}, name .. " is", { [name] = value })
        end
      end
    end)
    it("with retries that are no count is refused", function()
      for _, value in ipairs { -1, 1.5, 0 / 0, 1e9 } do
        refused(message {}, "retries is", { retries = value })
      end
    end)
    it("with a queue that cannot be is refused", function()
      for _, id in ipairs { -1, 0.5, 2 ^ 31, 0 / 0 } do
        refused(message {}, "id of option queue is", { queue = { broker = "broker-a", id = id } })
      end
      refused(message {}, "broker of option queue is empty", { queue = { broker = "", id = 0 } })
    end)
    it("with another topic's queue is refused", function()
      local queue = assert(producer:queues "Orders")[1]
      refused({ topic = "Other", body = "x" }, 'topic "Orders".*topic "Other"', { queue = queue })
    end)
    it("goes to the queue that it names", function()
      local options = { queue = { broker = "broker-a", id = 3 } }
      local result = assert(producer:send(message {}, options))
      assert.equal("Orders@broker-a#3", tostring(result.queue))
      local again = assert(producer:send(message {}, { queue = result.queue }))
      assert.equal(result.queue, again.queue)
      assert.equal(result.queue_offset + 1, again.queue_offset)
    end)
  end)

  it("is never changed by a send", function()
    local keys, properties = { "k" }, { p = "v" }
    local m = { topic = "Orders", body = "x", keys = keys, properties = properties }
    assert(producer:send(m))
    assert.same({ topic = "Orders", body = "x", keys = { "k" }, properties = { p = "v" } }, m)
    assert.equal(keys, m.keys)
    assert.equal(properties, m.properties)
  end)

  it("may get its fields from a class", function()
    local Order = { topic = "Orders", tags = "from a class" }
    Order.__index = Order
    assert.equal("from a class", stored(setmetatable({ body = "x", topic = "Orders" }, Order))
      .properties.TAGS)
  end)
end)
