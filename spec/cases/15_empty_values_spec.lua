--- A property with an empty value was sent and had vanished at the consumer; empty tags and keys
--- behaved in as many ways as there were clients.
local cluster = require "spec.support.cluster"
local wire = require "rocketmq.wire"

describe("empty values", function()
  local c

  before_each(function() c = cluster.new { topics = { Orders = 1 } } end)
  after_each(function() c:finish() end)

  it("of tags and keys count as none", function()
    for _, fields in ipairs { { tags = "" }, { keys = "" }, { keys = {} }, { properties = {} } } do
      fields.topic, fields.body = "Orders", "x"
      assert(c.producer:send(fields))
    end
    local messages = c.mock:messages("Orders")
    assert.equal(4, #messages)
    for _, message in ipairs(messages) do
      local names = {}
      for name in pairs(message.properties) do names[#names + 1] = name end
      table.sort(names)
      assert.same({ "UNIQ_KEY", "WAIT" }, names)
    end
    -- A name with nothing after it would be dropped by whoever reads it, and be on the wire all the
    -- same.
    for _, request in ipairs(c.mock:requests { code = "SEND_MESSAGE_V2" }) do
      assert.is_nil(request.ext.i:find("KEYS", 1, true))
      assert.is_nil(request.ext.i:find("TAGS", 1, true))
    end
  end)

  it("of a property are refused with its name", function()
    local result, err = c.producer:send { topic = "Orders", body = "x",
      properties = { full = "1", hollow = "" } }
    assert.is_nil(result)
    assert.equal("message", err.kind)
    assert.matches('"hollow"', err.message)
    assert.matches("empty", err.message)
    assert.equal(0, #c.mock:requests())
  end)

  it("in a list of keys are refused", function()
    local result, err = c.producer:send { topic = "Orders", body = "x", keys = { "a", "" } }
    assert.is_nil(result)
    assert.equal("message", err.kind)
    assert.matches("keys", err.message)
    assert.equal(0, #c.mock:requests())
  end)

  it("that a peer sends are dropped, the rest is kept", function()
    assert.same({ a = "1", b = "2" }, wire.decode_properties("a\0011\2x\1\2\1y\2\2b\0012\2"))
  end)
end)
