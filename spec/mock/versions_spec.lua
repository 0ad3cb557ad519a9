-- What servers of 4.9.2 answer otherwise than those of 5.4.0, as both were seen to do.
local new_mock = require "rocketmq.mock"
local raw_client = require "spec.support.raw_client"

local OLD, NEW = 397, 493

describe("the mock as", function()
  local mock, client

  after_each(function()
    client:close()
    mock:close()
  end)

  local function start(version)
    mock = new_mock { topics = { Orders = 4 }, version = version }
    client = assert(raw_client.connect(mock:broker("broker-a").addr))
  end

  local function send(fields, body)
    local ext = { a = "group", b = "Orders", c = "TBW102", d = "4", e = "2", f = "0",
      g = "1700000000000", h = "0", i = "UNIQ_KEY\1A\2", j = "0", k = "false", m = "false" }
    for name, value in pairs(fields or {}) do ext[name] = value end
    return client:request { code = 310, body = body or "x", ext = ext }
  end

  local function create(topic)
    return client:request({ code = 17, ext = { topic = topic, defaultTopic = "TBW102",
      readQueueNums = "3", writeQueueNums = "2", perm = "6" } }).code
  end

  local function search(time)
    return tonumber(client:request({ code = 29, ext = { topic = "Orders", queueId = "2",
      timestamp = ("%d"):format(time) } }).ext.offset)
  end

  -- Four messages of these times, as the broker has them.
  local function put_messages(version)
    start(version)
    assert.equal(0, search(4102444800000))
    for number, time in ipairs { 1000, 2000, 2000, 3000 } do
      send()
      mock:messages()[number].store_timestamp = time
    end
  end

  it("4.9.2 searches the nearest message, the last one for any later time", function()
    put_messages(OLD)
    for time, offset in pairs { [0] = 0, [1000] = 0, [1499] = 0, [1501] = 1, [2000] = 1,
      [2499] = 2, [2501] = 3, [3000] = 3, [3001] = 3, [4102444800000] = 3 } do
      assert.equal(offset, search(time), tostring(time))
    end
  end)

  it("5.4.0 searches the first message of the time or later", function()
    put_messages(NEW)
    for time, offset in pairs { [0] = 0, [1000] = 0, [1001] = 1, [2000] = 1, [2001] = 3,
      [3000] = 3, [3001] = 4, [4102444800000] = 4 } do
      assert.equal(offset, search(time), tostring(time))
    end
  end)

  -- What is asked, what 4.9.2 answers, what 5.4.0 does.
  local answers = {
    ["a queue that there is not"] = { function() return send({ e = "4" }).code end, 1, 29 },
    ["no topic's name"] = { function() return send({ b = "a b" }).code end, 1, 29 },
    ["a topic of no name to be made"] = { function() return create "a b" end, 1, 29 },
    ["a topic of the broker's own to be made"] = { function() return create "TBW102" end, 1, 29 },
    ["the broker's name as a topic"] = { function() return create "broker-a" end, 1, 29 },
    ["a topic that became the broker's own"] =
      { function() return create "CHECKPOINT_TOPIC" end, 0, 29 },
    ["a message for delayed ones"] =
      { function() return send({ b = "SCHEDULE_TOPIC_XXXX" }).code end, 16, 16 },
    ["a message for another of the broker's topics"] =
      { function() return send({ b = "RMQ_SYS_TRANS_HALF_TOPIC" }).code end, 0, 16 },
    ["no body"] = { function() return send({}, "").code end, 0, 1 },
    ["what the answer to a send has"] =
      { function() return send().ext.transactionId or "none" end, "none", "A" },
    ["a heartbeat"] = { function()
      return client:request({ code = 34, body = '{"clientID":"c"}' }).ext.IS_SUPPORT_HEART_BEAT_V2
        or "none"
    end, "none", "true" },
    ["a request that a broker does not know"] =
      { function() return client:request({ code = 9999 }).code end, 3, 3 },
    ["how a name server writes an id"] = { function()
      local asking = assert(raw_client.connect(mock.namesrv))
      local body = asking:request({ code = 105, version = 479, ext = { topic = "Orders",
        acceptStandardJsonOnly = "true" } }).body
      asking:close()
      return body:match '"brokerAddrs":{(.-):'
    end, "0", '"0"' },
    ["what a name server answers to what it does not know"] = { function()
      local asking = assert(raw_client.connect(mock.namesrv))
      asking:send { code = 9999 }
      local after = asking:request { code = 105, ext = { topic = "None" } }
      local count = #asking.order
      asking:close()
      return after.code == 17 and count
    end, 1, 2 },
  }

  for what, case in pairs(answers) do
    it("4.9.2 and as 5.4.0 answers: " .. what, function()
      start(OLD)
      assert.equal(case[2], case[1]())
      client:close()
      mock:close()
      start(NEW)
      assert.equal(case[3], case[1]())
    end)
  end
end)
