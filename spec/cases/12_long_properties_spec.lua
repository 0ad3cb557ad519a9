--- The length of the properties is stored in 16 bits: 70,000 bytes were sent as a length of 4464,
--- and what came after the cut was read as something else.
local cluster = require "spec.support.cluster"
local wire = require "rocketmq.wire"

local LIMIT = 32767

describe("properties near what a broker can store", function()
  local c

  before_each(function() c = cluster.new { topics = { Orders = 1 } } end)
  after_each(function() c:finish() end)

  local function send(length)
    return c.producer:send { topic = "Orders", body = "x",
      properties = { long = ("v"):rep(length) } }
  end

  -- The bytes of the whole property string of the last request.
  local function sent_length()
    local requests = c.mock:requests { code = "SEND_MESSAGE_V2" }
    return #requests[#requests].ext.i
  end

  it("are sent up to the last byte that fits, and refused from the next on", function()
    assert(send(1))
    local others = sent_length() - 1
    assert(send(LIMIT - others))
    assert.equal(LIMIT, sent_length())
    local messages = c.mock:messages("Orders")
    assert.equal(("v"):rep(LIMIT - others), messages[2].properties.long)

    for _, length in ipairs { LIMIT - others + 1, 32766, 32767, 32768, 65536, 70000 } do
      local before = #c.mock:requests()
      local result, err = send(length)
      assert.is_nil(result)
      assert.equal("message", err.kind)
      assert.equal(13, err.code)
      assert.matches(("%d bytes"):format(others + length), err.message)
      assert.matches("32767", err.message)
      assert.equal(before, #c.mock:requests())
    end
  end)

  it("count together with keys and tags", function()
    local result, err = c.producer:send { topic = "Orders", body = "x", tags = ("t"):rep(20000),
      keys = { ("k"):rep(13000) } }
    assert.is_nil(result)
    assert.equal("message", err.kind)
    assert.equal(0, #c.mock:requests())
  end)

  it("have the same limit in the encoders", function()
    local fits = ("v"):rep(LIMIT - #"long\1\2")
    assert.equal(LIMIT, #wire.encode_properties { long = fits })
    local bytes, why = wire.encode_properties { long = fits .. "v" }
    assert.is_nil(bytes)
    assert.matches("32768.*32767", why)

    local whole = wire.encode_properties { long = fits }
    local members = wire.decode_batch(wire.encode_batch { { body = "x", properties = whole } })
    assert.equal(whole, members[1].properties)
    assert.has_error(function()
      wire.encode_batch { { body = "x", properties = whole .. "\2" } }
    end)
  end)
end)
