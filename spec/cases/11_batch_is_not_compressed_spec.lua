--- A batch that was longer than the limit for compression was compressed as one piece, and brokers
--- refused it: they look for the messages in it.
local cluster = require "spec.support.cluster"
local wire = require "rocketmq.wire"

describe("a batch longer than what would be compressed alone", function()
  local c

  before_each(function() c = cluster.new { topics = { Orders = 1 } } end)
  after_each(function() c:finish() end)

  it("is sent as it is, and its messages are found in it", function()
    local messages = {}
    for i = 1, 10 do
      messages[i] = { topic = "Orders", body = ("%d"):format(i % 10):rep(2048) }
    end
    local results, err = c.producer:send_batch(messages)
    assert.is_nil(err)
    local request = c.mock:requests { code = "SEND_BATCH_MESSAGE" }[1]
    assert.equal("0", request.ext.f) -- sysFlag: nothing is compressed
    local members = assert(wire.decode_batch(request.body))
    for i, member in ipairs(members) do
      assert.equal(messages[i].body, member.body)
      assert.equal(i - 1, results[i].queue_offset)
    end
    assert.equal(10, #members)
  end)

  it("also when single messages of it are longer", function()
    local body = ("long "):rep(2000)
    local short = { topic = "Orders", body = "x" }
    assert(c.producer:send_batch { { topic = "Orders", body = body }, short })
    assert.equal(body, c.mock:messages()[1].body)
    assert.equal(0, c.mock:messages()[1].sys_flag)
  end)
end)
