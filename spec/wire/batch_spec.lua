local wire = require "rocketmq.wire"
local hex = require "spec.support.hex"
local random = require "spec.support.random"

local golden = "00000021 00000000 00000000 0000000c 00000004 626f6479 0007 4b455953016b02"

describe("a batch", function()
  it("has Java's bytes", function()
    local members = { { flag = 12, body = "body", properties = "KEYS\1k\2" } }
    local bytes = wire.encode_batch(members)
    assert.equal(golden:gsub(" ", ""), hex.encode(bytes))
    assert.same(members, wire.decode_batch(bytes))
  end)

  it("comes back as it went", function()
    random.rounds(100, function(source)
      local members = {}
      for i = 1, source:int(0, 10) do
        members[i] = { flag = source:int(-2147483648, 2147483647), body = source:bytes(60),
          properties = source:bytes(40) }
      end
      assert.same(members, wire.decode_batch(wire.encode_batch(members)))
    end)
  end)

  it("is damaged at every place but the end of a member", function()
    local one = hex.decode(golden)
    local both = one .. one
    for len = 0, #both do
      local members, err = wire.decode_batch(both:sub(1, len))
      if len % #one == 0 then
        assert.equal(len / #one, #members)
      else
        assert.is_nil(members, len)
        assert.matches("member " .. (len > #one and 2 or 1), err)
      end
    end
  end)

  it("trusts no length in it", function()
    local good = hex.decode(golden)
    local function with(at, digits)
      local bytes = hex.decode(digits)
      return good:sub(1, at - 1) .. bytes .. good:sub(at + #bytes)
    end
    assert.is_nil(wire.decode_batch(with(1, "00000020")))
    assert.is_nil(wire.decode_batch(with(1, "00000022")))
    assert.is_nil(wire.decode_batch(with(1, "FFFFFFFF")))
    assert.is_nil(wire.decode_batch(with(1, "7FFFFFFF")))
    assert.is_nil(wire.decode_batch(with(17, "FFFFFFFF")))
    assert.is_nil(wire.decode_batch(with(17, "7FFFFFFF")))
    assert.is_nil(wire.decode_batch(with(25, "FFFF")))
    assert.is_nil(wire.decode_batch(with(25, "7FFF")))
    assert.is_nil(wire.decode_batch(with(25, "0006")))
    -- Magic and CRC mean nothing inside a batch.
    assert.is_table(wire.decode_batch(with(5, "DAA320A7 12345678")))
  end)

  it("refuses properties that do not fit", function()
    assert.is_string(wire.encode_batch { { properties = ("x"):rep(32767) } })
    assert.error_matches(function()
      wire.encode_batch { { body = "a" }, { properties = ("x"):rep(32768) } }
    end, "member 2 are longer than 32767")
    assert.error_matches(function() wire.encode_batch { { bdoy = "a" } } end, "did you mean 'body'")
  end)
end)
