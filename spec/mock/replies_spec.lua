-- What the mock does with requests and replies beyond what the producer's specs use.
local new_mock = require "rocketmq.mock"
local rocketmq = require "rocketmq"

describe("a mock's replies", function()
  local mock, producer
  before_each(function()
    mock = new_mock { topics = { Questions = 1 }, cluster = "K" }
    producer = rocketmq.producer { group = "g", namesrv = mock.namesrv }
  end)
  after_each(function()
    producer:shutdown(100)
    mock:close()
  end)

  local message = { topic = "Questions", body = "x" }

  it("are for requests only", function()
    local asked = 0
    mock:reply("Questions", function() asked = asked + 1 end)
    assert(producer:send(message))
    assert(producer:request_async(message, { timeout = 50 }, function() end))
    assert(mock:wait(function() return asked == 1 end))
    assert.equal(2, mock:count())
    assert.is_nil(mock:messages()[1].properties.CLUSTER)
    assert.equal("K", mock:messages()[2].properties.CLUSTER)
  end)

  it("end with nil, and with the function", function()
    mock:reply("Questions", function() return "y" end)
    assert(producer:request(message, { timeout = 5000 }))
    mock:reply("Questions", nil)
    assert.is_nil((producer:request(message, { timeout = 20 })))
    assert.error_matches(function() mock:reply(print) end, "topic must be a string")
    assert.error_matches(function() mock:reply("T", "y") end, "needs a function")
  end)

  it("that somebody sends are stored and can be looked at", function()
    mock:reply("Questions", function(asked)
      assert(producer:send(assert(rocketmq.reply(asked, "mine"))))
    end)
    local reply = assert(producer:request(message, { timeout = 5000 }))
    assert.equal("mine", reply.body)
    local stored = mock:messages "K_REPLY_TOPIC"
    assert.equal(1, #stored)
    assert.equal("reply", stored[1].properties.MSG_TYPE)
  end)
end)
