--- One release left the last separator of the properties out; brokers and agents that append more
--- then made DELAY=4Pinpoint-Flags out of two properties.
local cluster = require "spec.support.cluster"
local wire = require "rocketmq.wire"

describe("the separator after the last property", function()
  it("is on the wire, whatever the message has", function()
    local c = cluster.new { topics = { Orders = 1 } }
    finally(function() c:finish() end)
    for _, fields in ipairs { {}, { tags = "t" }, { keys = { "k1", "k2" } },
      { properties = { a = "1", b = "2" } }, { wait = false } } do
      fields.topic, fields.body = "Orders", "x"
      assert(c.producer:send(fields))
    end
    local requests = c.mock:requests { code = "SEND_MESSAGE_V2" }
    assert.equal(5, #requests)
    for _, request in ipairs(requests) do
      assert.equal("\2", request.ext.i:sub(-1))
      local appended = wire.decode_properties(request.ext.i .. "flags\0011\2")
      assert.equal("1", appended.flags)
      assert.equal(32, #appended.UNIQ_KEY)
    end
  end)

  it("is written by the encoder and not needed by the decoder", function()
    assert.equal("DELAY\0014\2", wire.encode_properties { DELAY = "4" })
    assert.same({ DELAY = "4", a = "b" }, wire.decode_properties("DELAY\0014\2a\1b\2"))
    assert.same({ DELAY = "4", a = "b" }, wire.decode_properties("DELAY\0014\2a\1b"))
  end)
end)
