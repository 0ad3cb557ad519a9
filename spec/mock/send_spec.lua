local new_mock = require "rocketmq.mock"
local raw_client = require "spec.support.raw_client"

local PROPERTIES = "UNIQ_KEY\1ABC\2TAGS\1paid\2KEYS\1k1 k2\2WAIT\1true\2"

-- The ext fields of a V2 send header over defaults.
local function v2(fields)
  local ext = { a = "group", b = "Orders", c = "TBW102", d = "4", e = "0", f = "0",
    g = "1700000000000", h = "0", i = PROPERTIES, j = "0", k = "false", m = "false",
    n = "broker-a" }
  for name, value in pairs(fields or {}) do ext[name] = value end
  return ext
end

-- Two members as a client packs them: flag 12, body "body", KEYS "k"; flag 0, body "b".
local BATCH = table.concat {
  "\0\0\0\33", "\0\0\0\0", "\0\0\0\0", "\0\0\0\12", "\0\0\0\4body", "\0\7KEYS\1k\2",
  "\0\0\0\23", "\0\0\0\0", "\0\0\0\0", "\0\0\0\0", "\0\0\0\1b", "\0\0",
}

describe("a broker of the mock", function()
  local mock, client

  before_each(function()
    mock = new_mock { brokers = { { name = "broker-a", slaves = 1 } },
      topics = { Orders = 4, Ordered = { order = true } },
      max_message_size = 1000 }
    client = assert(raw_client.connect(mock:broker("broker-a").addr))
  end)

  after_each(function()
    client:close()
    mock:close()
  end)

  -- Sends with a V2 header.
  local function send(fields, body, code)
    return client:request { code = code or 310, ext = v2(fields), body = body or "hello" }
  end

  it("tells the next offset of a queue", function()
    local function offset(ext) return client:request { code = 30, ext = ext } end
    assert.equal("0", offset { topic = "Orders", queueId = "2" }.ext.offset)
    send { e = "2" }
    send { e = "2" }
    assert.equal("2", offset { topic = "Orders", queueId = "2" }.ext.offset)
    assert.equal("0", offset { topic = "Orders", queueId = "1" }.ext.offset)
    assert.equal("0", offset { topic = "Other", queueId = "0" }.ext.offset)
    assert.equal(1, offset { topic = "Orders" }.code)
  end)

  it("stores what is sent and says where", function()
    send { e = "2" }
    local reply = send { e = "2", h = "7", f = "1" }
    assert.equal(0, reply.code)
    assert.same({ "2", "1", "ABC", "DefaultRegion", "true" }, { reply.ext.queueId,
      reply.ext.queueOffset, reply.ext.transactionId, reply.ext.MSG_REGION, reply.ext.TRACE_ON })
    local port = mock:broker("broker-a").port
    assert.equal(("7F000001%08X"):format(port), reply.ext.msgId:sub(1, 16))
    assert.equal(32, #reply.ext.msgId)

    assert.equal(2, mock:wait(2))
    local message = mock:messages("Orders", "broker-a", 2)[2]
    assert.equal("hello", message.body)
    assert.same({ "paid", { "k1", "k2" }, "ABC" }, { message.tags, message.keys, message.msg_id })
    assert.same({ 7, 1, 1700000000000 },
      { message.flag, message.sys_flag, message.born_timestamp })
    assert.same({ UNIQ_KEY = "ABC", TAGS = "paid", KEYS = "k1 k2", WAIT = "true" },
      message.properties)
    assert.same({ reply.ext.msgId, 1, "group", false, false },
      { message.offset_msg_id, message.queue_offset, message.group, message.batch, message.oneway })
    assert.matches("^127%.0%.0%.1:%d+$", message.born_host)
    assert.equal(0, #mock:messages("Orders", "broker-a", 1))
    assert.equal(0, #mock:messages("Orders", "broker-a", 3))
    assert.equal(0, #mock:messages("Other"))
  end)

  it("gives every message another place in its log", function()
    assert.are_not.equal(send({}, "a").ext.msgId, send({}, "b").ext.msgId)
  end)

  it("reads the long names of the first header", function()
    local reply = client:request { code = 10, body = "old", ext = { producerGroup = "g",
      topic = "Orders", defaultTopic = "TBW102", defaultTopicQueueNums = "4", queueId = "3",
      sysFlag = "0", bornTimestamp = "1", flag = "0", properties = PROPERTIES } }
    assert.equal("3", reply.ext.queueId)
    assert.equal("old", mock:messages("Orders")[1].body)
  end)

  it("stores a oneway message without a word", function()
    client:send { code = 310, flag = 2, ext = v2(), body = "quiet" }
    assert.equal(1, mock:wait(1))
    assert.is_true(mock:messages()[1].oneway)
    send()
    assert.equal(1, #client.order)
  end)

  it("takes a batch apart", function()
    send { e = "1" }
    local reply = send({ e = "1", m = "true" }, BATCH, 320)
    assert.equal(0, reply.code)
    assert.equal("1", reply.ext.queueOffset)
    local messages = mock:messages("Orders", "broker-a", 1)
    assert.equal(messages[2].offset_msg_id .. "," .. messages[3].offset_msg_id, reply.ext.msgId)
    assert.same({ "body", 12, { "k" }, true, 1 }, { messages[2].body, messages[2].flag,
      messages[2].keys, messages[2].batch, messages[2].queue_offset })
    assert.same({ "b", 0, {}, 2 }, { messages[3].body, messages[3].flag, messages[3].keys,
      messages[3].queue_offset })
  end)

  it("refuses a batch that is cut off, and stores nothing of it", function()
    for _, body in ipairs { BATCH:sub(1, -2), "", "\0\0\0\1" } do
      assert.equal(1, send({ m = "true" }, body, 320).code)
    end
    assert.equal(0, mock:count())
  end)

  it("chooses a queue itself for a negative id", function()
    local seen = {}
    for _ = 1, 64 do seen[send({ e = "-1" }).ext.queueId] = true end
    assert.same({ ["0"] = true, ["1"] = true, ["2"] = true, ["3"] = true }, seen)
  end)

  it("makes a topic from the default topic, with no more queues than either allows", function()
    assert.equal(0, send({ b = "New", d = "3", e = "2" }).code)
    assert.equal(29, send({ b = "New", d = "3", e = "3" }).code)
    assert.equal(29, send({ b = "Wide", d = "100", e = "8" }).code)
    local servers = assert(raw_client.connect(mock.namesrv))
    local reply = servers:request { code = 105, ext = { topic = "New" } }
    servers:close()
    assert.matches('"perm":6', reply.body)
    assert.matches('"writeQueueNums":3', reply.body)
  end)

  -- What is refused: header, body, code, what the remark must name.
  local refusals = {
    { "a queue that is not there", { e = "4" }, "x", 29, "4 queues" },
    { "a topic that cannot be one", { b = "a b" }, "x", 29, "a b" },
    { "a topic that is too long", { b = ("t"):rep(128) }, "x", 29, "name" },
    { "properties that are too long", { i = "a\1" .. ("x"):rep(32765) .. "\2" }, "x", 13, "32768" },
    { "a body that is too long", {}, ("x"):rep(1001), 13, "1001" },
    { "a topic without a model", { b = "New", c = "NoSuch" }, "x", 17, "New" },
    { "a header without a number", { g = "now" }, "x", 1, "" },
  }
  for _, row in ipairs(refusals) do
    it("refuses " .. row[1], function()
      local reply = send(row[2], row[3])
      assert.equal(row[4], reply.code)
      assert.is_truthy(reply.remark:find(row[5], 1, true))
      assert.equal(0, mock:count())
    end)
  end

  it("takes properties and a body that just fit", function()
    assert.equal(0, send({ i = "a\1" .. ("x"):rep(32764) .. "\2" }, ("x"):rep(1000)).code)
  end)

  it("looks at its own permission for ordered topics only, and never at a topic's", function()
    mock:broker("broker-a"):set_topic("Orders", { perm = 4 })
    assert.equal(0, send().code)
    mock:broker("broker-a"):set_perm(4)
    assert.equal(0, send().code)
    assert.equal(16, send({ b = "Ordered" }).code)
    mock:broker("broker-a"):set_perm(6)
    assert.equal(0, send({ b = "Ordered" }).code)
  end)

  it("does not know an unknown topic when topics are not made automatically", function()
    local strict = new_mock { auto_create = false }
    local other = assert(raw_client.connect(strict:broker("broker-a").addr))
    finally(function()
      other:close()
      strict:close()
    end)
    assert.equal(17, other:request({ code = 310, ext = v2(), body = "x" }).code)
  end)

  it("stores nothing at a slave", function()
    local slave = assert(raw_client.connect(mock:broker("broker-a", 1).addr))
    finally(function() slave:close() end)
    assert.equal(14, slave:request({ code = 310, ext = v2(), body = "x" }).code)
    assert.equal(0, mock:count())
  end)

  it("forgets the oldest when it has more than it keeps", function()
    local small = new_mock { keep = 2 }
    local other = assert(raw_client.connect(small:broker("broker-a").addr))
    finally(function()
      other:close()
      small:close()
    end)
    for _, body in ipairs { "1", "2", "3" } do
      other:request { code = 310, ext = v2(), body = body }
    end
    assert.equal(3, small:count())
    assert.same({ "2", "3" }, { small:messages()[1].body, small:messages()[2].body })
    assert.equal(2, #small:requests())
  end)
end)

describe("a broker's clients", function()
  local mock, client

  before_each(function()
    mock = new_mock { brokers = 2 }
    client = assert(raw_client.connect(mock:broker("broker-b").addr))
  end)

  after_each(function()
    client:close()
    mock:close()
  end)

  local function heartbeat(id)
    return client:request { code = 34, body = ([[{"clientID":"%s","consumerDataSet":[],]]
      .. [["producerDataSet":[{"groupName":"p2"},{"groupName":"p1"}]}]]):format(id) }
  end

  it("are those that send heartbeats, until they go", function()
    local reply = heartbeat("c1")
    assert.equal(0, reply.code)
    assert.equal("true", reply.ext.IS_SUPPORT_HEART_BEAT_V2)
    heartbeat("c1")
    heartbeat("c2")
    local clients = mock:clients()
    assert.same({ "p1", "p2" }, clients["broker-b"].c1.groups)
    assert.equal(2, clients["broker-b"].c1.heartbeats)
    assert.is_truthy(clients["broker-b"].c2)
    assert.same({}, clients["broker-a"])

    local gone = client:request { code = 35, ext = { clientID = "c1", producerGroup = "p1" } }
    assert.equal(0, gone.code)
    assert.same({ "p2" }, mock:clients()["broker-b"].c1.groups)
    client:request { code = 35, ext = { clientID = "c1", producerGroup = "p2" } }
    assert.is_nil(mock:clients()["broker-b"].c1)
    client:close()
    assert.is_true(mock:wait(function() return next(mock:clients()["broker-b"]) == nil end))
  end)

  it("are told when a heartbeat cannot be read", function()
    for _, body in ipairs { "", "{", "[]", [[{"clientID":7}]], "null" } do
      assert.equal(1, client:request({ code = 34, body = body }).code)
    end
    assert.equal(0, client:request({ code = 34,
      body = [[{"clientID":"c","producerDataSet":[1,{},{"groupName":7}]}]] }).code)
    assert.same({ "7" }, mock:clients()["broker-b"].c.groups)
  end)
end)
