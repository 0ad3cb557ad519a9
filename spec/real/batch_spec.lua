-- Batches, made by the script and by auto_batch, stand in a real RocketMQ as single messages would.

local cjson = require "cjson"
local rocketmq = require "rocketmq"
local round_trip = require "spec.real.round_trip"
local support = require "spec.real.support"

-- Set it to the seed of a failure to see that failure again.
local seed = tonumber(os.getenv "RMQ_SEED") or os.time() % 1000000

for _, server in ipairs(support.servers()) do
  describe("RocketMQ " .. server.version, function()
    local producer
    setup(function()
      support.java("Admin", { server.namesrv, "createTopic", 4, "Batches", "AutoBatches", "Long" })
    end)
    before_each(function()
      producer = rocketmq.producer { group = "spec_real", namesrv = server.namesrv,
        timeout = 60000 }
    end)
    after_each(function() producer:shutdown() end)

    it("gives back 2000 random messages of send_batch, each once and byte for byte", function()
      round_trip(server, "Batches", seed, 2000, "spec/real/send_batches.lua", "batch")
    end)

    it("gives back 2000 random messages of auto_batch, each once and byte for byte", function()
      round_trip(server, "AutoBatches", seed, 2000, "spec/real/send_batches.lua", "auto")
    end)

    -- Its limit is 4 MiB, which older ones count differently.
    it("takes what is split to fit", function()
      local small, large = {}, {}
      for i = 1, 12000 do small[i] = { topic = "Long", body = ("%d"):format(i) } end
      for i = 1, 100 do large[i] = { topic = "Long", body = ("x"):rep(100000) } end
      for _, messages in ipairs { small, large } do
        local results, err = producer:send_batch(messages)
        assert.is_nil(err)
        for i, result in ipairs(results) do
          assert(result.status == "SEND_OK" and #result.offset_msg_id == 32, i)
        end
      end
    end)

    it("takes the longest properties that a batch may have, and gives them back", function()
      local topic = "LongProperties"
      support.java("Admin", { server.namesrv, "createTopic", 1, topic })
      local value = ("v"):rep(31900)
      local results, err = producer:send_batch {
        { topic = topic, body = "one", properties = { p = value } },
        { topic = topic, body = "two", properties = { p = value } },
        { topic = topic, body = "three" },
      }
      assert.is_nil(err)
      local ids, n = {}, 0
      for i, result in ipairs(results) do ids[result.msg_id] = i end
      support.java("Drain", { server.namesrv, topic }, function(line)
        local read = cjson.decode(line)
        n = n + 1
        assert.equal(ids[read.msgId] < 3 and value or nil, read.properties.p)
      end, { expect = 3 })
      assert.equal(3, n)
    end)

    it("refuses what is too long for it, and the error says why and what to do", function()
      local greedy = rocketmq.producer { group = "spec_real", namesrv = server.namesrv,
        timeout = 60000, max_message_size = 10000000 }
      local messages = {}
      for i = 1, 3 do messages[i] = { topic = "Long", body = ("x"):rep(2000000) } end
      local results, err = greedy:send_batch(messages)
      assert.same({ false, false, false }, results)
      for i = 1, 3 do
        local own = err.failed[i]
        assert.equal("broker", own.kind)
        assert.is_true(own.code == 13 or own.code == 1, tostring(own))
        assert.equal(1, own.attempts)
        assert.matches("refused with code %d+ %u+_%u+: .+", own.message)
        assert.matches("maxMessageSize", own.message)
      end
      greedy:shutdown()
    end)
  end)
end
