--- A topic that the first send creates ends up on the one broker that got that message, and nobody
--- was told.
local child = require "spec.support.child"
local new_mock = require "rocketmq.mock"

describe("a topic that sending creates", function()
  local mock
  before_each(function() mock = new_mock { brokers = 2 } end)
  after_each(function() mock:close() end)

  it("may be on one broker only; a warning says so once, and what to do", function()
    local ended = child.run { "--namesrv=" .. mock.namesrv, "-e", [[
      local rocketmq = require "rocketmq"
      local producer = rocketmq.producer { group = "g", poll_name_server_interval = 20 }
      local broker = assert(producer:send { topic = "Fresh", body = "x" }).queue.broker
      -- Now the topic has a route of its own.
      local brokers
      repeat
        rocketmq.sleep(10)
        brokers = {}
        for _, queue in ipairs(assert(producer:queues "Fresh")) do brokers[queue.broker] = true end
      until not (brokers["broker-a"] and brokers["broker-b"])
      print(brokers[broker], next(brokers, broker))
      for i = 1, 10 do
        assert(producer:send { topic = "Fresh", body = "x" }.queue.broker == broker)
      end
    ]] }
    assert.equal("true\tnil\n", ended.stdout, ended.stderr)
    assert.equal(0, ended.code)
    local _, warnings = ended.stderr:gsub('topic "Fresh" does not exist yet', "")
    assert.equal(1, warnings)
    assert.matches("on one of the 2 brokers only", ended.stderr)
    assert.matches("mqadmin updateTopic .* %-t Fresh", ended.stderr)
  end)

  it("is on all brokers when it was created there; nothing is warned of", function()
    mock:broker("broker-a"):set_topic("Made", { queues = 2 })
    mock:broker("broker-b"):set_topic("Made", { queues = 2 })
    local ended = child.run { "--namesrv=" .. mock.namesrv, "-e", [[
      local producer = require "rocketmq".producer { group = "g" }
      for i = 1, 4 do assert(producer:send { topic = "Made", body = "x" }) end
    ]] }
    assert.equal("", ended.stderr)
    assert.equal(2, #mock:messages("Made", "broker-a"))
    assert.equal(2, #mock:messages("Made", "broker-b"))
  end)
end)
