-- The list of queues that selectors are given: what one does to it is not seen by the next, and its length
-- costs nothing.
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"

local MANY = 10000

describe("a list of 10,000 queues", function()
  local c, producer
  local whole_list -- a copy of the list as it was made
  setup(function()
    c = cluster.new { brokers = 2, topics = { Orders = MANY / 2, Few = 3 } }
    producer = c.producer
    assert(producer:send({ topic = "Orders", body = "x" }, { selector = function(queues)
      whole_list = {}
      for i, queue in ipairs(queues) do whole_list[i] = queue end
      return 1
    end }))
  end)
  teardown(function() c:finish() end)

  local function send(selector, options)
    options = options or {}
    options.selector = selector
    return producer:send({ topic = "Orders", body = "x" }, options)
  end

  it("is sorted by brokers and ids", function()
    assert.equal(MANY, #whole_list)
    local half = MANY / 2
    for i, queue in ipairs(whole_list) do
      assert(queue.id == (i - 1) % half)
      assert(queue.broker == (i <= half and "broker-a" or "broker-b"))
    end
  end)

  -- True when a list is as it was made, all of it.
  local function is_whole(queues)
    for i = 1, MANY do
      if not rawequal(queues[i], whole_list[i]) then return false end
    end
    return #queues == MANY
  end

  local function check_whole()
    local whole
    assert(send(function(queues)
      whole = is_whole(queues)
      return 1
    end))
    return whole
  end

  -- The whole list from behind; by numbers that are known, for reading a queue's takes long.
  local number_of
  local function from_behind(a, b) return number_of[a] > number_of[b] end
  setup(function()
    number_of = {}
    for i, queue in ipairs(whole_list) do number_of[queue] = i end
  end)

  -- What a selector may do, and what it returns.
  local harms = {
    ["sorts it"] = function(queues) table.sort(queues, from_behind) return queues[1] end,
    ["cuts it"] = function(queues) for i = #queues, 11, -1 do queues[i] = nil end return 10 end,
    ["takes out one"] = function(queues) table.remove(queues, 5000) return 1 end,
    ["clears the last"] = function(queues) queues[#queues] = nil return 1 end,
    ["moves one to the front"] = function(queues)
      queues[1], queues[777] = queues[777], queues[1]
      return 1
    end,
    ["clears those of a broker"] = function(queues)
      for i, queue in ipairs(queues) do
        if queue.broker == "broker-a" and i > 1 then queues[i] = nil end
      end
      return 1
    end,
    ["goes through it and changes two inside"] = function(queues)
      for i, queue in ipairs(queues) do
        if i == 7001 and queue then queues[i], queues[i + 1] = queues[i + 1], queues[i] end
      end
      return 1
    end,
    ["shuffles it"] = function(queues)
      for i = #queues, 2, -1 do
        local j = math.random(i)
        queues[i], queues[j] = queues[j], queues[i]
      end
      return queues[1]
    end,
    ["adds to it"] = function(queues) queues[#queues + 1] = queues[1] return 1 end,
    ["changes it and raises"] = function(queues) queues[5000] = nil error "oops" end,
    ["changes it and gives nothing"] = function(queues) queues[5000] = nil end,
  }
  for name, harm in pairs(harms) do
    it("is whole for the next selector when one " .. name, function()
      send(harm)
      assert.is_true(check_whole())
      local result = assert(send(function(queues) return queues[4999] end))
      assert.equal("Orders@broker-a#4998", tostring(result.queue))
      assert.is_true(check_whole())
    end)
  end

  it("is mended at once when a write inside it would fail a message", function()
    assert(check_whole())
    -- Nothing but one write, to a place that is not looked at now.
    assert(send(function(queues)
      queues[7001] = nil
      return 1
    end))
    local asked = 0
    local result = assert(send(function(queues)
      asked = asked + 1
      return queues[7001]
    end))
    assert.equal("Orders@broker-b#2000", tostring(result.queue))
    assert.is_true(asked <= 2)
    assert.is_true(check_whole())
  end)

  it("is mended before long when a write inside it does no harm yet", function()
    assert(check_whole())
    local function quick() return 2 end
    assert(send(function(queues)
      queues[7001], queues[7002] = queues[7002], queues[7001]
      return 1
    end))
    for _ = 1, MANY / 4 do assert(send(quick)) end
    local broker_and_id
    assert(send(function(queues)
      broker_and_id = tostring(queues[7001])
      return 1
    end))
    assert.equal("Orders@broker-b#2000", broker_and_id)
  end)

  it("is looked at whole by a selector that is called inside another", function()
    local whole
    assert(send(function(queues)
      queues[7001], queues[7002] = queues[7002], queues[7001]
      assert(producer:send_async({ topic = "Orders", body = "y" }, { selector = function(inner)
        whole = is_whole(inner)
        return 1
      end }))
      return 1
    end))
    assert.is_true(whole)
    assert.is_true(producer:flush())
  end)

  it("finds a queue by value, whatever list it is from", function()
    local all = assert(producer:queues "Orders")
    for _, i in ipairs { 1, 17, 5000, 5001, MANY } do
      local kept = all[i]
      assert.equal(tostring(kept), tostring(assert(send(function() return kept end)).queue))
      local plain = { broker = kept.broker, id = kept.id }
      assert.equal(tostring(kept), tostring(assert(send(function() return plain end)).queue))
    end
    local plain = { topic = "Orders", broker = all[1].broker, id = all[1].id }
    assert.equal(tostring(all[1]), tostring(assert(send(function() return plain end)).queue))
  end)

  it("takes no queue of another topic, though its broker and id are those of one", function()
    local other = assert(producer:queues "Few")[1]
    local plain = { topic = "Few", broker = "broker-a", id = 0 }
    for _, choice in ipairs { other, plain } do
      local _, err = send(function() return choice end)
      assert.matches("returned Few@broker%-a#0, which is none of them", err and err.message)
    end
    local _, err = send(function() return { topic = 1, broker = "broker-a", id = 0 } end)
    assert.matches("returned a table", err and err.message)
  end)

  it("leaves the lists of other topics alone", function()
    local seen = {}
    for round = 1, 3 do
      for _, topic in ipairs { "Orders", "Few" } do
        assert(producer:send({ topic = topic, body = "x" }, { selector = function(queues)
          seen[topic] = seen[topic] or queues
          assert(seen[topic] == queues, round)
          return #queues
        end }))
      end
    end
    assert.equal(6, #seen.Few)
  end)
end)

describe("the queue that best chooses", function()
  it("is the next in turn, of the whole list or of a part", function()
    local c = cluster.new { brokers = 2, topics = { Orders = 4 } }
    finally(function() c:finish() end)
    local best = rocketmq.selector.best
    local seen = {}
    for _ = 1, 16 do
      local result = assert(c.producer:send({ topic = "Orders", body = "x" },
        { selector = function(...) return best(...) end }))
      seen[tostring(result.queue)] = (seen[tostring(result.queue)] or 0) + 1
    end
    for _, n in pairs(seen) do assert.equal(2, n) end
    for _ = 1, 12 do
      local result = assert(c.producer:send({ topic = "Orders", body = "x" },
        { selector = function(queues, _, _, ctx)
          local part = { queues[8], queues[3], queues[7] }
          return part[ctx.best(part)]
        end }))
      local text = tostring(result.queue)
      assert.truthy(text == "Orders@broker-b#3" or text == "Orders@broker-a#2"
        or text == "Orders@broker-b#2", text)
    end
  end)

  it("is asked for only while a selector runs, with queues", function()
    local c = cluster.new { topics = { Orders = 2 } }
    finally(function() c:finish() end)
    local kept
    local function send(selector)
      return c.producer:send({ topic = "Orders", body = "x" }, { selector = selector })
    end
    assert(send(function(_, _, _, ctx)
      kept = ctx
      return 1
    end))
    assert.error_matches(function() kept.best {} end, "answers only while the selector runs")
    local wrong = {
      ["best: the list of queues is empty"] = {},
      ["best: number 2 of the queues is a boolean"] = { { broker = "broker-a", id = 0 }, true },
    }
    for text, list in pairs(wrong) do
      local _, err = send(function(_, _, _, ctx) return ctx.best(list) end)
      assert.matches(text, err.message)
    end
  end)
end)
