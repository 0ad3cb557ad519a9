local wire = require "rocketmq.wire"
local random = require "spec.support.random"

local function request(source)
  return {
    group = source:text(10, 1),
    topic = source:text(10, 1),
    default_topic = source:text(10, 1),
    default_topic_queue_nums = source:int(0, 64),
    queue_id = source:int(-1, 2147483647),
    sys_flag = source:int(-2147483648, 2147483647),
    born_timestamp = source:int(-2 ^ 53, 2 ^ 53),
    message_flag = source:int(-2147483648, 2147483647),
    properties = source:text(30),
    reconsume_times = source:int(0, 100),
    unit_mode = source:int(0, 1) == 1,
    max_reconsume_times = source:int(-1, 5),
    batch = source:int(0, 1) == 1,
    broker_name = source:text(8, 1),
  }
end

describe("a send request", function()
  it("comes back as it went", function()
    random.rounds(300, function(source)
      local sent = request(source)
      sent.serialize = source:one_of { "json", "rocketmq" }
      sent.code = source:one_of { 310, 320, 325 }
      sent.opaque = source:int(0, 2147483647)
      sent.body = source:bytes(50)
      local command = assert(wire.decode(wire.encode_send_request(sent)))
      for _, name in ipairs { "serialize", "code", "opaque", "body" } do
        assert.equal(sent[name], command[name])
        sent[name] = nil
      end
      assert.same({ "OTHER", 479, 0 }, { command.language, command.version, command.flag })
      assert.same(sent, wire.decode_send_header(command))
    end)
  end)

  it("has one-letter names and leaves out what says nothing", function()
    local command = wire.decode(wire.encode_send_request { group = "PG", topic = "T", queue_id = 2,
      born_timestamp = 1700000000000, flag = 2 })
    assert.same({ a = "PG", b = "T", c = "TBW102", d = "4", e = "2", f = "0", g = "1700000000000",
      h = "0", j = "0", k = "false", m = "false" }, command.ext)
    assert.equal(2, command.flag)
    command = wire.decode(wire.encode_send_request { group = "PG", topic = "T",
      properties = "a\1b\2", max_reconsume_times = 16, broker_name = "b" })
    assert.same({ "a\1b\2", "16", "b" }, { command.ext.i, command.ext.l, command.ext.n })
  end)

  it("is read in its long spelling too", function()
    local ext = { producerGroup = "g", topic = "T", defaultTopic = "TBW102",
      defaultTopicQueueNums = "4", queueId = "1", sysFlag = "769", bornTimestamp = "5", flag = "7",
      properties = "a\1b\2", reconsumeTimes = "1", unitMode = "TRUE", maxReconsumeTimes = "3",
      batch = "false", bname = "b" }
    for _, code in ipairs { 10, 324 } do
      local header = assert(wire.decode_send_header { code = code, ext = ext })
      assert.same({ group = "g", topic = "T", default_topic = "TBW102",
        default_topic_queue_nums = 4, queue_id = 1, sys_flag = 769, born_timestamp = 5,
        message_flag = 7, properties = "a\1b\2", reconsume_times = 1, unit_mode = true,
        max_reconsume_times = 3, batch = false, broker_name = "b" }, header)
    end
    local header, err = wire.decode_send_header { code = 310, ext = ext }
    assert.is_nil(header)
    assert.matches("a %(producerGroup%)", err)
  end)

  it("names the field that is missing or wrong", function()
    local full = wire.decode(wire.encode_send_request { group = "g", topic = "T",
      max_reconsume_times = 1 })
    local labels = { a = "producerGroup", b = "topic", c = "defaultTopic",
      d = "defaultTopicQueueNums", e = "queueId", f = "sysFlag", g = "bornTimestamp", h = "flag" }
    for letter, label in pairs(labels) do
      local kept = full.ext[letter]
      full.ext[letter] = nil
      local header, err = wire.decode_send_header(full)
      assert.is_nil(header)
      assert.matches(letter .. " %(" .. label .. "%)", err)
      full.ext[letter] = kept
    end
    for _, letter in ipairs { "d", "e", "f", "g", "h", "j", "l" } do
      local kept = full.ext[letter]
      for _, wrong in ipairs { "", "x", "1.5", " 1", "9223372036854775808" } do
        full.ext[letter] = wrong
        assert.is_nil(wire.decode_send_header(full), letter .. "=" .. wrong)
      end
      full.ext[letter] = kept
    end
    assert.is_table(wire.decode_send_header(full))
    local _, err = wire.decode_send_header { code = 34, ext = full.ext }
    assert.matches("code", err)
  end)

  it("gives numbers beyond 2^53 as text", function()
    local function born(value)
      return wire.decode_send_header(wire.decode(wire.encode_send_request {
        group = "g", topic = "T", born_timestamp = value })).born_timestamp
    end
    assert.equal(2 ^ 53, born(2 ^ 53))
    assert.equal(2 ^ 53, born "9007199254740992")
    assert.equal("9007199254740993", born "9007199254740993")
    assert.equal("-9223372036854775808", born "-9223372036854775808")
    assert.error_matches(function() born "9223372036854775808" end, "no 64%-bit number")
    assert.error_matches(function() born(2 ^ 54) end, "whole number")
  end)

  it("needs group and topic and knows its fields", function()
    assert.error_matches(function() wire.encode_send_request { topic = "T" } end,
      "'group' must be a string, not nil")
    assert.error_matches(function() wire.encode_send_request { group = "g" } end, "'topic'")
    assert.error_matches(function()
      wire.encode_send_request { group = "g", topic = "T", queueid = 1 }
    end, "did you mean 'queue_id'")
    assert.error_matches(function() wire.decode_send_header(7) end, "must be a command")
  end)
end)

describe("a send reply", function()
  local function reply(ext) return wire.decode_send_reply { code = 0, ext = ext } end

  it("is what a 5.4.0 broker sends", function()
    local text = '{"code":0,"extFields":{"queueId":"3","TRACE_ON":"true","MSG_REGION":' ..
      '"DefaultRegion","msgId":"7F0000010000238F00000000075BCD15","queueOffset":"123456789",' ..
      '"transactionId":"AC"},"flag":1,"language":"JAVA","opaque":12,' ..
      '"serializeTypeCurrentRPC":"JSON","version":493}'
    assert.same({ msg_id = "7F0000010000238F00000000075BCD15", queue_id = 3,
      queue_offset = 123456789, transaction_id = "AC", region_id = "DefaultRegion",
      trace_on = true },
      wire.decode_send_reply(wire.decode_header("json", text)))
  end)

  it("carries what newer brokers add", function()
    assert.same({ msg_id = "a,b", queue_id = 0, queue_offset = 0, batch_uniq_id = "u",
      recall_handle = "h", region_id = "HZ", trace_on = false },
      reply { msgId = "a,b", queueId = "0", queueOffset = "0", batchUniqId = "u",
        recallHandle = "h", MSG_REGION = "HZ", TRACE_ON = "false" })
  end)

  it("has Java's defaults", function()
    local got = reply { msgId = "", queueId = "0", queueOffset = "0", MSG_REGION = "",
      TRACE_ON = "FALSE" }
    assert.same({ "", "DefaultRegion", true }, { got.msg_id, got.region_id, got.trace_on })
    assert.is_true(reply { msgId = "", queueId = "0", queueOffset = "0" }.trace_on)
  end)

  it("names the field that is missing or wrong", function()
    local function wrong(name, value)
      local ext = { msgId = "m", queueId = "1", queueOffset = "2" }
      ext[name] = value
      local got, err = reply(ext)
      assert.is_nil(got)
      assert.matches(name, err, 1, true)
    end
    wrong("msgId", nil)
    wrong("queueId", nil)
    wrong("queueOffset", nil)
    for _, text in ipairs { "", "x", "1.0", "2147483648" } do wrong("queueId", text) end
    for _, text in ipairs { "", "-", "9223372036854775808" } do wrong("queueOffset", text) end
    assert.is_nil(reply {})
    assert.is_nil(wire.decode_send_reply { code = 0 })
  end)

  it("gives offsets beyond 2^53 as text", function()
    local function offset(text)
      return reply { msgId = "m", queueId = "1", queueOffset = text }.queue_offset
    end
    assert.equal(9007199254740992, offset "9007199254740992")
    assert.equal("9007199254740993", offset "9007199254740993")
    assert.equal("9223372036854775807", offset "9223372036854775807")
  end)
end)

describe("what a client says about itself", function()
  it("names the client and its groups in a heartbeat", function()
    for _, serialize in ipairs { "json", "rocketmq" } do
      local command = wire.decode(wire.heartbeat_request { serialize = serialize, opaque = 3,
        client_id = '10.0.0.1@7#"x"', groups = { "g1", "订单" } })
      assert.same({ 34, 3, 0, {} }, { command.code, command.opaque, command.flag, command.ext })
      assert.equal('{"clientID":"10.0.0.1@7#\\"x\\"","consumerDataSet":[],' ..
        '"heartbeatFingerprint":0,"producerDataSet":[{"groupName":"g1"},{"groupName":"订单"}],' ..
        '"withoutSub":false}', command.body)
    end
    assert.matches('"producerDataSet":%[%]',
      wire.decode(wire.heartbeat_request { client_id = "c", groups = {} }).body)
    assert.error_matches(function() wire.heartbeat_request { client_id = "c", groups = { 1 } } end,
      "list of strings")
  end)

  it("unregisters a group and asks for a route", function()
    for _, serialize in ipairs { "json", "rocketmq" } do
      local command = wire.decode(wire.unregister_request { serialize = serialize, opaque = 4,
        client_id = "c@1", group = "g" })
      assert.same({ 35, { clientID = "c@1", producerGroup = "g" } }, { command.code, command.ext })
      command = wire.decode(wire.route_request { serialize = serialize, opaque = 5, topic = "T" })
      assert.same({ 105, { topic = "T", acceptStandardJsonOnly = "true" } },
        { command.code, command.ext })
      assert.is_true(command.version >= 401)
    end
  end)
end)
