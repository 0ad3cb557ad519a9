-- What the mock does with messages to the topics of a group's retries.
local new_mock = require "rocketmq.mock"
local rocketmq = require "rocketmq"

local RETRY, DEAD = "%RETRY%readers", "%DLQ%readers"

describe("a mock's %RETRY% topic", function()
  local mock, producer

  local function start(description)
    description.topics = { Orders = 4, [RETRY] = 4 }
    mock = new_mock(description)
    producer = rocketmq.producer { group = "g", namesrv = mock.namesrv }
  end

  after_each(function()
    producer:shutdown(100)
    mock:close()
  end)

  -- Sends a message that was tried so often, with the most times that it may be.
  local function send(times, most, more, options)
    local message = { topic = RETRY, body = "x", properties = { RECONSUME_TIME = tostring(times),
      MAX_RECONSUME_TIMES = most and tostring(most) } }
    for name, value in pairs(more or {}) do message[name] = value end
    return assert(producer:send(message, options))
  end

  it("keeps how often a message was tried", function()
    start {}
    local result = send(3, 5)
    local stored = mock:messages(RETRY)[1]
    assert.equal(3, stored.reconsume_times)
    assert.is_nil(stored.properties.RECONSUME_TIME)
    assert.equal(3, assert(producer:view_message(result.offset_msg_id)).reconsume_times)
    assert(producer:send { topic = "Orders", body = "x" })
    assert.equal(0, mock:messages("Orders")[1].reconsume_times)
  end)

  it("moves a message that was tried too often to the dead letters", function()
    start {}
    send(5, 5)
    assert.equal(1, #mock:messages(RETRY))
    assert.equal(0, #mock:messages(DEAD))
    local result = send(6, 5, { keys = "k" },
      { queue = { topic = RETRY, broker = "broker-a", id = 3 } })
    assert.equal(1, #mock:messages(RETRY))
    local dead = mock:messages(DEAD, "broker-a", 0)
    assert.equal(1, #dead)
    assert.same({ "x", { "k" }, 6, 0, result.msg_id, "-1" }, { dead[1].body, dead[1].keys,
      dead[1].reconsume_times, dead[1].queue_offset, dead[1].msg_id, dead[1].properties.DELAY })
    -- The answer names the queue that was asked for, and the place among the dead letters.
    assert.same({ RETRY, 3, 0, dead[1].offset_msg_id }, { result.queue.topic, result.queue.id,
      result.queue_offset, result.offset_msg_id })
    local found = assert(producer:view_message(result.offset_msg_id))
    assert.same({ DEAD, 6 }, { found.topic, found.reconsume_times })
    assert.equal(1, producer:max_offset { topic = DEAD, broker = "broker-a", id = 0 })
    local queues = mock:name_server():route(DEAD).queues
    assert.same({ 1, 1, 6 }, { queues[1].read_queue_nums, queues[1].write_queue_nums,
      queues[1].perm })
  end)

  it("takes 16 times as too often when nothing is said", function()
    start {}
    send(16)
    send(17)
    assert.same({ 16, 17 }, { mock:messages(RETRY)[1].reconsume_times,
      mock:messages(DEAD)[1].reconsume_times })
  end)

  it("counts the limit as too often before 5.0, and lets nobody read the dead letters", function()
    start { version = 397 }
    send(4, 5)
    send(5, 5)
    assert.same({ 4, 5 }, { mock:messages(RETRY)[1].reconsume_times,
      mock:messages(DEAD)[1].reconsume_times })
    assert.equal(2, mock:name_server():route(DEAD).queues[1].perm)
  end)

  it("does not delay what is dead", function()
    start {}
    send(6, 5, { delay_level = 18 })
    local dead = mock:messages(DEAD)[1]
    assert.same({ true, "-1" }, { dead.delivered, dead.properties.DELAY })
  end)

  it("alone looks at how often a message was tried", function()
    start {}
    local raw = assert(require("spec.support.raw_client").connect(mock:broker("broker-a").addr))
    local reply = raw:request { code = 310, body = "x", ext = { a = "g", b = "Orders", c = "TBW102",
      d = "4", e = "0", f = "0", g = "1", h = "0", i = "UNIQ_KEY\1A\2", j = "20", k = "false",
      m = "false" } }
    raw:close()
    assert.equal(0, reply.code)
    assert.equal(20, mock:messages("Orders")[1].reconsume_times)
  end)
end)
