local wire = require "rocketmq.wire"
local hex = require "spec.support.hex"

describe("a compressed body", function()
  local text = ("RocketMQ says hello. "):rep(20)

  it("is read back, whichever way", function()
    for kind, flags in pairs { zlib = 0x301, lz4 = 0x101, zstd = 0x201 } do
      local packed, bits = wire.compress(text, kind)
      assert.equal(flags, bits)
      assert.is_true(#packed < #text)
      assert.same({ text, kind }, { wire.decompress(packed, bits) })
    end
  end)

  -- Made by other programs than ours: Python's zlib, the lz4 and the zstd command.
  it("of others is read", function()
    local wanted = ("hello hello hello "):rep(4)
    for flags, digits in pairs {
      [0x1] = "78dacb48cdc9c957c8a0980400cd291a71",
      [0x301] = "78dacb48cdc9c957c8a0980400cd291a71",
      [0x101] = "04224d186440a7100000006f68656c6c6f2006002a50656c6c6f2000000000ba8cfa17",
      [0x201] = "28b52ffd24486500003068656c6c6f2001008f548acbab11da",
    } do
      assert.equal(wanted, wire.decompress(hex.decode(digits), flags))
    end
  end)

  it("that is none is refused", function()
    for kind = 0, 7 do
      local body, why = wire.decompress("no compressed body", 1 + kind * 256)
      assert.is_nil(body)
      assert.matches("damaged", why)
    end
  end)

  it("is not made longer than wanted", function()
    local packed, bits = wire.compress(("\0"):rep(1e6), "zlib")
    assert.equal(1e6, #wire.decompress(packed, bits, 1e6))
    local body, why = wire.decompress(packed, bits, 1e6 - 1)
    assert.is_nil(body)
    assert.matches("999999", why)
  end)

  it("would be longer than what it was made of", function()
    assert.is_nil((wire.compress("ab", "zlib")))
    assert.is_nil((wire.compress("", "lz4")))
  end)

  it("is of a kind and level that there are", function()
    assert.error_matches(function() wire.compress("x", "gzip") end, "zlib, lz4 or zstd, not 'gzip'")
    assert.error_matches(function() wire.compress("x", "zlib", 13) end, "no such level")
    assert.error_matches(function() wire.compress("x", "zstd", 0) end, "no such level")
  end)
end)
