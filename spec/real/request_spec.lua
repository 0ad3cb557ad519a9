-- Requests through real brokers, to a replier that uses the Java client (Replier.java) and to one of
-- ours; and the requests themselves, as the Java client reads them.

local messages = require "spec.real.messages"
local readback = require "spec.real.readback"
local rocketmq = require "rocketmq"
local support = require "spec.real.support"

local seed = tonumber(os.getenv "RMQ_SEED") or os.time() % 1000000
local COUNT, TASKS = 1000, 16
local OURS = 60
local PATIENCE = 30000

-- What a request has besides its message's properties, and what each of them holds.
local of_requests = { CORRELATION_ID = true, REPLY_TO_CLIENT = true, TTL = true }

local function at(index) return ("seed %d, message %s"):format(seed, tostring(index)) end

-- Every request of the topic that has an index, each once and as it was sent; `others` have none.
local function check_requests(server, topic, count, others)
  local times, correlations, found, client = {}, {}, 0, nil
  readback.drain(server, { topic }, count + others, function(read)
    local index = tonumber(read.properties[messages.INDEX])
    if not index then return end
    readback.check(not times[index], at(index), "is there twice")
    times[index], found = true, found + 1
    readback.compare(read, messages.make(seed, index), {}, at(index), of_requests)
    readback.equal(read.properties.TTL, tostring(PATIENCE), at(index), "TTL")
    local correlation = read.properties.CORRELATION_ID
    readback.check(correlation and not correlations[correlation], at(index),
      "has no correlation id of its own")
    correlations[correlation] = true
    client = client or read.properties.REPLY_TO_CLIENT
    readback.check(client, at(index), "has no REPLY_TO_CLIENT")
    readback.equal(read.properties.REPLY_TO_CLIENT, client, at(index), "REPLY_TO_CLIENT")
  end)
  assert.equal(count, found)
end

-- A producer that reads requests by where they are stored and answers them. Gives that function and the
-- tasks in which it does so.
local function our_replier(server)
  local replier = rocketmq.producer { group = "our-replier", namesrv = server.namesrv,
    send_msg_timeout = 20000 }
  finally(function() replier:shutdown() end)
  local answers = {}
  return function(offset_msg_id)
    answers[#answers + 1] = rocketmq.spawn(function()
      local request = assert(replier:view_message(offset_msg_id))
      local reply = assert(rocketmq.reply(request, "ours:" .. request.body))
      reply.tags, reply.keys = "ours", request.keys
      reply.properties = { [messages.INDEX] = request.properties[messages.INDEX] }
      return replier:send(reply)
    end)
  end, answers
end

local function check_our_reply(reply, message, index)
  readback.check(reply.body == "ours:" .. message.body, at(index), "the reply differs")
  readback.equal(reply.tags, "ours", at(index), "tags")
  local keys = message.keys
  if type(keys) == "table" then keys = table.concat(keys, " ") end
  readback.equal(table.concat(reply.keys or {}, " "), keys or "", at(index), "keys")
  readback.equal(reply.properties[messages.INDEX], tostring(index), at(index), "index")
  readback.equal(reply.properties.MSG_TYPE, "reply", at(index), "MSG_TYPE")
end

for _, server in ipairs(support.servers()) do
  describe("RocketMQ " .. server.version, function()
    setup(function()
      support.java("Admin", { server.namesrv, "createTopic", 4, "Requests", "OurRequests" })
    end)

    it("brings 1,000 replies of a Java client, each to its own request", function()
      local topic = "Requests"
      local replier = rocketmq.spawn(function()
        return support.java_beside("5.4.0", "Replier",
          { server.namesrv, topic, "replier-" .. seed })
      end)
      local producer = rocketmq.producer { group = "asker", namesrv = server.namesrv,
        send_msg_timeout = 20000 }
      -- The replier starts beside; what was asked before it is there is answered then.
      assert(producer:request({ topic = topic, body = "are you there?" }, { timeout = 60000 }))
      local tasks, next_index = {}, 0
      for i = 1, TASKS do
        tasks[i] = function()
          while next_index < COUNT do
            next_index = next_index + 1
            local index = next_index
            local message = messages.make(seed, index)
            message.topic = topic
            local reply, err = producer:request(message, { timeout = PATIENCE })
            readback.check(reply, at(index), tostring(err))
            readback.check(reply.body == "re:" .. message.body, at(index), "the reply differs")
            readback.equal(reply.properties[messages.INDEX], tostring(index), at(index), "index")
            readback.equal(reply.properties.MSG_TYPE, "reply", at(index), "MSG_TYPE")
          end
        end
      end
      assert(rocketmq.gather(tasks))
      -- One that is not replied to.
      local reply, err = producer:request({ topic = topic, body = "x", tags = "silent" },
        { timeout = 1000 })
      assert.is_nil(reply)
      assert.equal(10006, err.code)
      local got
      assert(producer:request_async({ topic = topic, body = "async" }, { timeout = 30000 },
        function(async) got = async end))
      assert(producer:request({ topic = topic, body = "sync" }, { timeout = 30000 }))
      assert(producer:flush(20000))
      assert(require "rocketmq.mock.wait"(function() return got end, 30000))
      assert.equal("re:async", got.body)
      assert.equal(0, producer:stats().requests)
      assert.equal(COUNT + 3, producer:stats().replies)
      assert(producer:send { topic = topic, body = "x", tags = "stop" })
      assert.is_true(producer:shutdown(20000))
      assert(replier:wait(60000))
      -- The first, the silent one, the two after it, and the one that stops the replier.
      check_requests(server, topic, COUNT, 5)
    end)

    it("brings the replies of a producer of ours, each to its own request", function()
      local topic = "OurRequests"
      local answer, answers = our_replier(server)
      local producer = rocketmq.producer { group = "asker", namesrv = server.namesrv,
        send_msg_timeout = 20000 }
      finally(function() producer:shutdown() end)
      producer:add_hook { name = "stored", after = function(ctx)
        if ctx.result then answer(ctx.result.offset_msg_id) end
      end }
      local tasks = {}
      for i = 1, TASKS do
        tasks[i] = function()
          for index = i, OURS, TASKS do
            local message = messages.make(seed, index)
            message.topic = topic
            local reply, err = producer:request(message, { timeout = PATIENCE })
            readback.check(reply, at(index), tostring(err))
            check_our_reply(reply, messages.make(seed, index), index)
          end
        end
      end
      assert(rocketmq.gather(tasks))
      for _, task in ipairs(answers) do assert(task:wait()) end
      assert.equal(OURS, #answers)
      assert.same({ 0, OURS, 0 }, { producer:stats().requests, producer:stats().replies,
        producer:stats().late_replies })
    end)
  end)
end
