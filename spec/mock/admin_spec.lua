-- What the mock answers to those who ask about topics, queues and messages.
local new_mock = require "rocketmq.mock"
local raw_client = require "spec.support.raw_client"
local wire = require "rocketmq.wire"

describe("a broker of the mock", function()
  local mock, client

  before_each(function()
    mock = new_mock { brokers = { { name = "broker-a", slaves = 1 } }, topics = { Orders = 4 } }
    client = assert(raw_client.connect(mock:broker("broker-a").addr))
  end)

  after_each(function()
    client:close()
    mock:close()
  end)

  local function send(properties, body)
    local reply = client:request { code = 310, body = body or "hello", ext = { a = "group",
      b = "Orders", c = "TBW102", d = "4", e = "2", f = "0", g = "1700000000000", h = "9",
      i = properties, j = "0", k = "false", m = "false" } }
    assert(reply.code == 0, reply.remark)
    return reply.ext.msgId
  end

  local function create(changes, to)
    local ext = { topic = "New", defaultTopic = "TBW102", readQueueNums = "3", writeQueueNums = "2",
      perm = "4", topicFilterType = "SINGLE_TAG", topicSysFlag = "0", order = "false" }
    for name, value in pairs(changes or {}) do ext[name] = value or nil end
    return (to or client):request { code = 17, ext = ext }
  end

  it("makes topics", function()
    assert.equal(0, create().code)
    local route = mock:name_server():route "New"
    assert.same({ 3, 2, 4 }, { route.queues[1].read_queue_nums, route.queues[1].write_queue_nums,
      route.queues[1].perm })
    assert.equal(0, create({ perm = "6", topicSysFlag = "2" }).code)
    local function perm_and_flag()
      local queue = mock:name_server():route("New").queues[1]
      return { queue.perm, queue.topic_sys_flag }
    end
    assert.same({ 6, 2 }, perm_and_flag())
    mock:broker("broker-a"):set_topic("New", { perm = 4 })
    assert.same({ 4, 2 }, perm_and_flag())
  end)

  it("refuses topics as real ones do", function()
    for _, changes in ipairs { { topic = "a b" }, { topic = "TBW102" }, { topic = "rmq_sys_x" },
      { topic = false }, { readQueueNums = "-1" }, { writeQueueNums = "x" }, { perm = "8" },
      { topic = ("x"):rep(128) } } do
      assert.equal(29, create(changes).code)
    end
    local slave = assert(raw_client.connect(mock:broker("broker-a", 1).addr))
    assert.equal(1, create({}, slave).code)
    slave:close()
  end)

  it("has the topics by which it is found", function()
    for _, topic in ipairs { "DefaultCluster", "broker-a", "RMQ_SYS_TRACE_TOPIC" } do
      assert.equal("broker-a", mock:name_server():route(topic).queues[1].broker_name)
    end
  end)

  local function ask(code, ext)
    local all = { topic = "Orders", queueId = "2" }
    for name, value in pairs(ext or {}) do all[name] = value or nil end
    return client:request { code = code, ext = all }
  end

  it("tells offsets and times", function()
    assert.same({ "0", "0", "-1", "0" }, { ask(30).ext.offset, ask(31).ext.offset,
      ask(32).ext.timestamp, ask(29, { timestamp = "0" }).ext.offset })
    send "UNIQ_KEY\1A\2"
    send "UNIQ_KEY\1B\2"
    local first = tonumber(ask(32).ext.timestamp)
    assert.same({ "2", "0" }, { ask(30).ext.offset, ask(31).ext.offset })
    assert.equal("0", ask(29, { timestamp = tostring(first) }).ext.offset)
    assert.equal("2", ask(29, { timestamp = tostring(first + 1e6) }).ext.offset)
    assert.equal("0", ask(31, { topic = "Other" }).ext.offset)
    for _, code in ipairs { 29, 30, 31, 32 } do
      assert.equal(1, ask(code, { queueId = false, timestamp = "0" }).code)
      assert.equal(1, ask(code, { topic = false, timestamp = "0" }).code)
    end
    assert.equal(1, ask(29).code)
  end)

  it("forgets its first messages when it keeps no more", function()
    mock:close()
    mock = new_mock { brokers = { { name = "broker-a" } }, topics = { Orders = 4 }, keep = 2 }
    client = assert(raw_client.connect(mock:broker("broker-a").addr))
    for _ = 1, 5 do send "UNIQ_KEY\1A\2" end
    assert.same({ "5", "3" }, { ask(30).ext.offset, ask(31).ext.offset })
  end)

  it("gives a message back", function()
    send "UNIQ_KEY\1A\2"
    local id = send("UNIQ_KEY\1B\2TAGS\1t\2KEYS\1k kk\2", "b\0dy")
    local reply = client:request { code = 33, ext = { offset =
      ("%d"):format(wire.decode_offset_id(id).offset) } }
    assert.equal(0, reply.code)
    local message = assert(wire.decode_stored(reply.body))[1]
    assert.same({ "Orders", "b\0dy", 2, 1, 9, 0, 1700000000000, id },
      { message.topic, message.body, message.queue_id, message.queue_offset, message.message_flag,
        message.sys_flag, message.born_ms, message.offset_msg_id })
    assert.same({ UNIQ_KEY = "B", TAGS = "t", KEYS = "k kk" },
      wire.decode_properties(message.properties))
    assert.same({ "127.0.0.1", mock:broker("broker-a").port },
      { message.store_host, message.store_port })
    assert.equal(1, client:request({ code = 33, ext = { offset = "5" } }).code)
    assert.equal(1, client:request({ code = 33 }).code)
  end)

  it("finds messages by key and by unique key, the newest first", function()
    send("UNIQ_KEY\1A\2KEYS\1k\2", "1")
    send("UNIQ_KEY\1B\2KEYS\1kk k\2", "2")
    send("UNIQ_KEY\1C\2", "3")
    local function query(changes)
      local ext = { topic = "Orders", key = "k", maxNum = "32", beginTimestamp = "0",
        endTimestamp = "9223372036854775807", _UNIQUE_KEY_QUERY = "false" }
      for name, value in pairs(changes or {}) do ext[name] = value or nil end
      local reply = client:request { code = 12, ext = ext }
      if reply.code ~= 0 then return reply.code end
      local bodies = {}
      for i, message in ipairs(assert(wire.decode_stored(reply.body))) do
        bodies[i] = message.body
      end
      return table.concat(bodies)
    end
    assert.equal("21", query())
    assert.equal("2", query { maxNum = "1" })
    assert.equal("2", query { key = "kk" })
    assert.equal("3", query { key = "C" })
    assert.equal("21", query { maxNum = "1", _UNIQUE_KEY_QUERY = "true" })
    assert.equal(22, query { key = "nothing" })
    assert.equal(22, query { topic = "Other" })
    assert.equal(22, query { endTimestamp = "5" })
    assert.equal(22, query { key = false })
    assert.equal(1, query { topic = false })
  end)
end)
