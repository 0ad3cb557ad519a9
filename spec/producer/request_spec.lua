-- Requests, their replies, and replies of one's own.
local rocketmq = require "rocketmq"
local new_mock = require "rocketmq.mock"
local random = require "spec.support.random"
local wait = require "rocketmq.mock.wait"

local SEND, PUSH = "SEND_MESSAGE_V2", "PUSH_REPLY_MESSAGE_TO_CLIENT"

describe("a request", function()
  local mock, producer
  before_each(function()
    mock = new_mock { brokers = 2, topics = { Questions = 4 } }
    producer = rocketmq.producer { group = "asker", namesrv = mock.namesrv }
  end)
  after_each(function()
    producer:shutdown(100)
    mock:close()
  end)

  local function answer_all()
    mock:reply("Questions", function(message) return "re: " .. message.body end)
  end

  local message = { topic = "Questions", body = "x", tags = "t", keys = "k",
    properties = { p = "q" } }

  local function nothing_waits()
    assert.equal(0, producer:stats().requests)
    assert.equal(0, producer:stats().inflight)
  end

  it("gets its reply", function()
    local seen
    mock:reply("Questions", function(asked)
      seen = asked
      return "re: " .. asked.body
    end)
    local reply, err = producer:request(message, { timeout = 5000 })
    assert.is_nil(err)
    assert.equal("re: x", reply.body)
    assert.equal("DefaultCluster_REPLY_TOPIC", reply.topic)
    assert.equal("reply", reply.properties.MSG_TYPE)
    assert.equal(seen.properties.CORRELATION_ID, reply.properties.CORRELATION_ID)
    assert.equal(producer.client_id, seen.properties.REPLY_TO_CLIENT)
    assert.equal("5000", seen.properties.TTL)
    assert.matches("^%x+%-%x+%-4%x+%-%x+%-%x+$", seen.properties.CORRELATION_ID)
    assert.equal("t", seen.tags)
    assert.same({ "k" }, seen.keys)
    assert.equal("q", seen.properties.p)
    assert.matches("^127.0.0.1:%d+$", reply.store_host)
    assert.is_nil(reply.queue_offset)
    nothing_waits()
    assert.equal(1, producer:stats().replies)
  end)

  it("gets its own one among many", function()
    mock:reply("Questions", function(asked)
      rocketmq.sleep(#asked.body % 5)
      return asked.body
    end)
    local tasks = {}
    random.rounds(200, function(source)
      local i = #tasks + 1
      local body = source:bytes(300) .. i
      tasks[i] = function()
        local reply = assert(producer:request({ topic = "Questions", body = body },
          { timeout = 20000 }))
        assert.equal(body, reply.body)
      end
    end)
    assert(rocketmq.gather(tasks))
    assert.equal(200, producer:stats().replies)
    nothing_waits()
  end)

  it("may be long", function()
    local body = ("long "):rep(20000)
    mock:reply("Questions", function(asked)
      assert.equal(body, asked.body)
      return body .. "reply"
    end)
    local reply = assert(producer:request({ topic = "Questions", body = body },
      { timeout = 5000 }))
    assert.equal(body .. "reply", reply.body)
  end)

  it("that nobody replies to ends in time, and a late reply is counted", function()
    local late, over
    mock:reply("Questions", function()
      late = true
      repeat rocketmq.sleep(1) until over
      return "late"
    end)
    -- Time enough for the request itself.
    local reply, err = producer:request(message, { timeout = 500 })
    over = true
    assert.is_nil(reply)
    assert.equal("timeout", err.kind)
    assert.equal(10006, err.code)
    assert.equal("Questions", err.topic)
    assert.matches("no reply to it came within 500 ms", err.message)
    nothing_waits()
    assert.is_true(late)
    assert(wait(function() return producer:stats().late_replies == 1 end, 5000))
  end)

  it("that cannot be sent ends at once", function()
    mock:rule { code = SEND, answer = { code = "MESSAGE_ILLEGAL", remark = "no" } }
    local reply, err = producer:request(message, { timeout = 60000 })
    assert.is_nil(reply)
    assert.equal("broker", err.kind)
    nothing_waits()
  end)

  it("is tried again as a send is", function()
    answer_all()
    mock:rule { code = SEND, times = 1, answer = { code = "SYSTEM_BUSY" } }
    assert.equal("re: x", assert(producer:request(message, { timeout = 5000 })).body)
  end)

  it("goes where its options say", function()
    answer_all()
    assert(producer:request(message, { timeout = 5000, queue = { broker = "broker-b", id = 3 } }))
    assert(producer:request(message, { timeout = 5000, arg = 2,
      selector = function(queues, shown, arg)
        assert(shown.body == "x")
        return queues[arg]
      end }))
    local sent = mock:messages "Questions"
    assert.equal("broker-b", sent[1].broker)
    assert.equal(3, sent[1].queue_id)
    assert.equal("broker-a", sent[2].broker)
    assert.equal(1, sent[2].queue_id)
  end)

  it("goes where the producer's own selector says, unless its options say it", function()
    answer_all()
    local asked = {}
    local choosing = rocketmq.producer { group = "choosing", namesrv = mock.namesrv,
      selector = function(queues, shown, arg)
        asked[#asked + 1] = { shown.body, arg }
        return queues[3]
      end }
    assert(choosing:request(message, { timeout = 5000 }))
    assert(choosing:request(message, { timeout = 5000, arg = "a" }))
    local done
    assert(choosing:request_async(message, function(reply) done = reply end))
    assert(wait(function() return done end, 5000))
    assert(choosing:request(message, { timeout = 5000, queue = choosing:queues("Questions")[1] }))
    assert.same({ { "x" }, { "x", "a" }, { "x" } }, asked)
    local third = choosing:queues("Questions")[3]
    for i, got in ipairs(mock:messages "Questions") do
      local is_third = got.broker == third.broker and got.queue_id == third.id
      assert.equal(i <= 3, is_third)
    end
    choosing:shutdown()
  end)

  it("is answered by whichever broker the reply comes through", function()
    -- A reply through a broker that has nothing to do with the topic.
    mock:close()
    mock = new_mock { brokers = 3,
      topics = { Questions = { queues = 1, brokers = { "broker-a" } } } }
    producer:shutdown(100)
    producer = rocketmq.producer { group = "asker", namesrv = mock.namesrv }
    local replier = rocketmq.producer { group = "replier", namesrv = mock.namesrv }
    finally(function() replier:shutdown(100) end)
    for _, broker in ipairs { "broker-a", "broker-b", "broker-c" } do
      mock:reply("Questions", function(asked)
        local reply = assert(rocketmq.reply(asked, "through " .. broker))
        local result, err = replier:send(reply,
          { queue = { broker = broker, id = 0 }, retries = 0 })
        assert(result, tostring(err))
      end)
      local reply = assert(producer:request(message, { timeout = 5000 }))
      assert.equal("through " .. broker, reply.body)
    end
  end)

  describe("with a callback", function()
    it("calls it with the reply, once, as a task", function()
      answer_all()
      local calls = {}
      assert.is_true(producer:request_async(message, { timeout = 5000 }, function(reply, err)
        rocketmq.sleep(1)
        calls[#calls + 1] = { reply = reply, err = err }
      end))
      assert.equal(0, #calls)
      assert(wait(function() return calls[1] end, 5000))
      assert.equal("re: x", calls[1].reply.body)
      rocketmq.sleep(5)
      assert.equal(1, #calls)
      nothing_waits()
    end)

    it("calls it with the error, once", function()
      local calls = {}
      assert(producer:request_async(message, { timeout = 500 }, function(reply, err)
        calls[#calls + 1] = { reply = reply, err = err }
      end))
      assert(wait(function() return calls[1] end, 5000))
      assert.equal(10006, calls[1].err.code)
      rocketmq.sleep(5)
      assert.equal(1, #calls)
    end)

    it("may leave the options out, and choose", function()
      answer_all()
      local got = 0
      assert(producer:request_async(message, function(reply) got = got + (reply and 1 or 0) end))
      assert(producer:request_async(message, { selector = function(queues) return queues[2] end },
        function(reply) got = got + (reply and 1 or 0) end))
      assert(wait(function() return got == 2 end, 5000))
    end)

    it("tells what is wrong at once", function()
      local ok, err = producer:request_async({ topic = "Questions", body = "" }, print)
      assert.is_nil(ok)
      assert.equal("message", err.kind)
    end)
  end)

  it("cannot be delayed", function()
    local reply, err = producer:request { topic = "Questions", body = "x", delay_ms = 5 }
    assert.is_nil(reply)
    assert.matches("cannot be delayed", err.message)
  end)

  it("wants what it needs", function()
    assert.error_matches(function() producer:request() end, "must be a table, not nil")
    assert.error_matches(function() producer.request(message) end, "colon")
    assert.error_matches(function() producer:request(message, 5) end, "options must be a table")
    assert.error_matches(function() producer:request_async(message) end,
      "the callback must be a function, not nil")
    assert.error_matches(function() producer:request(message, { timeot = 5 }) end, "timeout")
  end)

  it("that is under way when the producer shuts down ends then", function()
    local task = rocketmq.spawn(function()
      return select(2, producer:request(message, { timeout = 60000 }))
    end)
    assert(wait(function() return mock:count() == 1 end, 5000))
    producer:shutdown(20)
    local err = task:wait()
    assert.equal("state", err.kind)
    nothing_waits()
  end)

  describe("and replies that nobody asked for", function()
    local function push(ext)
      return assert(mock:broker("broker-a"):request { code = PUSH, ext = ext, body = "x",
        client = producer.client_id })
    end

    it("are answered, counted, and do no harm", function()
      answer_all()
      assert(producer:request({ topic = "Questions", body = "x" },
        { timeout = 5000, queue = { broker = "broker-a", id = 0 } }))
      assert.equal(0, push({ properties = "CORRELATION_ID\1unknown\2" }).code)
      assert.equal(0, push({ properties = "without one" }).code)
      assert.equal(0, push({}).code)
      assert.equal(3, producer:stats().late_replies)
      assert.equal(1, push({ properties = "a\1b\2", sysFlag = "x" }).code)
      assert.equal(1, push({ properties = "a\1b\2", bornTimestamp = "9999999999999999999" }).code)
      assert(producer:request(message, { timeout = 5000 }))
    end)
  end)
end)

describe("rocketmq.reply", function()
  local request = { topic = "Q", body = "x", properties = { CLUSTER = "K", CORRELATION_ID = "id",
    REPLY_TO_CLIENT = "c@1", TTL = "3000" } }

  it("makes a message for who asked", function()
    assert.same({ topic = "K_REPLY_TOPIC", body = "y",
      reply_to = { correlation_id = "id", client = "c@1", ttl = "3000" } },
      rocketmq.reply(request, "y"))
  end)

  it("says what is missing", function()
    for name in pairs { CLUSTER = 1, CORRELATION_ID = 1, REPLY_TO_CLIENT = 1 } do
      local properties = {}
      for key, value in pairs(request.properties) do properties[key] = value end
      properties[name] = nil
      local reply, err = rocketmq.reply({ properties = properties }, "y")
      assert.is_nil(reply)
      assert.equal(10007, err.code)
      assert.matches("no property " .. name, err.message)
    end
    assert.error_matches(function() rocketmq.reply("x", "y") end, "must be a message")
    assert.error_matches(function() rocketmq.reply({}, "y") end, "must be a message")
  end)

  it("is refused when its table was tampered with", function()
    local mock = new_mock { topics = { K_REPLY_TOPIC = 1 } }
    local producer = rocketmq.producer { group = "g", namesrv = mock.namesrv }
    finally(function()
      producer:shutdown(100)
      mock:close()
    end)
    local reply = rocketmq.reply(request, "y")
    local function try(changes)
      local changed = { topic = reply.topic, body = reply.body, reply_to = {} }
      for name, value in pairs(reply.reply_to) do changed.reply_to[name] = value end
      for name, value in pairs(changes) do changed.reply_to[name] = value or nil end
      return select(2, producer:send(changed)), changed
    end
    assert.matches("reply_to.client has byte 1", try({ client = "a\1b" }).message)
    assert.matches("reply_to.ttl is not valid UTF%-8", try({ ttl = "\255" }).message)
    assert.matches("needs a correlation_id", try({ correlation_id = "" }).message)
    assert.error_matches(function() try { clint = "x" } end, "client")
    assert.error_matches(function() try { ttl = 5 } end, "reply_to.ttl .* must be a string")
    assert.error_matches(function() producer:send { topic = "T", body = "x", reply_to = 5 } end,
      "use rocketmq.reply")
    local _, err = producer:request(reply)
    assert.matches("a reply cannot be a request", err.message)
    _, err = producer:send_batch { reply }
    assert.matches("reply", err.message)
    local sent, why = producer:send(reply) -- nobody with this client id is there
    assert.is_nil(sent)
    assert.matches("client c@1 is not connected", tostring(why))
    assert.equal(325, mock:requests({ code = "SEND_REPLY_MESSAGE_V2" })[1].code)
  end)
end)
