-- The fields of a message that few have: delays, sharding key, buyer id, light queues, and the
-- counts of a %RETRY% topic.
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"

describe("a message", function()
  local c

  setup(function()
    c = cluster.new { topics = { Orders = 1, ["%RETRY%g"] = 1 }, max_delay = 2147483647 }
  end)
  teardown(function() c:finish() end)

  local function last()
    local all = c.mock:messages()
    return all[#all]
  end

  -- What arrives of it, sent in each mode: the same properties each time, but for the id.
  local function arriving(message)
    message.topic, message.body = message.topic or "Orders", "x"
    assert(c.producer:send(message))
    local first = last()
    local others = {
      function() assert(c.producer:send(message, { timeout = 3000 })) end,
      function() assert(c.producer:send_async(message)) end,
      function() assert(c.producer:send_async(message, { retries = 1 }, function() end)) end,
      function() assert(c.producer:send_oneway(message)) end,
      function()
        assert(c.producer:send(message, { selector = function(queues) return queues[1] end }))
      end,
    }
    for _, send in ipairs(others) do
      local before = c.mock:count()
      send()
      assert(c.mock:wait(before + 1))
      local again = last().properties
      again.UNIQ_KEY = first.properties.UNIQ_KEY
      assert.same(first.properties, again)
    end
    return first.properties, c.mock:requests { topic = message.topic, code = "SEND_MESSAGE_V2" }
  end

  it("has its delay in the property of its kind", function()
    assert.equal("18", arriving({ delay_level = 18 }).DELAY)
    assert.equal("0", arriving({ delay_ms = 0 }).TIMER_DELAY_MS)
    assert.equal("2147483647000", arriving({ delay_ms = 2147483647000 }).TIMER_DELAY_MS)
    assert.equal("90", arriving({ delay_seconds = 90 }).TIMER_DELAY_SEC)
    assert.equal("1900000000123", arriving({ deliver_at = 1900000000123 }).TIMER_DELIVER_MS)
  end)

  it("has sharding key, buyer id and light queues", function()
    local properties = arriving { sharding_key = "用户-7", buyer_id = "b 1", lmq = { "a", "%LMQ%b" },
      tags = "t", keys = { "k" }, properties = { own = "1" } }
    assert.equal("用户-7", properties.__SHARDINGKEY)
    assert.equal("b 1", properties.BUYER_ID)
    assert.equal("%LMQ%a,%LMQ%b", properties.INNER_MULTI_DISPATCH)
    assert.equal("t", properties.TAGS)
    assert.equal("k", properties.KEYS)
    assert.equal("1", properties.own)
    assert.equal("%LMQ%a", arriving({ lmq = "a" }).INNER_MULTI_DISPATCH)
  end)

  it("has none of them when they are empty", function()
    local properties = arriving { sharding_key = "", buyer_id = "", lmq = {} }
    assert.is_nil(properties.__SHARDINGKEY)
    assert.is_nil(properties.BUYER_ID)
    assert.is_nil(properties.INNER_MULTI_DISPATCH)
  end)

  it("may inherit them", function()
    local defaults = setmetatable({}, { __index = { delay_level = 4, sharding_key = "s" } })
    local properties = arriving(defaults)
    assert.equal("4", properties.DELAY)
    assert.equal("s", properties.__SHARDINGKEY)
  end)

  it("with one of a wrong type raises, naming it", function()
    for name, value in pairs { sharding_key = 1, buyer_id = true, lmq = 1 } do
      assert.error_matches(function()
        c.producer:send { topic = "Orders", body = "x", [name] = value }
      end, name .. " of the message must be a string")
    end
    assert.error_matches(function()
      c.producer:send { topic = "Orders", body = "x", lmq = { "a", 2 } }
    end, "lmq%[2%] of the message must be a string, not number")
    assert.error_matches(function()
      c.producer:send { topic = "Orders", body = "x", lmq = { name = "a" } }
    end, "lmq of the message must be a string or a list of strings")
  end)

  it("with one misspelt raises, naming the right one", function()
    for wrong, right in pairs { delaylevel = "delay_level", delay_second = "delay_seconds",
      shardingkey = "sharding_key", deliverat = "deliver_at" } do
      assert.error_matches(function()
        c.producer:send { topic = "Orders", body = "x", [wrong] = 1 }
      end, right)
    end
  end)

  it("to a %RETRY% topic has its counts in the header", function()
    local properties, requests = arriving { topic = "%RETRY%g",
      properties = { RECONSUME_TIME = "3", MAX_RECONSUME_TIMES = "16", own = "1" } }
    assert.is_nil(properties.RECONSUME_TIME)
    assert.is_nil(properties.MAX_RECONSUME_TIMES)
    assert.equal("1", properties.own)
    for _, request in ipairs(requests) do
      assert.equal("3", request.ext.j)
      assert.equal("16", request.ext.l)
    end
    -- The next one to the topic does not inherit them.
    local _, all = arriving { topic = "%RETRY%g" }
    assert.equal("0", all[#all].ext.j)
    assert.is_nil(all[#all].ext.l)
  end)

  it("keeps them when a hook changes something else", function()
    local producer = c:add_producer()
    producer:add_hook { before = function(ctx) ctx.message.properties.trace = "t-1" end }
    assert(producer:send { topic = "Orders", body = "x", delay_level = 3, sharding_key = "s",
      lmq = "a" })
    local properties = last().properties
    assert.same({ "3", "s", "%LMQ%a", "t-1" }, { properties.DELAY, properties.__SHARDINGKEY,
      properties.INNER_MULTI_DISPATCH, properties.trace })
    assert(producer:send { topic = "%RETRY%g", body = "x", properties = { RECONSUME_TIME = "2" } })
    local requests = c.mock:requests { topic = "%RETRY%g", code = "SEND_MESSAGE_V2" }
    assert.equal("2", requests[#requests].ext.j)
    assert.is_nil(last().properties.RECONSUME_TIME)
  end)

  it("is marked when its producer is in unit mode", function()
    for _, wanted in ipairs { true, false } do
      assert(c:add_producer({ unit_mode = wanted }):send { topic = "Orders", body = "x" })
      local requests = c.mock:requests { topic = "Orders", code = "SEND_MESSAGE_V2" }
      assert.equal(tostring(wanted), requests[#requests].ext.k)
    end
  end)

  it("is marked in unit mode whatever kind of send it is", function()
    local message = { topic = "Orders", body = "x" }
    -- The code of its request, and the send; each has a producer of its own, which has sent nothing else.
    local sends = {
      { "SEND_BATCH_MESSAGE", function(producer)
        assert(producer:send_batch { message, message })
      end },
      { "SEND_MESSAGE_V2", function(producer) assert(producer:send_oneway(message)) end },
      { "SEND_MESSAGE_V2", function(_, wanted)
        local producer = rocketmq.transaction_producer { group = "tx", unit_mode = wanted,
          namesrv = c.mock.namesrv, check = function() return "commit" end }
        assert(producer:send_in_transaction(message, function() return "commit" end))
        producer:shutdown()
      end },
    }
    for _, wanted in ipairs { true, false } do
      for _, case in ipairs(sends) do
        local code, send = unpack(case)
        local before = #c.mock:requests { topic = "Orders", code = code }
        send(c:add_producer { unit_mode = wanted }, wanted)
        local requests
        assert(c.mock:wait(function()
          requests = c.mock:requests { topic = "Orders", code = code }
          return #requests > before
        end, 10000))
        assert.equal(tostring(wanted), requests[#requests].ext.k)
      end
      local all = c.mock:requests { topic = "Orders", code = "SEND_MESSAGE_V2" }
      assert.matches("TRAN_MSG\1true", all[#all].ext.i, 1, true) -- that was the half message
    end
  end)

  it("to another topic cannot have such counts", function()
    local result, err = c.producer:send { topic = "Orders", body = "x",
      properties = { RECONSUME_TIME = "3" } }
    assert.is_nil(result)
    assert.matches("RECONSUME_TIME", err.message)
    assert.matches("%RETRY%", err.message, 1, true)
  end)
end)
