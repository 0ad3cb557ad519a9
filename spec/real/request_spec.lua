-- Requests to a replier that uses the Java client (Replier.java), through real brokers.

local messages = require "spec.real.messages"
local readback = require "spec.real.readback"
local rocketmq = require "rocketmq"
local support = require "spec.real.support"

local seed = tonumber(os.getenv "RMQ_SEED") or os.time() % 1000000
local COUNT, TASKS = 1000, 16

local function at(index) return ("seed %d, message %s"):format(seed, tostring(index)) end

for _, server in ipairs(support.servers()) do
  describe("RocketMQ " .. server.version, function()
    it("brings 1,000 replies of a Java client, each to its own request", function()
      local topic = "Requests"
      support.java("Admin", { server.namesrv, "createTopic", 4, topic })
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
            local reply, err = producer:request(message, { timeout = 30000 })
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
    end)
  end)
end
