-- Topics, offsets of queues and stored messages, asked for from scripts.
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"
local task = require "rocketmq.task"
local wire = require "rocketmq.wire"

local int64 = require("ffi").typeof "int64_t"

describe("a producer", function()
  local c, producer, mock

  local function start(settings)
    c = cluster.new({ brokers = 2, topics = { Orders = 4 }, cluster = "C" }, settings)
    producer, mock = c.producer, c.mock
  end

  before_each(function() start() end)
  after_each(function() c:finish() end)

  describe("makes topics", function()
    local function counts(topic)
      local per_broker = {}
      for _, queue in ipairs(assert(producer:queues(topic))) do
        per_broker[queue.broker] = (per_broker[queue.broker] or 0) + 1
      end
      return per_broker
    end

    it("on every broker that makes topics by itself, and knows their queues afterwards", function()
      assert.is_true(producer:create_topic { topic = "New", queues = 3 })
      assert.same({ ["broker-a"] = 3, ["broker-b"] = 3 }, counts "New")
      assert.is_true(producer:create_topic { topic = "Other" })
      assert.same({ ["broker-a"] = 4, ["broker-b"] = 4 }, counts "Other")
    end)

    it("where there is no topic to make others from", function()
      c:finish()
      c = cluster.new { brokers = 2, auto_create = false, cluster = "C" }
      producer, mock = c.producer, c.mock
      local ok, err = producer:create_topic { topic = "New", queues = 3 }
      assert.is_nil(ok)
      assert.equal("route", err.kind)
      assert.matches('topic "New" was not made: no broker with a master has the topic "TBW102"; '
        .. 'name the brokers, with cluster = "..." or brokers = {...}', err.message, 1, true)
      ok, err = producer:create_topic { topic = "New", queues = 3, cluster = "D" }
      assert.is_nil(ok)
      assert.matches('topic "New" was not made: no name server knows a cluster "D" with a master; '
        .. 'look at its brokerClusterName', err.message, 1, true)
      assert.is_true(producer:create_topic { topic = "New", queues = 3, cluster = "C" })
      assert.same({ ["broker-a"] = 3, ["broker-b"] = 3 }, counts "New")
      assert.is_true(producer:create_topic { topic = "B", queues = 1, brokers = { "broker-b" } })
      assert.same({ ["broker-b"] = 1 }, counts "B")
    end)

    it("with what the broker is told of them", function()
      assert.is_true(producer:create_topic { topic = "New", read_queues = 5, write_queues = 2,
        perm = 4, order = true, sys_flag = 3, attributes = { ["message.type"] = "FIFO" } })
      local ext = mock:requests({ code = "UPDATE_AND_CREATE_TOPIC" })[1].ext
      assert.same({ topic = "New", defaultTopic = "TBW102", readQueueNums = "5",
        writeQueueNums = "2", perm = "4", topicFilterType = "SINGLE_TAG", topicSysFlag = "3",
        order = "true", attributes = "+message.type=FIFO" }, ext)
      local _, err = producer:queues "New"
      assert.matches("no writable queue %(2 read%-only", err.message)
    end)

    it("again, with other numbers of queues", function()
      assert.is_true(producer:create_topic { topic = "New", queues = 8 })
      assert.is_true(producer:create_topic { topic = "New", queues = 2 })
      assert.same({ ["broker-a"] = 2, ["broker-b"] = 2 }, counts "New")
    end)

    it("and says which brokers did not do it", function()
      mock:rule { at = "broker-b", code = "UPDATE_AND_CREATE_TOPIC",
        answer = { code = 1, remark = "no" } }
      local ok, err = producer:create_topic { topic = "New" }
      assert.is_nil(ok)
      assert.same({ "broker", 1, "New", "broker-b", 1 },
        { err.kind, err.code, err.topic, err.broker, #err.tries })
      assert.matches('^broker error 1: topic "New" was made on 1 of 2 brokers: broker%-b: '
        .. "UPDATE_AND_CREATE_TOPIC was refused by 127.0.0.1:%d+ with code 1 SYSTEM_ERROR: no$",
        tostring(err))
      assert.same({ ["broker-a"] = 4 }, counts "New")
    end)

    it("and waits until the name server shows them, unless it shall not", function()
      mock:name_server():freeze()
      local ok, err = producer:create_topic { topic = "New", timeout = 1000 }
      assert.is_nil(ok)
      assert.equal("timeout", err.kind)
      assert.matches("does not show it so on broker broker%-a yet", err.message)
      assert.is_true(producer:create_topic { topic = "New", wait = false })
      local waiting = task.spawn(function() return producer:create_topic { topic = "New" } end)
      mock:wait(function() return #mock:requests { code = "UPDATE_AND_CREATE_TOPIC" } == 6 end)
      mock:name_server():thaw()
      assert.is_true(waiting:wait())
    end)

    it("and not with names and numbers that are wrong", function()
      local function refused(given, pattern)
        local ok, err = producer:create_topic(given)
        assert.is_nil(ok)
        assert.equal("message", err.kind)
        assert.matches(pattern, err.message)
      end
      refused({ topic = "a b" }, "topic has a space at position 2")
      refused({ topic = "TBW102" }, "one of RocketMQ's own")
      refused({ topic = "New", queues = 0 }, "queues is 0; it must be a whole number from 1 to")
      refused({ topic = "New", queues = 1.5 }, "queues is 1.5")
      refused({ topic = "New", read_queues = -1 }, "read_queues is %-1")
      refused({ topic = "New", perm = 1 }, "perm must be 2")
      refused({ topic = "New", perm = 8 }, "perm is 8")
      refused({ topic = "New", timeout = 0 }, "timeout is 0")
      refused({ topic = "New", cluster = "" }, "cluster is empty")
      refused({ topic = "New", cluster = "a b" }, "cluster must be")
      refused({ topic = "New", brokers = { "a b" } }, "a name in brokers must be")
      refused({ topic = "New", attributes = { a = "b,c" } }, "attributes must be")
      assert.equal(0, #mock:requests { code = "UPDATE_AND_CREATE_TOPIC" })
      local function raises(given, pattern)
        local ok, err = pcall(producer.create_topic, producer, given)
        assert.is_false(ok)
        assert.matches(pattern, err)
      end
      raises({ topic = "New", queus = 1 }, "unknown field 'queus' in the new topic: did you mean "
        .. "'queues'%?")
      raises({}, 'must have a name: topic = "%.%.%."')
      raises({ topic = 1 }, "topic must be a string, not number")
      raises({ topic = "New", queues = "1" }, "queues must be a number, not string")
      raises({ topic = "New", brokers = "b" }, "brokers must be a list of strings, not string")
      raises({ topic = "New", brokers = {} }, "brokers is empty")
      raises({ topic = "New", brokers = { 1 } }, "each of brokers must be a string")
      raises({ topic = "New", attributes = { 1 } }, "attributes must have strings")
      raises({ topic = "New", order = 1 }, "order must be true or false")
      raises({ topic = "New", cluster = "C", brokers = { "b" } }, "exclude each other")
      raises("New", "the new topic must be a table, not string")
      assert.error_matches(function() producer:create_topic({ topic = "New" }, { timeout = 5 }) end,
        "create_topic takes one table; timeout and all else stands in it", nil, true)
    end)
  end)

  describe("asks for offsets", function()
    local queue = { topic = "Orders", broker = "broker-a", id = 1 }

    local function send(n)
      for _ = 1, n do
        assert(producer:send({ topic = "Orders", body = "x" }, { queue = queue }))
      end
    end

    it("of queues, given as such or as tables", function()
      local same
      for _, candidate in ipairs(producer:queues "Orders") do
        if candidate.broker == "broker-a" and candidate.id == 1 then same = candidate end
      end
      assert.same({ 0, 0 }, { producer:max_offset(queue), producer:max_offset(same) })
      send(3)
      assert.same({ 3, 3 }, { producer:max_offset(queue), producer:max_offset(same) })
      assert.same({ 0, 0 }, { producer:min_offset(queue), producer:min_offset(same) })
    end)

    it("by time", function()
      local before = os.time() * 1000 - 1000
      assert.equal(-1, producer:earliest_time(queue))
      send(1)
      local first = producer:earliest_time(queue)
      assert.is_true(first > before and first < before + 3600000)
      task.sleep(2)
      send(1)
      assert.equal(0, producer:search_offset(queue, 0))
      assert.equal(0, producer:search_offset(queue, first))
      assert.equal(1, producer:search_offset(queue, first + 1))
      assert.equal(2, producer:search_offset(queue, first + 3600000))
    end)

    it("that a number cannot hold", function()
      mock:rule { code = "GET_MAX_OFFSET",
        answer = { code = 0, ext = { offset = "9223372036854775807" } } }
      local offset = producer:max_offset(queue)
      assert.equal("int64_t", tostring(require("ffi").typeof(offset)):match "ctype<(.-)>")
      assert.is_true(offset == int64(0x7fffffffffffffffLL))
    end)

    it("and tells what goes wrong", function()
      local _, err = producer:max_offset { topic = "Orders", broker = "nobody", id = 0 }
      assert.same({ "route", 10003 }, { err.kind, err.code })
      mock:rule { code = "GET_MIN_OFFSET", answer = { code = 1, remark = "no" } }
      _, err = producer:min_offset(queue)
      assert.same({ "broker", 1 }, { err.kind, err.code })
      mock:rule { code = "GET_EARLIEST_MSG_STORETIME", silent = true }
      _, err = producer:earliest_time(queue, { timeout = 50 })
      assert.equal("timeout", err.kind)
      _, err = producer:search_offset(queue, 0 / 0)
      assert.matches("the time is nan; it must be a whole number", err.message)
      _, err = producer:max_offset { topic = "Orders", broker = "broker-a", id = -1 }
      assert.matches("id of the queue is %-1", err.message)
      local function raises(pattern, ...)
        local ok, why = pcall(...)
        assert.is_false(ok)
        assert.matches(pattern, why)
      end
      raises("the queue must be a queue or a table", producer.max_offset, producer, "Orders")
      raises("did you mean 'broker'%?", producer.max_offset, producer, { brokr = "a" })
      raises("must have a topic, a broker and an id", producer.max_offset, producer,
        { topic = "a", broker = "b" })
      raises("the time must be a number, not nil", producer.search_offset, producer, queue)
      raises("did you mean 'timeout'%?", producer.max_offset, producer, queue, { timeot = 1 })
      raises("the options must be a table", producer.max_offset, producer, queue, 5)
    end)
  end)

  describe("finds messages", function()
    local sent, result

    before_each(function()
      sent = { topic = "Orders", body = "b\0dy", tags = "paid", keys = { "k1", "订单" }, flag = 7,
        properties = { colour = "绿" } }
      result = assert(producer:send(sent))
    end)

    local function check(message)
      assert.same({ sent.topic, sent.body, sent.tags, sent.keys, sent.flag },
        { message.topic, message.body, message.tags, message.keys, message.flag })
      assert.same({ colour = "绿", TAGS = "paid", KEYS = "k1 订单", WAIT = "true",
        UNIQ_KEY = result.msg_id }, message.properties)
      assert.same({ result.msg_id, result.offset_msg_id, result.queue_offset },
        { message.msg_id, message.offset_msg_id, message.queue_offset })
      assert.equal(result.queue, message.queue)
      assert.equal(result.queue.id, message.queue_id)
      local broker = mock:broker(result.queue.broker)
      assert.equal(broker.addr, message.store_host)
      assert.matches("^127%.0%.0%.1:%d+$", message.born_host)
      assert.is_true(message.store_timestamp >= message.born_timestamp)
      assert.same({ 0, 0, 0 }, { message.sys_flag, message.reconsume_times,
        message.prepared_transaction_offset })
      assert.equal(wire.decode_offset_id(result.offset_msg_id).offset, message.commit_log_offset)
    end

    it("by the broker's id", function()
      check(assert(producer:view_message(result.offset_msg_id)))
      check(assert(producer:view_message("Orders", result.offset_msg_id)))
      assert.equal(0, #mock:requests { code = "QUERY_MESSAGE" })
      -- Who has never heard of the broker does not know its name.
      local stranger = c:add_producer { group = "stranger" }
      local message = assert(stranger:view_message(result.offset_msg_id, { timeout = 2000 }))
      assert.is_nil(message.queue)
      assert.equal("b\0dy", message.body)
      check(assert(stranger:view_message("Orders", result.offset_msg_id)))
    end)

    it("that are compressed, and unpacks them", function()
      local long = ("订单"):rep(5000)
      for _, kind in ipairs { "zlib", "lz4", "zstd" } do
        local other = c:add_producer { group = kind, compress_type = kind }
        local place = assert(other:send { topic = "Orders", body = long }).offset_msg_id
        local message = assert(producer:view_message(place))
        assert.is_true(message.body == long)
        assert.equal(0, message.sys_flag % 2)
      end
      -- What cannot be unpacked is given as it is.
      local bad = wire.encode_stored { topic = "Orders", body = "no zlib", sys_flag = 0x301,
        properties = "KEYS\1bad\2" }
      mock:rule { code = "QUERY_MESSAGE", answer = { code = 0, body = bad } }
      local message = assert(producer:query_message("Orders", "bad"))[1]
      assert.same({ "no zlib", 0x301 }, { message.body, message.sys_flag })
    end)

    it("by its unique key", function()
      check(assert(producer:view_message("Orders", result.msg_id)))
      local _, err = producer:view_message("Orders", ("F"):rep(32))
      assert.same({ "broker", 208, "Orders" }, { err.kind, err.code, err.topic })
      assert.matches("no broker of topic \"Orders\" has a message with the id F+", err.message)
      _, err = producer:view_message(result.msg_id)
      assert.matches("name its topic too", err.message)
    end)

    it("by key", function()
      check(assert(producer:query_message("Orders", "k1"))[1])
      check(assert(producer:query_message("Orders", "订单"))[1])
      assert.same({}, (assert(producer:query_message("Orders", "k"))))
      -- Brokers index unique keys too; they are no keys.
      assert.same({}, (assert(producer:query_message("Orders", result.msg_id))))
      for i = 1, 9 do
        task.sleep(2)
        assert(producer:send { topic = "Orders", body = tostring(i), keys = "many" })
      end
      local function bodies(options)
        local all = {}
        for i, message in ipairs(assert(producer:query_message("Orders", "many", options))) do
          all[i] = message.body
        end
        return table.concat(all)
      end
      assert.equal("123456789", bodies())
      assert.equal("789", bodies { max = 3 })
      local third = producer:query_message("Orders", "many")[3].store_timestamp
      assert.equal("3456789", bodies { begin_timestamp = third })
      assert.equal("123", bodies { end_timestamp = third })
      assert.equal("3", bodies { begin_timestamp = third, end_timestamp = third })
    end)

    it("also when not every broker answers", function()
      local mute = result.queue.broker == "broker-a" and "broker-b" or "broker-a"
      mock:rule { at = mute, code = "QUERY_MESSAGE", answer = { code = 1, remark = "no" } }
      local messages, err = producer:query_message("Orders", "k1")
      check(messages[1])
      assert.same({ "broker", 1, mute, 1 }, { err.kind, err.code, err.broker, #err.tries })
      assert.matches("1 of the topic's 2 brokers did not answer as they should", err.message)
      mock:rule { code = "QUERY_MESSAGE", answer = { code = 0, body = "no message" } }
      messages, err = producer:query_message("Orders", "k1")
      assert.is_nil(messages)
      assert.equal(2, #err.tries)
    end)

    it("and says what cannot be asked", function()
      local function refused(pattern, ...)
        local value, err = producer:query_message(...)
        assert.is_nil(value)
        assert.matches(pattern, err.message)
      end
      refused("key must have", "Orders", "")
      refused("key must have", "Orders", "a b")
      refused("max is 0", "Orders", "k", { max = 0 })
      refused("later than end_timestamp", "Orders", "k", { begin_timestamp = 2, end_timestamp = 1 })
      refused("topic has a space", "a b", "k")
      local ok, err = pcall(producer.query_message, producer, "Orders", "k", { maximum = 1 })
      assert.is_false(ok)
      assert.matches("unknown option 'maximum'", err)
      ok, err = pcall(producer.view_message, producer, "Orders", 12)
      assert.is_false(ok)
      assert.matches("the message's id must be a string, not number", err)
    end)
  end)

  it("that is shut down asks for nothing more", function()
    producer:shutdown()
    local queue = { topic = "Orders", broker = "broker-a", id = 1 }
    for _, call in ipairs {
      function() return producer:create_topic { topic = "New" } end,
      function() return producer:max_offset(queue) end,
      function() return producer:query_message("Orders", "k") end,
      function() return producer:view_message("Orders", ("A"):rep(32)) end,
    } do
      local value, err = call()
      assert.is_nil(value)
      assert.equal("state", err.kind)
    end
  end)

  it("waits at its end for what is asked", function()
    mock:rule { code = "GET_MAX_OFFSET", delay = 50 }
    local asking = task.spawn(function()
      return producer:max_offset { topic = "Orders", broker = "broker-a", id = 1 }
    end)
    mock:wait(function() return #mock:requests { code = "GET_MAX_OFFSET" } == 1 end)
    assert.is_true(producer:shutdown())
    assert.equal(0, (asking:wait()))
  end)

  it("refuses to ask where nobody can wait", function()
    local ok, err = pcall(table.sort, { 1, 2 }, function()
      producer:max_offset { topic = "Orders", broker = "broker-a", id = 1 }
    end)
    assert.is_false(ok)
    assert.matches("cannot wait", err)
  end)
end)

describe("a method of a producer called with a dot", function()
  it("says so", function()
    for _, name in ipairs { "create_topic", "max_offset", "view_message", "query_message" } do
      local producer = rocketmq.producer { group = "g", namesrv = "127.0.0.1:1" }
      local ok, err = pcall(producer[name], {})
      assert.is_false(ok)
      assert.matches("call it as producer:method%(%), not producer%.method%(%)", err)
      producer:shutdown()
    end
  end)
end)
