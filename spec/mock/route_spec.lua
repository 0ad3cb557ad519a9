local cjson = require "cjson"
local new_mock = require "rocketmq.mock"
local raw_client = require "spec.support.raw_client"

-- Asks the name server `index` of a mock for a route; gives the reply and its decoded body.
local function ask(mock, topic, more)
  more = more or {}
  local client = assert(raw_client.connect(mock:name_server(more.index).addr))
  local reply = client:request { code = 105, version = more.version,
    ext = { topic = topic, acceptStandardJsonOnly = more.standard } }
  client:close()
  local ok, route = pcall(cjson.decode, reply.body or "")
  return reply, ok and route or nil
end

-- A mock that is closed when the spec ends.
local function start(description)
  local mock = new_mock(description)
  finally(function() mock:close() end)
  return mock
end

local function names(list)
  local found = {}
  for index, one in ipairs(list) do found[index] = one.brokerName end
  return found
end

describe("a name server of the mock", function()
  it("tells where a topic is", function()
    local mock = start { brokers = { "a", { name = "b", slaves = 1, cluster = "other" } },
      topics = { Orders = { queues = 3 },
        OnlyB = { brokers = { "b" }, read_queues = 8, write_queues = 2, perm = 2 } } }
    local reply, route = ask(mock, "Orders")
    assert.equal(0, reply.code)
    assert.same({ "a", "b" }, names(route.queueDatas))
    assert.same({ brokerName = "a", readQueueNums = 3, writeQueueNums = 3, perm = 6,
      topicSysFlag = 0 }, route.queueDatas[1])
    assert.same({ cluster = "DefaultCluster", brokerName = "a",
      brokerAddrs = { ["0"] = mock:broker("a").addr } }, route.brokerDatas[1])
    assert.same({ ["0"] = mock:broker("b").addr, ["1"] = mock:broker("b", 1).addr },
      route.brokerDatas[2].brokerAddrs)
    assert.equal("other", route.brokerDatas[2].cluster)
    route = select(2, ask(mock, "OnlyB"))
    assert.same({ { brokerName = "b", readQueueNums = 8, writeQueueNums = 2, perm = 2,
      topicSysFlag = 0 } }, route.queueDatas)
  end)

  it("has a topic as one broker differs in it", function()
    local mock = start { brokers = { "a", { name = "b", topics = { T = { queues = 9 } } } },
      topics = { T = 2 } }
    local _, route = ask(mock, "T")
    assert.same({ 2, 9 },
      { route.queueDatas[1].writeQueueNums, route.queueDatas[2].writeQueueNums })
  end)

  it("knows the default topic while topics are made automatically", function()
    local _, route = ask(start {}, "TBW102")
    assert.same({ 8, 7 }, { route.queueDatas[1].writeQueueNums, route.queueDatas[1].perm })
    assert.equal(17, ask(start { auto_create = false }, "TBW102").code)
    local old = start { default_topic = "AUTO_CREATE_TOPIC_KEY" }
    assert.equal(0, ask(old, "AUTO_CREATE_TOPIC_KEY").code)
  end)

  it("answers 17 and names the topic when no broker has it", function()
    local reply = ask(start {}, "Nowhere")
    assert.equal(17, reply.code)
    assert.matches("Nowhere", reply.remark)
    assert.equal(17, ask(start {}, nil).code)
  end)

  it("writes ids as the client's version reads them", function()
    local mock = start { topics = { "T" }, namesrvs = { {}, { bare_keys = true } } }
    local bare, quoted = "[{,]0:\"127", "[{,]\"0\":\"127"
    assert.matches(quoted, ask(mock, "T").body)
    assert.matches(bare, ask(mock, "T", { version = 400 }).body)
    assert.matches(quoted, ask(mock, "T", { version = 400, standard = "true" }).body)
    assert.matches(bare, ask(mock, "T", { index = 2 }).body)
  end)

  it("lists brokers the other way round when asked to", function()
    local mock = start { brokers = 3, topics = { "T" }, namesrvs = { {}, { reverse = true } } }
    local _, first = ask(mock, "T")
    local _, second = ask(mock, "T", { index = 2 })
    assert.same({ "broker-a", "broker-b", "broker-c" }, names(first.queueDatas))
    assert.same({ "broker-c", "broker-b", "broker-a" }, names(second.queueDatas))
    assert.same({ "broker-c", "broker-b", "broker-a" }, names(second.brokerDatas))
  end)

  it("gives an order configuration, written out or made from the queues", function()
    local mock = start { brokers = 2, topics = { Own = { order = "broker-b:1" },
      Made = { queues = 3, order = true } } }
    local _, own = ask(mock, "Own")
    local _, made = ask(mock, "Made")
    assert.equal("broker-b:1", own.orderTopicConf)
    assert.equal("broker-a:3;broker-b:3", made.orderTopicConf)
  end)

  it("shows at once what changes at a broker", function()
    local mock = start { brokers = 2, topics = { T = 4 } }
    mock:broker("broker-a"):set_perm(4)
    mock:broker("broker-b"):set_topic("T", { queues = 9, perm = 2 })
    local _, route = ask(mock, "T")
    assert.same({ 4, 4 }, { route.queueDatas[1].perm, route.queueDatas[1].writeQueueNums })
    assert.same({ 2, 9 }, { route.queueDatas[2].perm, route.queueDatas[2].writeQueueNums })
    mock:broker("broker-a"):remove_topic("T")
    route = select(2, ask(mock, "T"))
    assert.same({ "broker-b" }, names(route.queueDatas))
    assert.has_error(function() mock:broker("broker-a"):set_topic("T", { prem = 4 }) end,
      "topic 'T': unknown name 'prem', did you mean 'perm'?")
  end)

  it("goes on naming a broker that is stopped", function()
    local mock = start { brokers = 2, topics = { T = 4 } }
    mock:broker("broker-a"):stop()
    local _, route = ask(mock, "T")
    assert.same({ "broker-a", "broker-b" }, names(route.queueDatas))
  end)
end)
