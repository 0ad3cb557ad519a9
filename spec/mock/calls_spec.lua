local cluster = require "spec.support.cluster"
local new_mock = require "rocketmq.mock"
local raw_client = require "spec.support.raw_client"
local rocketmq = require "rocketmq"

describe("a request of a broker to its client", function()
  it("is answered by a producer, also while it sends", function()
    local c = cluster.new { topics = { Orders = 1 } }
    finally(function() c:finish() end)
    assert(c.producer:send { topic = "Orders", body = "x" })
    local broker = c.mock:broker("broker-a")
    local sending = rocketmq.spawn(function()
      for _ = 1, 50 do assert(c.producer:send { topic = "Orders", body = "x" }) end
    end)
    for code = 5000, 5020 do
      local answer = assert(broker:request { code = code, ext = { a = 1 }, body = "b" })
      assert.same({ 3, (" request type %d not supported"):format(code) },
        { answer.code, answer.remark })
    end
    sending:wait()
    assert.equal(51, c.mock:count())
  end)

  it("goes to the client, group or connection that it names", function()
    local mock = new_mock()
    local broker = mock:broker("broker-a")
    local clients = {}
    finally(function()
      for _, client in ipairs(clients) do client:close() end
      mock:close()
    end)
    for index, group in ipairs { "g", "h", "h" } do
      clients[index] = assert(raw_client.connect(broker.addr))
      clients[index]:request { code = 34, body = ('{"clientID":"c%d","producerDataSet":'
        .. '[{"groupName":"%s"}]}'):format(index, group) }
    end
    local function got_by(given)
      given.code, given.oneway = "CHECK_TRANSACTION_STATE", true
      assert.is_true(broker:request(given))
      local found
      mock:wait(function()
        for index, client in ipairs(clients) do
          for _, command in pairs(client.replies) do
            if command.code == 39 then found = { index, command.flag } end
          end
        end
        return found
      end)
      for _, client in ipairs(clients) do client.replies = {} end
      return found
    end
    assert.same({ 2, 2 }, got_by { client = "c2" })
    assert.same({ 2, 2 }, got_by { group = "h" })
    assert.same({ 1, 2 }, got_by {})
    local third = broker:clients().c3.connection
    assert.same({ 3, 2 }, got_by { connection = third })
    for _, given in ipairs { { client = "c4" }, { group = "i" }, { connection = 99 } } do
      given.code = 39
      local answer, err = broker:request(given)
      assert.is_nil(answer)
      assert.equal("mock: no such client is connected to broker-a", err)
    end
  end)

  it("ends with its connection, or when its time is over", function()
    local mock = new_mock()
    local client = assert(raw_client.connect(mock:broker("broker-a").addr))
    finally(function()
      client:close()
      mock:close()
    end)
    client:request { code = 34, body = "{}" }
    local broker = mock:broker("broker-a")
    assert.same({ nil, "mock: no answer within 5 ms" },
      { broker:request { code = 1, timeout = 5 } })
    local asked = rocketmq.spawn(function() return broker:request { code = 1 } end)
    mock:wait(function() return client.replies[2] end)
    client:close()
    local answer, err = asked:wait()
    assert.is_nil(answer)
    assert.equal("mock: the connection has ended", err)
  end)

  it("is refused when it makes no sense", function()
    local mock = new_mock()
    finally(function() mock:close() end)
    local broker = mock:broker("broker-a")
    assert.has_error(function() broker:request {} end, "request: needs a code")
    assert.error_matches(function() broker:request { code = 1, grup = "g" } end,
      "request: unknown name 'grup', did you mean 'group'%?")
    assert.error_matches(function() broker:request(1) end, "must be given a table, not number")
  end)
end)
