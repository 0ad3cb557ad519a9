local wire = require "rocketmq.wire"
local random = require "spec.support.random"

local full = {
  order_topic_conf = "broker-a:8",
  queues = {
    { broker_name = "broker-a", read_queue_nums = 8, write_queue_nums = 16, perm = 6,
      topic_sys_flag = 0 },
    { broker_name = "broker-b", read_queue_nums = 4, write_queue_nums = 4, perm = 4,
      topic_sys_flag = 1 },
  },
  brokers = {
    { cluster = "TestCluster", broker_name = "broker-a",
      addrs = { [0] = "192.168.0.47:10911", [1] = "192.168.0.47:10921" } },
    { cluster = "TestCluster", broker_name = "broker-b", addrs = { [0] = "b:10911" } },
  },
}

-- Puts white space wherever JSON allows it.
local function spread(json)
  return "\n " .. json:gsub("[{}%[%],:]", function(c) return "\t" .. c .. " \r\n" end)
    -- but not inside of addresses and the order configuration
    :gsub('"([^"]*)"', function(text) return '"' .. text:gsub("\t:[ \r\n]+", ":") .. '"' end)
end

describe("a route", function()
  it("is read in standard and in bare spelling", function()
    local standard, bare = wire.encode_route(full), wire.encode_route(full, "bare")
    assert.matches('"brokerAddrs":{"0":"192', standard, 1, true)
    assert.matches('"brokerAddrs":{0:"192', bare, 1, true)
    assert.same(full, wire.decode_route(standard))
    assert.same(full, wire.decode_route(bare))
  end)

  it("is read with white space everywhere", function()
    assert.same(full, wire.decode_route(spread(wire.encode_route(full))))
    assert.same(full, wire.decode_route(spread(wire.encode_route(full, "bare"))))
  end)

  it("is read from what a 4.9 and a 5.x name server send", function()
    local old = '{"brokerDatas":[{"brokerAddrs":{0:"10.0.0.1:10911"},"brokerName":"broker-a",' ..
      '"cluster":"DefaultCluster"}],"filterServerTable":{},"queueDatas":[{"brokerName":' ..
      '"broker-a","perm":6,"readQueueNums":8,"topicSysFlag":0,"writeQueueNums":8}]}'
    local new = '{"brokerDatas":[{"brokerAddrs":{"0":"10.0.0.1:10911"},"brokerName":"broker-a",' ..
      '"cluster":"DefaultCluster","enableActingMaster":false,"zoneName":null}],' ..
      '"filterServerTable":{"10.0.0.1:1":["x","y"]},"queueDatas":[{"brokerName":"broker-a",' ..
      '"perm":6,"readQueueNums":8,"topicSysFlag":0,"writeQueueNums":8}],' ..
      '"topicQueueMappingByBroker":{"b":{"currIdMap":{0:1,"1":2},"dirty":false,"epoch":-1}}}'
    assert.same(wire.decode_route(old), wire.decode_route(new))
    assert.equal("10.0.0.1:10911", wire.decode_route(old).brokers[1].addrs[0])
  end)

  it("is sorted by broker name, whatever its order was", function()
    local turned = { order_topic_conf = full.order_topic_conf,
      queues = { full.queues[2], full.queues[1] }, brokers = { full.brokers[2], full.brokers[1] } }
    assert.same(full, wire.decode_route(wire.encode_route(turned)))
  end)

  it("takes negative and large ids of addresses", function()
    local function addrs(json)
      local route = wire.decode_route('{"brokerDatas":[{"brokerName":"b","brokerAddrs":' ..
        json .. "}]}")
      return route and route.brokers[1].addrs
    end
    assert.same({ [-1] = "a" }, addrs '{-1:"a"}')
    assert.same({ [-1] = "a" }, addrs '{"-1":"a"}')
    assert.same({ [0] = "a", [1] = "b", [2 ^ 32] = "c" }, addrs '{4294967296:"c",1:"b","0":"a"}')
    assert.same({ [0] = "b" }, addrs '{0:"a","0":"b"}')
    assert.same({ [0] = "b" }, addrs '{0:"",0:"b"}')
    assert.same({}, addrs '{0:null}')
    assert.same({}, addrs "null")
    for _, wrong in ipairs { '{x:"a"}', '{"x":"a"}', '{"":"a"}', '{1.5:"a"}', '{01:"a"}', '{-:"a"}',
      '{9223372036854775808:"a"}', '{0:1}', '{0:{}}', "[]", '"a"', '{null:"a"}', '{0 1:"a"}' } do
      assert.is_nil(addrs(wrong), wrong)
    end
  end)

  it("may be empty", function()
    local empty = { queues = {}, brokers = {} }
    assert.same(empty, wire.decode_route "{}")
    assert.same(empty,
      wire.decode_route '{"queueDatas":null,"brokerDatas":[],"orderTopicConf":null}')
    assert.equal("", wire.decode_route('{"orderTopicConf":""}').order_topic_conf)
  end)

  it("lets the last of two members count", function()
    local route = wire.decode_route('{"queueDatas":[{"brokerName":"a"},{"brokerName":"b"}],' ..
      '"brokerDatas":[{"brokerName":"x","brokerAddrs":{0:"1"},"brokerAddrs":{2:"2"}}],' ..
      '"queueDatas":[{"brokerName":"c","brokerName":"d","perm":1,"perm":6}]}')
    assert.equal(1, #route.queues)
    assert.same({ "d", 6 }, { route.queues[1].broker_name, route.queues[1].perm })
    assert.same({ [2] = "2" }, route.brokers[1].addrs)
  end)

  it("undoes escapes in its texts", function()
    local route = wire.decode_route [[{"brokerDatas":[{"brokerName":"\u8ba2\/x","cluster":"\"",
      "brokerAddrs":{"\u0030":"h\u003a1"}}]}]]
    assert.same({ broker_name = "订/x", cluster = '"', addrs = { [0] = "h:1" } }, route.brokers[1])
  end)

  it("is refused at every prefix, with a reason", function()
    for _, json in ipairs { wire.encode_route(full), wire.encode_route(full, "bare") } do
      for len = 0, #json - 1 do
        local route, err = wire.decode_route(json:sub(1, len))
        assert.is_nil(route)
        assert.is_true(#err > 5)
      end
      assert.is_nil(wire.decode_route(json .. "x"))
      assert.is_nil(wire.decode_route(json .. json))
    end
  end)

  it("is refused where its numbers, types or names are wrong", function()
    local function refused(json, pattern)
      local route, err = wire.decode_route(json)
      assert.is_nil(route, json)
      assert.matches(pattern, err)
    end
    local function queue(member) return '{"queueDatas":[{"brokerName":"b",' .. member .. "}]}" end
    refused(queue '"writeQueueNums":65537', "queueDatas: a broker has more queues")
    refused(queue '"writeQueueNums":2147483648', "32%-bit")
    refused(queue '"readQueueNums":-1', "negative")
    refused(queue '"perm":"6"', "number is missing")
    refused(queue '"perm":6.0', "32%-bit")
    refused(queue '"perm":null', "number is missing")
    refused('{"queueDatas":[{"perm":6}]}', "queueDatas: brokerName is missing")
    refused('{"queueDatas":[{"brokerName":null}]}', "brokerName is missing")
    refused('{"brokerDatas":[{"cluster":"c"}]}', "brokerDatas: brokerName is missing")
    refused('{"queueDatas":{}}', "array is missing")
    refused('{"queueDatas":[1]}', "not an object")
    refused('{"queueDatas":[null]}', "not an object")
    refused('{"orderTopicConf":1}', "orderTopicConf: a text is not a string")
    refused("[]", "not an object")
    refused("null", "not an object")
    refused("", "ends too early")
    refused('{"a":"\255"}', "UTF%-8")
    refused('{"a":"\\q"}', "escape")
    assert.is_table(wire.decode_route(queue '"writeQueueNums":65536,"readQueueNums":0'))
  end)

  it("bounds depth", function()
    local function nested(depth) return '{"x":' .. ("["):rep(depth) .. ("]"):rep(depth) .. "}" end
    assert.is_table(wire.decode_route(nested(63)))
    local route, err = wire.decode_route(nested(100))
    assert.is_nil(route)
    assert.matches("nested too deep", err)
    assert.is_nil(wire.decode_route(('{"x":'):rep(100) .. "1" .. ("}"):rep(100)))
    assert.is_nil(wire.decode_route(("["):rep(1000000)))
  end)

  it("bounds the number of its parts", function()
    local one = '{"brokerName":"b"}'
    assert.equal(65536,
      #wire.decode_route('{"queueDatas":[' .. (one .. ","):rep(65535) .. one .. "]}").queues)
    local _, err = wire.decode_route('{"queueDatas":[' .. (one .. ","):rep(65536) .. one .. "]}")
    assert.matches("too many queues", err)
    _, err = wire.decode_route('{"brokerDatas":[' .. (one .. ","):rep(65536) .. one .. "]}")
    assert.matches("too many brokers", err)
    local addrs = {}
    for i = 1, 65537 do addrs[i] = i .. ':"h"' end
    _, err = wire.decode_route('{"brokerDatas":[{"brokerName":"b","brokerAddrs":{' ..
      table.concat(addrs, ",") .. "}}]}")
    assert.matches("too many addresses", err)
  end)

  it("comes back as it went", function()
    random.rounds(100, function(source)
      local route = { queues = {}, brokers = {} }
      for i = 1, source:int(0, 6) do
        local name = ("b%d"):format(i) .. source:text(5)
        route.queues[i] = { broker_name = name, read_queue_nums = source:int(0, 65536),
          write_queue_nums = source:int(0, 65536), perm = source:int(0, 15),
          topic_sys_flag = source:int(-2147483648, 2147483647) }
        route.brokers[i] = { broker_name = name, cluster = source:text(5), addrs = {} }
        for _ = 1, source:int(0, 4) do
          route.brokers[i].addrs[source:int(-2, 9)] = source:text(8)
        end
      end
      if source:int(0, 1) == 1 then route.order_topic_conf = source:text(9, 1) end
      local spelling = source:one_of { "standard", "bare" }
      assert.same(route, wire.decode_route(wire.encode_route(route, spelling)))
    end)
  end)

  it("does not mind what happens to a few of its bytes", function()
    local json = wire.encode_route(full, "bare")
    random.rounds(2000, function(source)
      local at = source:int(1, #json)
      local damaged = json:sub(1, at - 1) .. source:bytes(3, '{}[]:,"0-9.\\u \0\255e') ..
        json:sub(at + source:int(0, 3))
      local route, err = wire.decode_route(damaged)
      assert.is_true(route ~= nil or #err > 5)
    end)
  end)
end)
