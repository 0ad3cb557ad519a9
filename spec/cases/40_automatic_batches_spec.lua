--- With automatic batches the ids of the parts were wrong or one for all, the trace knew only the
--- batch, and a sender whose batch failed in another's hands got nothing.
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"

describe("three messages that left in one batch", function()
  local c, producer

  before_each(function()
    c = cluster.new({ topics = { Orders = 1 } }, { auto_batch = true, trace = true })
    producer = c.producer
    assert(producer:send { topic = "Orders", body = "before" })
  end)
  after_each(function() c:finish() end)

  local function send_three()
    local got, tasks = {}, {}
    for i = 1, 3 do
      tasks[i] = rocketmq.spawn(function()
        local result, err = producer:send { topic = "Orders", body = "part " .. i }
        got[i] = { result = result, err = err }
      end)
    end
    for i = 1, 3 do tasks[i]:wait() end
    return got
  end

  local function batches()
    return c.mock:requests { code = "SEND_BATCH_MESSAGE", topic = "Orders" }
  end

  it("have each its own id, and follow each other in the queue", function()
    local got = send_three()
    assert.equal(1, #batches())
    local stored = c.mock:messages("Orders")
    for i = 1, 3 do
      local result, message = got[i].result, stored[i + 1]
      assert.same({ message.msg_id, message.offset_msg_id, i },
        { result.msg_id, result.offset_msg_id, result.queue_offset })
      assert.equal("part " .. i, message.body)
    end
  end)

  it("are told one by one in the trace", function()
    local got = send_three()
    assert(producer:flush())
    local text = ""
    for _, message in ipairs(c.mock:messages("RMQ_SYS_TRACE_TOPIC")) do
      text = text .. message.body
    end
    for i = 1, 3 do
      assert.truthy(text:find(got[i].result.msg_id, 1, true))
      assert.truthy(text:find(got[i].result.offset_msg_id, 1, true))
    end
  end)

  it("are tried again together, with the same ids", function()
    c.mock:rule { code = "SEND_BATCH_MESSAGE", topic = "Orders", times = 1, answer = { code = 2 } }
    local got = send_three()
    assert.equal(2, #batches())
    assert.equal(batches()[1].body, batches()[2].body)
    for i = 1, 3 do assert.equal(2, got[i].result.attempts) end
  end)

  it("fail each with its own error when the batch does", function()
    c.mock:rule { code = "SEND_BATCH_MESSAGE", topic = "Orders",
      answer = { code = 13, remark = "no" } }
    local ids = {}
    for _, own in ipairs(send_three()) do
      assert.is_nil(own.result)
      assert.same({ "broker", 13 }, { own.err.kind, own.err.code })
      assert.is_nil(ids[own.err.msg_id])
      ids[own.err.msg_id] = true
    end
    assert.equal(3, producer:stats().failed)
  end)
end)
