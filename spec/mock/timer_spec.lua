-- What the mock does with messages that wait for their time.
local child = require "spec.support.child"
local cluster = require "spec.support.cluster"
local new_mock = require "rocketmq.mock"

local DAY = 24 * 3600

describe("the mock", function()
  local c

  after_each(function() c:finish() end)

  local function start(description)
    description.topics = { Orders = 2 }
    c = cluster.new(description)
  end

  local function send(fields)
    fields.topic, fields.body = "Orders", "x"
    local result, err = c.producer:send(fields)
    local all = c.mock:messages()
    return result, err, all[#all]
  end

  it("shows a delayed message at once, and when it is delivered", function()
    start { timer_scale = 0.001 }
    local before = os.time() * 1000
    local result, _, message = send { delay_seconds = 30 }
    assert.is_false(message.delivered)
    assert.is_false(message.recalled)
    assert.is_nil(message.queue_offset)
    assert.is_true(message.deliver_at >= before + 30000)
    assert.is_true(message.deliver_at <= (os.time() + 1) * 1000 + 30000)
    local now = c.mock.world.now
    local shown = now()
    assert(c.mock:wait(function() return message.delivered end))
    assert.is_true(now() - message.time >= 29)
    assert.is_true(now() >= shown)
    assert.equal(0, message.queue_offset)
    -- Its place is another one then; its key stays.
    assert.not_equal(result.offset_msg_id, message.offset_msg_id)
    assert.equal(result.msg_id, message.msg_id)
    assert.equal(1, c.mock:count())
  end)

  it("delivers in the order of the times", function()
    start { timer_scale = 0.001 }
    local slow = select(3, send { delay_seconds = 60 })
    local fast = select(3, send { delay_seconds = 1 })
    local now = select(3, send {})
    assert.same({ false, true }, { slow.delivered, now.delivered })
    assert(c.mock:wait(function() return fast.delivered end))
    assert.is_false(slow.delivered)
    assert(c.mock:wait(function() return slow.delivered end))
  end)

  it("gives a message its place in the queue when it is delivered", function()
    start { timer_scale = 0.001 }
    local queue = { topic = "Orders", broker = "broker-a", id = 1 }
    local function put(fields)
      fields.topic, fields.body = "Orders", "x"
      return assert(c.producer:send(fields, { queue = queue }))
    end
    put { delay_seconds = 60 }
    local second = put {}
    assert.equal(0, second.queue_offset)
    assert.equal(1, c.producer:max_offset(queue))
    assert.equal(0, c.producer:min_offset(queue))
    local waited = c.mock:messages()[1]
    local before = waited.store_timestamp
    assert(c.mock:wait(function() return waited.delivered end))
    assert.equal(1, waited.queue_offset)
    assert.equal(2, c.producer:max_offset(queue))
    assert.equal(1, c.producer:search_offset(queue, waited.store_timestamp))
    assert.is_true(waited.store_timestamp > before)
  end)

  it("knows the delay levels, and others when it is told", function()
    start { timer_scale = 0.0001 }
    for level, seconds in pairs { [1] = 1, [2] = 5, [5] = 60, [18] = 7200 } do
      local _, _, message = send { delay_level = level }
      assert.is_true(math.abs(message.deliver_at - message.born_timestamp - seconds * 1000) < 900)
    end
    c:finish()
    start { timer_scale = 0.001, delay_levels = "7s 1d" }
    local _, _, last = send { delay_level = 18 } -- over the last is the last
    assert.is_true(math.abs(last.deliver_at - last.born_timestamp - DAY * 1000) < 900)
  end)

  it("refuses what its brokers cannot hold, as they do", function()
    start { timer_scale = 0.001 }
    assert(send { delay_seconds = 3 * DAY })
    local result, err = send { delay_seconds = 3 * DAY + 5 }
    assert.is_nil(result)
    assert.same({ "broker", 13, 1 }, { err.kind, err.code, err.attempts })
    assert.matches("bigger than the max delay 259200000ms", err.message, 1, true)
    assert.matches("timerMaxDelaySec", err.message, 1, true)
    c:finish()
    start { max_delay = 10, timer_scale = 0 }
    assert(send { delay_ms = 10000 })
    assert.equal(13, select(2, send { deliver_at = (os.time() + 60) * 1000 }).code)
  end)

  it("delivers at once what is due already", function()
    start {}
    for _, fields in ipairs { { delay_ms = 0 }, { delay_seconds = 0 }, { deliver_at = 1.6e12 } } do
      local result, _, message = send(fields)
      assert.is_true(message.delivered)
      assert.is_nil(message.deliver_at)
      assert.is_nil(result.recall_handle)
    end
  end)

  it("looks past a timer's properties when it is older than timers, but not past levels", function()
    start { version = 397, timer_scale = 1 } -- 4.9.2
    local result, _, message = send { delay_seconds = 600 }
    assert.is_true(message.delivered)
    assert.is_nil(result.recall_handle)
    assert.is_false(select(3, send { delay_level = 3 }).delivered)
  end)

  it("says so in a warning, once, for whom that would be a surprise", function()
    start {}
    local ended = child.run { "-e", [[
      local rocketmq = require "rocketmq"
      local mock = rocketmq.mock { version = 397, topics = { Orders = 1 } }
      local producer = rocketmq.producer { group = "g", namesrv = mock.namesrv }
      for _, fields in ipairs { { delay_level = 1 }, { delay_ms = 5 }, { delay_seconds = 5 } } do
        fields.topic, fields.body = "Orders", "x"
        assert(producer:send(fields))
        print(mock:messages()[1].delivered)
      end
    ]] }
    assert.equal(0, ended.code)
    local _, warnings = ended.stderr:gsub("broker%-a %(127.0.0.1:%d+%) is older than RocketMQ", "")
    assert.equal(1, warnings)
  end)

  it("keeps no process and no spec from ending", function()
    start {}
    send { delay_seconds = 2 * DAY }
    c:finish() -- and after_each does it again
    assert.is_false(c.mock:messages()[1].delivered)
  end)

  it("shows light queues by their names", function()
    start {}
    send { lmq = { "a", "%LMQ%b" } }
    send { lmq = "b" }
    send {}
    assert.equal(1, #c.mock:messages "%LMQ%a")
    assert.equal(2, #c.mock:messages "%LMQ%b")
    assert.equal(0, #c.mock:messages "%LMQ%")
    assert.equal(3, #c.mock:messages "Orders")
  end)

  it("is described by what it can be told", function()
    start {}
    for name, value in pairs { timer_scale = 2, delay_levels = "1s, 2s", max_delay = 0,
      recall = 1 } do
      assert.error_matches(function() new_mock { [name] = value } end, "'" .. name .. "' must be")
    end
    for _, levels in ipairs { "", " ", "1", "1x", "s", "1s2s x" } do
      assert.error_matches(function() new_mock { delay_levels = levels } end, "'1s 5s 10m 2h'")
    end
  end)
end)
