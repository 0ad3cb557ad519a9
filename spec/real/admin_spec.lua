-- What a script is told of topics, queues and stored messages is what the Java client is told by the same
-- servers at the same time.

local cjson = require "cjson"
local messages = require "spec.real.messages"
local rocketmq = require "rocketmq"
local support = require "spec.real.support"
local wait = require "rocketmq.mock.wait"
local wire = require "rocketmq.wire"

local seed = tonumber(os.getenv "RMQ_SEED") or os.time() % 1000000
local COUNT = 60

-- Asks the Java client all questions at once; gives its answers.
local function ask_java(server, questions)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  for _, words in ipairs(questions) do file:write(table.concat(words, "\t"), "\n") end
  file:close()
  local answers = {}
  support.java("Ask", { server.namesrv }, function(line)
    answers[#answers + 1] = cjson.decode(line)
  end, nil, path)
  os.remove(path)
  assert.equal(#questions, #answers)
  return answers
end

local same_fields = { "topic", "tags", "flag", "sys_flag", "queue_id", "queue_offset",
  "commit_log_offset", "born_timestamp", "store_timestamp", "reconsume_times",
  "prepared_transaction_offset", "born_host", "store_host", "msg_id", "offset_msg_id" }

-- Java's client takes the mark that a body is compressed away when it has unpacked it, and so do we.
local function check_same(ours, java, what)
  for _, name in ipairs(same_fields) do
    local theirs = java[name]
    if theirs == cjson.null then theirs = nil end
    assert.equal(theirs, ours[name], what .. ": " .. name)
  end
  assert.is_true(support.base64_decode(java.body) == ours.body, what .. ": body")
  local keys = java.keys ~= cjson.null and java.keys or ""
  assert.equal(keys, table.concat(ours.keys, " "), what .. ": keys")
  local theirs = {}
  for name, value in pairs(java.properties) do theirs[name] = value end
  assert.same(theirs, ours.properties, what .. ": properties")
end

for _, server in ipairs(support.servers()) do
  describe("RocketMQ " .. server.version, function()
    local producer
    local topic = "Asked" .. seed
    local brokers = server.version == "5.4.0" and { "broker-a", "broker-b" } or { "broker-a" }

    setup(function()
      producer = rocketmq.producer { group = "spec", namesrv = server.namesrv,
        send_msg_timeout = 20000 }
    end)
    teardown(function() producer:shutdown() end)

    -- How Java's admin client sees a topic: by broker, its queues and permissions.
    local function java_route(name)
      local seen = {}
      support.java("Admin", { server.namesrv, "route", name }, function(line)
        for _, queues in ipairs(assert(wire.decode_route(line)).queues) do
          seen[queues.broker_name] = { queues.read_queue_nums, queues.write_queue_nums,
            queues.perm }
        end
      end)
      return seen
    end

    local function on_each(value)
      local all = {}
      for _, broker in ipairs(brokers) do all[broker] = value end
      return all
    end

    it("makes the topics that a script wants", function()
      assert.same({ true }, { producer:create_topic { topic = topic, queues = 3 } })
      assert.equal(3 * #brokers, #assert(producer:queues(topic)))
      assert.same(on_each { 3, 3, 6 }, java_route(topic))
      assert.same({ true }, { producer:create_topic { topic = topic .. "C", read_queues = 5,
        write_queues = 2, perm = 4, cluster = "C" } })
      assert.same(on_each { 5, 2, 4 }, java_route(topic .. "C"))
      assert.same({ true }, { producer:create_topic { topic = topic .. "B", queues = 1,
        brokers = { "broker-a" } } })
      assert.same({ ["broker-a"] = { 1, 1, 6 } }, java_route(topic .. "B"))
      -- A topic that is there is changed.
      assert.same({ true }, { producer:create_topic { topic = topic .. "B", queues = 2,
        brokers = { "broker-a" } } })
      assert.equal(2, #assert(producer:queues(topic .. "B")))
    end)

    it("refuses what it does not make, and says so", function()
      local ok, err = producer:create_topic { topic = topic .. "X", cluster = "Elsewhere" }
      assert.is_nil(ok)
      assert.equal("route", err.kind)
      if server.version == "5.4.0" then
        ok, err = producer:create_topic { topic = topic .. "X",
          attributes = { ["no.such"] = "attribute" } }
        assert.is_nil(ok)
        assert.equal("broker", err.kind)
        assert.equal(#brokers, #err.tries)
        assert.matches("no.such", err.message, 1, true)
        assert.is_true(producer:create_topic { topic = topic .. "F",
          attributes = { ["message.type"] = "FIFO" } })
      end
    end)

    it("tells of its messages what it tells Java", function()
      local sent = {}
      for i = 1, COUNT do
        local message = messages.make(seed, i)
        message.topic = topic
        message.keys = { "key" .. i, "shared", "订单" .. i % 7 }
        sent[i] = assert(producer:send(message))
      end
      local last = sent[COUNT]
      -- The index of keys is written in the background.
      assert(wait(function() return producer:view_message(topic, last.msg_id) end, 20000))

      local questions, ours = {}, {}
      local function ask(words, value)
        questions[#questions + 1], ours[#ours + 1] = words, value
      end
      local queues = assert(producer:queues(topic))
      local times = {}
      for i = 1, COUNT, 13 do
        times[#times + 1] = assert(producer:view_message(sent[i].offset_msg_id)).store_timestamp
      end
      for _, queue in ipairs(queues) do
        local words = { queue.topic, queue.broker, queue.id }
        ask({ "max", unpack(words) }, assert(producer:max_offset(queue)))
        ask({ "min", unpack(words) }, assert(producer:min_offset(queue)))
        ask({ "earliest", unpack(words) }, assert(producer:earliest_time(queue)))
        for _, time in ipairs { 0, times[1], times[2], times[3] + 1, times[4], 4102444800000 } do
          ask({ "search", words[1], words[2], words[3], ("%d"):format(time) },
            assert(producer:search_offset(queue, time)))
        end
      end
      local n_numbers = #questions
      local nowhere = { topic = topic, broker = "broker-a", id = 77 }
      for _, what in ipairs { "max", "min" } do
        ask({ what, topic, "broker-a", 77 }, (producer[what .. "_offset"](producer, nowhere)))
      end
      for i = 1, COUNT do
        ask({ "view", topic, sent[i].offset_msg_id },
          { assert(producer:view_message(sent[i].offset_msg_id)) })
      end
      for i = 1, COUNT, 7 do
        ask({ "view", topic, sent[i].msg_id }, { assert(producer:view_message(topic,
          sent[i].msg_id)) })
        ask({ "query", topic, "key" .. i, 32, 0, "9223372036854775807" },
          assert(producer:query_message(topic, "key" .. i)))
      end
      for i = 0, 6 do
        ask({ "query", topic, "订单" .. i, 32, 0, "9223372036854775807" },
          assert(producer:query_message(topic, "订单" .. i)))
      end

      local total = 0
      for number, java in ipairs(ask_java(server, questions)) do
        local what = table.concat(questions[number], " ")
        assert.is_nil(java.error, what .. ": " .. tostring(java.error))
        if java.value then
          assert.equal(java.value, ours[number], what)
          if questions[number][1] == "max" and number <= n_numbers then
            total = total + java.value
          end
        else
          assert.equal(#java.messages, #ours[number], what)
          -- Java lists what a broker finds from the newest on, one broker after the other.
          table.sort(java.messages, function(a, b) return a.msg_id < b.msg_id end)
          table.sort(ours[number], function(a, b) return a.msg_id < b.msg_id end)
          for i, message in ipairs(java.messages) do
            check_same(ours[number][i], message, what)
          end
        end
      end
      assert.equal(COUNT, total)

      -- The queue that a message names is the one that the send's result named.
      for i = 1, COUNT do
        assert.equal(sent[i].queue, producer:view_message(sent[i].offset_msg_id).queue)
      end
      local shared = assert(producer:query_message(topic, "shared", { max = COUNT }))
      assert.equal(COUNT, #shared)
      for i = 2, COUNT do
        assert.is_true(shared[i - 1].store_timestamp <= shared[i].store_timestamp)
      end
      assert.equal(5, #assert(producer:query_message(topic, "shared", { max = 5 })))
    end)

    it("tells that a message is not there", function()
      local message = assert(producer:send { topic = topic, body = "x" })
      local id = message.offset_msg_id
      local value, err = producer:view_message(id:sub(1, 16) .. "00000000000F0001")
      assert.is_nil(value)
      assert.equal("broker", err.kind)
      value, err = producer:view_message(topic, ("F"):rep(32))
      assert.is_nil(value)
      assert.same({ "broker", 208 }, { err.kind, err.code })
      assert.same({}, (assert(producer:query_message(topic, "nothing"))))
    end)
  end)
end
