--- Batches were split by characters and not by bytes, without counting what is around the bodies,
--- or not at all; and a limit of 4 MiB was taken for 4,000,000.
local cluster = require "spec.support.cluster"

local MIB = 1024 * 1024
local LIMIT = 4 * MIB

describe("the limit of 4 MiB", function()
  local c, producer

  before_each(function()
    c = cluster.new { topics = { Orders = 1 } }
    producer = c.producer
  end)
  after_each(function() c:finish() end)

  local function message(size) return { topic = "Orders", body = ("x"):rep(size) } end

  it("is for a body in bytes: 4194304 are taken, and one more is not", function()
    assert(producer:send(message(LIMIT)))
    local result, err = producer:send(message(LIMIT + 1))
    assert.is_nil(result)
    assert.equal(13, err.code)
    assert.matches("4194305 bytes.*4194304", err.message)
    assert.equal(1, c.mock:count())
  end)

  it("is for a batch in bytes: 3 MiB and 2 MiB go one after the other", function()
    local results, err = producer:send_batch { message(3 * MIB), message(2 * MIB) }
    assert.is_nil(err)
    assert.same({ 0, 1 }, { results[1].queue_offset, results[2].queue_offset })
    assert.equal(2, #c.mock:requests { code = "SEND_BATCH_MESSAGE" })
  end)

  it("counts bytes of texts, not characters", function()
    local text = ("订单"):rep(400000) -- 800,000 characters, 2,400,000 bytes
    local messages = {}
    for i = 1, 3 do messages[i] = { topic = "Orders", body = text } end
    assert(producer:send_batch(messages))
    for _, request in ipairs(c.mock:requests { code = "SEND_BATCH_MESSAGE" }) do
      assert.is_true(#request.body <= LIMIT)
    end
    assert.equal(3, #c.mock:requests { code = "SEND_BATCH_MESSAGE" })
    assert.equal(text, c.mock:messages()[3].body)
  end)

  it("counts what is around the bodies, too", function()
    local value = ("v"):rep(1000)
    local messages = {}
    for i = 1, 8000 do
      messages[i] = { topic = "Orders", body = "b", properties = { p = value } }
    end
    assert(producer:send_batch(messages))
    local requests = c.mock:requests { code = "SEND_BATCH_MESSAGE" }
    assert.is_true(#requests >= 2)
    for _, request in ipairs(requests) do assert.is_true(#request.body <= LIMIT) end
    assert.equal(8000, c.mock:count())
  end)

  it("lets a message that fits into no batch fail alone", function()
    local results, err = producer:send_batch { message(10), message(LIMIT + 1), message(LIMIT - 10),
      message(20) }
    assert.equal("SEND_OK", results[1].status)
    assert.is_false(results[2])
    assert.is_false(results[3])
    assert.equal("SEND_OK", results[4].status)
    assert.matches("messages%[2%]: body is 4194305 bytes", err.failed[2].message)
    assert.matches("messages%[3%]: the message takes %d+ bytes in a batch", err.failed[3].message)
    assert.matches("Send it alone", err.failed[3].message)
    assert.is_nil(err.failed[1])
    assert.equal(2, c.mock:count())
    assert(producer:send(message(LIMIT - 10))) -- as it says
  end)

  it("of a broker that is lower is explained", function()
    c:finish()
    c = cluster.new({ topics = { Orders = 1 }, max_message_size = MIB })
    local results, err = c.producer:send_batch { message(700000), message(700000) }
    assert.same({ false, false }, results)
    assert.same({ "broker", 13 }, { err.kind, err.code })
    assert.matches("1048576", err.message)
    assert.matches("maxMessageSize", err.message)
    assert.equal(0, c.mock:count())
  end)
end)
