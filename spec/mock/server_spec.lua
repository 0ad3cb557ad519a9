local new_mock = require "rocketmq.mock"
local raw_client = require "spec.support.raw_client"
local rocketmq = require "rocketmq"

local ROUTE = { code = 105, ext = { topic = "TBW102" } }

describe("a server of the mock", function()
  local mock, client

  before_each(function()
    mock = new_mock { brokers = { { name = "broker-a", slaves = 1 } } }
    client = assert(raw_client.connect(mock.namesrv))
  end)

  after_each(function()
    client:close()
    mock:close()
  end)

  it("answers each of many requests that come in one write, in order", function()
    local frames, opaques = {}, {}
    for index = 1, 200 do frames[index], opaques[index] = client:encode(ROUTE) end
    client:write(table.concat(frames))
    assert.is_truthy(client:reply(opaques[200]))
    assert.same(opaques, client.order)
  end)

  it("answers a request that comes byte by byte", function()
    local bytes, opaque = client:encode(ROUTE)
    for at = 1, #bytes do
      assert.is_nil(client.replies[opaque])
      client:write(bytes:sub(at, at))
      rocketmq.sleep(0)
    end
    assert.equal(0, client:reply(opaque).code)
  end)

  it("reads a frame of many megabytes", function()
    local body = ("0123456789abcdef"):rep(0x60000)
    assert.equal(3, client:request { code = 999, body = body }.code)
    assert.equal(#body, #mock:requests({ code = 999 })[1].body)
  end)

  it("answers nothing to a oneway request, and code 3 to one that it does not know", function()
    client:send { code = 999, flag = 2 }
    local reply = client:request { code = 998 }
    assert.equal(3, reply.code)
    assert.matches("998", reply.remark)
    assert.equal(1, #client.order)
    assert.same({ true, false }, { mock:requests()[1].oneway, mock:requests()[2].oneway })
  end)

  it("answers as a Java server does: in JSON, whatever came, with its version", function()
    local reply = client:request { code = 105, ext = { topic = "TBW102" }, serialize = "rocketmq" }
    assert.equal("json", reply.serialize)
    assert.equal("JAVA", reply.language)
    assert.equal(493, reply.version)
    assert.equal(1, reply.flag)
    assert.equal("rocketmq", mock:requests()[1].serialize)
  end)

  it("takes no answer for a request", function()
    client:send { code = 105, flag = 1 }
    client:request(ROUTE)
    assert.equal(1, #mock:requests())
  end)

  it("closes a connection whose bytes are no frame, and says what they were", function()
    client:write("GET / HTTP/1.1\r\n\r\n")
    assert.equal("end", client:wait_end())
    local bad = mock:bad_input()
    assert.equal(1, #bad)
    local fields = {}
    for name in pairs(bad[1]) do fields[#fields + 1] = name end
    table.sort(fields)
    assert.same({ "at", "connection", "time", "why" }, fields)
    assert.equal("namesrv-1", bad[1].at)
    assert.matches("asks in HTTP", bad[1].why)
    assert.is_truthy(assert(raw_client.connect(mock.namesrv)):request(ROUTE))
  end)

  it("numbers connections and notes what came on which, where and when", function()
    local other = assert(raw_client.connect(mock:broker("broker-a", 1).addr))
    finally(function() other:close() end)
    client:request { code = 105, ext = { topic = "Other" } }
    other:request { code = 34, body = "{}" }
    local requests = mock:requests()
    assert.equal(2, #requests)
    assert.same({ "GET_ROUTEINFO_BY_TOPIC", "namesrv-1", "Other" },
      { requests[1].name, requests[1].at, requests[1].topic })
    assert.same({ "HEART_BEAT", "broker-a#1", "broker-a", "{}" },
      { requests[2].name, requests[2].at, requests[2].broker, requests[2].body })
    assert.are_not.equal(requests[1].connection, requests[2].connection)
    assert.is_true(requests[1].time <= requests[2].time)
    assert.equal(1, #mock:requests { code = "HEART_BEAT", broker = "broker-a" })
    assert.equal(0, #mock:requests { code = "HEART_BEAT", at = "namesrv" })
    assert.equal(1, #mock:requests { connection = requests[2].connection })
    assert.equal(1, #mock:requests { topic = "Other" })
    assert.has_error(function() mock:requests { code = "HEARTBEAT" } end)
    assert.error_matches(function() mock:requests { at = "broker-b" } end,
      "unknown name 'broker%-b', did you mean 'broker%-a'")
  end)

  it("refuses connections while it is stopped and keeps its port", function()
    local broker = mock:broker("broker-a")
    local before = assert(raw_client.connect(broker.addr))
    broker:stop()
    assert.equal("end", before:wait_end())
    local refused, why = raw_client.connect(broker.addr)
    assert.is_nil(refused)
    assert.equal("ECONNREFUSED", why)
    broker:start()
    local after = assert(raw_client.connect(broker.addr))
    assert.equal(3, after:request({ code = 999 }).code)
    before:close()
    after:close()
  end)

  it("ends its connections when it is told to, and the port stays open", function()
    local server = mock:name_server()
    server:disconnect(true)
    assert.equal("ECONNRESET", client:wait_end())
    local again = assert(raw_client.connect(server.addr))
    assert.equal(0, again:request(ROUTE).code)
    again:close()
  end)

  it("closes everything, also twice, and what came can still be read", function()
    client:request(ROUTE)
    mock:close()
    mock:close()
    assert.equal("end", client:wait_end())
    assert.is_nil((raw_client.connect(mock.namesrv)))
    assert.equal(1, #mock:requests())
    mock:broker("broker-a"):start()
    assert.is_nil((raw_client.connect(mock:broker("broker-a").addr)))
  end)
end)

describe("waiting for the mock", function()
  it("gives what the function gave, or says what has come", function()
    local mock = new_mock()
    finally(function() mock:close() end)
    local calls = 0
    assert.equal("third", mock:wait(function(given)
      assert.equal(mock, given)
      calls = calls + 1
      return calls == 3 and "third"
    end))
    local value, err = mock:wait(1, 5)
    assert.is_nil(value)
    assert.matches("0 messages and 0 requests", err)
    assert.has_error(function() mock:wait("soon") end,
      "wait: needs a number of messages or a function, not string")
  end)
end)
