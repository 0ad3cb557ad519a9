--- Name servers write broker ids without quotes or with them, some ids are negative, and clients
--- broke on one or the other, on blanks, or on fields that they did not know.
local cluster = require "spec.support.cluster"
local wire = require "rocketmq.wire"

-- A route whose address table is `addrs`.
local function route(addrs)
  return '{"brokerDatas":[{"brokerAddrs":' .. addrs .. ',"brokerName":"a","cluster":"c"}],'
    .. '"filterServerTable":{},"queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":4,'
    .. '"topicSysFlag":0,"writeQueueNums":4}]}'
end

local function nested(depth)
  return ('{"x":'):rep(depth) .. "1" .. ("}"):rep(depth)
end

describe("the spelling of a route", function()
  it("may have bare, quoted and negative ids", function()
    for addrs, expected in pairs {
      ['{0:"h:1"}'] = { [0] = "h:1" },
      ['{"0":"h:1"}'] = { [0] = "h:1" },
      ['{0:"h:1",1:"h:2","2":"h:3"}'] = { [0] = "h:1", "h:2", "h:3" },
      ['{-1:"h:1"}'] = { [-1] = "h:1" },
      ['{"-1":"h:1"}'] = { [-1] = "h:1" },
      ["{}"] = {},
    } do
      assert.same(expected, assert(wire.decode_route(route(addrs))).brokers[1].addrs)
    end
  end)

  it("may have blanks and line ends anywhere", function()
    local plain = route('{"0":"h:1"}')
    local spread = plain:gsub("[{}%[%],:]", "\r\n\t %0 \n"):gsub('"h%s*:%s*1"', '"h:1"')
    assert.same(wire.decode_route(plain), assert(wire.decode_route(spread)))
  end)

  it("may have fields that nobody knows, nulls, escapes, and no table at all", function()
    local more = route('{"0":"h\\u003a1"}'):gsub("^{",
      '{"new":[1,2.5e3,true,null,{"a":[]}],"topicQueueMappingByBroker":null,')
    local decoded = assert(wire.decode_route(more))
    assert.same({ [0] = "h:1" }, decoded.brokers[1].addrs)
    assert.equal(4, decoded.queues[1].write_queue_nums)
    assert.same({}, assert(wire.decode_route("{}")).queues)
  end)

  it("is an error and nothing else when it is hostile", function()
    local whole = route('{0:"h:1"}')
    for length = 0, #whole - 1 do
      local decoded, why = wire.decode_route(whole:sub(1, length))
      assert.is_nil(decoded)
      assert.equal("string", type(why))
    end
    for _, text in ipairs { nested(100), ("["):rep(100000), '{"queueDatas":7}', "null", "[]",
      (whole:gsub('"writeQueueNums":4', '"writeQueueNums":2147483647')),
      (whole:gsub('"perm":6', '"perm":99999999999999999999')) } do
      assert.is_nil((wire.decode_route(text)))
    end
  end)

  it("does not matter to a send", function()
    local c = cluster.new { brokers = { { name = "a", slaves = 2 } }, topics = { Orders = 4 },
      namesrvs = { { bare_keys = true } } }
    finally(function() c:finish() end)
    assert(c.producer:send { topic = "Orders", body = "x" })
    assert.equal(1, #c.mock:messages("Orders", "a"))
  end)

  it("may be written by hand", function()
    local c = cluster.new { brokers = { "a" }, topics = { Orders = 4 } }
    finally(function() c:finish() end)
    local addr = c.mock:broker("a").addr
    c.mock:rule { at = "namesrv", answer = { code = 0,
      body = "\n" .. route(('{ -3 : "1.2.3.4:5" , 0 : "%s" }'):format(addr)) .. "\n" } }
    assert(c.producer:send { topic = "Orders", body = "x" })
    assert.equal(1, #c.mock:messages("Orders", "a"))
  end)

  it("fails a send with an error when it cannot be read, and the next server is asked", function()
    local c = cluster.new { brokers = { "a" }, topics = { Orders = 4 }, namesrvs = 2 }
    finally(function() c:finish() end)
    c.mock:rule { at = "namesrv", times = 1, answer = { code = 0, body = '{"queueDatas":[' } }
    assert(c.producer:send { topic = "Orders", body = "x" })

    c.mock:rule { at = "namesrv", answer = { code = 0, body = '{"queueDatas":[' } }
    local result, err = c:add_producer():send { topic = "Orders", body = "x" }
    assert.is_nil(result)
    assert.equal("route", err.kind)
    assert.matches("127%.0%.0%.1:%d+", err.message)
    assert(c.producer:send { topic = "Orders", body = "y" })
  end)
end)
