--- Bytes 1 and 2 separate properties on the wire and there is no escape, so a value that had them
--- cut itself off, or set other properties at the consumer.
local cluster = require "spec.support.cluster"
local wire = require "rocketmq.wire"

describe("separators inside of properties", function()
  local c

  before_each(function() c = cluster.new { topics = { Orders = 1 } } end)
  after_each(function() c:finish() end)

  -- What a message with these fields is refused for; nothing may have been sent.
  local function refusal(fields)
    local message = { topic = "Orders", body = "x" }
    for name, value in pairs(fields) do message[name] = value end
    local result, err = c.producer:send(message)
    assert.is_nil(result)
    assert.equal("message", err.kind)
    assert.equal(0, #c.mock:requests())
    return err.message
  end

  it("are refused with the property's name, the byte and its position", function()
    local message = refusal { properties = { a = "x\2b\1y" } }
    assert.matches('"a"', message)
    assert.matches("byte 2 at position 2", message)
    assert.matches("byte 1 at position 1", refusal { properties = { a = "\1" } })
  end)

  it("are refused in names, and so is an empty name", function()
    assert.matches("name.*byte 1 at position 2", refusal { properties = { ["a\1b"] = "x" } })
    assert.matches("name.*byte 2 at position 3", refusal { properties = { ["ab\2"] = "x" } })
    assert.matches("empty name", refusal { properties = { [""] = "x" } })
  end)

  it("are refused in tags and keys", function()
    assert.matches("tags.*byte 2 at position 2", refusal { tags = "a\2b" })
    assert.matches("keys.*byte 1 at position 1", refusal { keys = "\1" })
    assert.matches("keys%[2%].*byte 2 at position 2", refusal { keys = { "a", "b\2" } })
  end)

  it("cannot set what belongs to the system, which is refused by name", function()
    assert.matches("KEYS.*keys", refusal { properties = { KEYS = "k" } })
    assert.matches("TAGS.*tags", refusal { properties = { TAGS = "t" } })
    assert.matches("UNIQ_KEY", refusal { properties = { UNIQ_KEY = "1" } })
    assert.matches("TRAN_MSG", refusal { properties = { TRAN_MSG = "true" } })
  end)

  it("leave all other bytes below the blank alone", function()
    local odd = "\0\3\t\n\r\27\31\127"
    assert(c.producer:send { topic = "Orders", body = "x", properties = { [odd] = odd } })
    assert.equal(odd, c.mock:messages("Orders")[1].properties[odd])
  end)

  it("are refused by the encoder as well", function()
    for _, properties in ipairs { { a = "x\2b\1y" }, { ["\1"] = "x" }, { [""] = "x" } } do
      assert.is_nil((wire.encode_properties(properties)))
    end
  end)
end)
