-- The mock as a proxy in front of real servers: clients, ours and Java's, come to the brokers through it,
-- and the rules apply to what is real otherwise.

local cjson = require "cjson"
local new_mock = require "rocketmq.mock"
local rocketmq = require "rocketmq"
local support = require "spec.real.support"
require "rocketmq.mock.assert"

for _, server in ipairs(support.servers()) do
  describe("a proxy in front of RocketMQ " .. server.version, function()
    local mock

    setup(function()
      mock = new_mock { proxy = server.namesrv }
      -- Admin tools ask the name server for the whole cluster.
      support.java_beside("5.4.0", "Admin", { mock.namesrv, "createTopic", 4, "Proxied" })
    end)

    teardown(function() mock:close() end)

    it("lets an admin tool come to brokers through it", function()
      assert.requests(mock, { code = 17, at = "broker-a" })
    end)

    it("passes sends, whatever becomes of their answers", function()
      local producer = rocketmq.producer { group = "proxied", namesrv = mock.namesrv,
        send_msg_timeout = 20000, attempt_timeout = 10000, retries = 5 }
      mock:rule { code = "SEND_MESSAGE_V2", nth = 5, times = 1, answer = { code = "SYSTEM_BUSY" } }
      mock:rule { code = "SEND_MESSAGE_V2", nth = 10, times = 1, cut = 20, reset = true }
      mock:rule { code = "SEND_MESSAGE_V2", nth = 20, times = 1, split = 30, duplicate = true }
      local told = {}
      for index = 1, 50 do
        local result = assert(producer:send { topic = "Proxied", body = "body " .. index,
          keys = "k" .. index })
        told[result.offset_msg_id] = "body " .. index
      end
      producer:shutdown()
      assert.attempts(mock, { topic = "Proxied" }, 52)
      assert.sent(mock, { topic = "Proxied" }, 51) -- one was stored, and its answer cut off

      local read, count = {}, 0
      for _, line in ipairs(support.java_beside("5.4.0", "Drain", { server.namesrv, "Proxied" })) do
        local message = cjson.decode(line)
        read[message.offsetMsgId] = support.base64_decode(message.body)
        count = count + 1
      end
      assert.equal(51, count)
      for id, body in pairs(told) do assert.equal(body, read[id]) end
      for _, message in ipairs(assert.sent(mock, { topic = "Proxied" })) do
        assert.equal(message.body, read[message.offset_msg_id])
      end
    end)

    it("passes what the Java client sends", function()
      local before = #mock:messages "Proxied"
      local lines = support.java_beside(server.version, "SendRandom",
        { mock.namesrv, "Proxied", "async", 100, 1 })
      assert.equal(100, #lines)
      local seen = {}
      for _, message in ipairs(mock:messages "Proxied") do seen[message.offset_msg_id] = message end
      for _, line in ipairs(lines) do
        local status, id, offset_id = line:match "^%d+\t([^\t]*)\t([^\t]*)\t([^\t]*)"
        assert.equal("SEND_OK", status)
        assert.equal(id, seen[offset_id].msg_id)
      end
      assert.equal(before + 100, #mock:messages "Proxied")
    end)
  end)
end
