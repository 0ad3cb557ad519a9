local wire = require "rocketmq.wire"
local hex = require "spec.support.hex"
local random = require "spec.support.random"

-- One with IPv4 hosts and one with a long topic, field by field.
local golden = ([[
  0000007b daa320a7 00000000 00000003 00000007 000000000000007b 00000000000001c8 00000004
  0000018bcfe56800 7f000001 0000c350 0000018bcfe56801 7f000001 00002a9f 00000000
  0000000000000009 00000005 68656c6c6f 06 4f7264657273 0015
  4b455953016b02 5047524f5550016f726465727302]]):gsub("%s", "")

local fields = { topic = "Orders", body = "hello", properties = "KEYS\1k\2PGROUP\1orders\2",
  queue_id = 3, queue_offset = 123, log_offset = 456, message_flag = 7, sys_flag = 4,
  born_host = "127.0.0.1", born_port = 50000, born_ms = 1700000000000, store_host = "127.0.0.1",
  store_port = 10911, stored_ms = 1700000000001, reconsume_times = 0, body_crc = 0,
  prepared_offset = 9 }

local function with(changes)
  local copy = {}
  for name, value in pairs(fields) do copy[name] = value end
  for name, value in pairs(changes) do copy[name] = value end
  return copy
end

-- The layout of 5.x brokers whose topics' names take two bytes for their length.
local function long_topic(name)
  local bytes = wire.encode_stored(with { topic = "T" })
  local at = assert(bytes:find("\1T\0", 1, true))
  local size = #bytes + 1 + #name - 1
  return ("%s\218\163\32\171%s\0%s%s%s"):format(hex.decode(("%08x"):format(size)),
    bytes:sub(9, at - 1), string.char(#name), name, bytes:sub(at + 2))
end

describe("a stored message", function()
  it("has Java's bytes", function()
    assert.equal(golden, hex.encode(wire.encode_stored(fields)))
    local expected = with { offset_msg_id = "7F00000100002A9F00000000000001C8" }
    assert.same({ expected }, wire.decode_stored(hex.decode(golden)))
  end)

  it("comes back as it went", function()
    random.rounds(100, function(source)
      local message = with { body = source:bytes(200), properties = source:bytes(60),
        queue_offset = source:int(0, 2147483647), log_offset = "9223372036854775807",
        message_flag = source:int(-2147483648, 2147483647), born_host = "::1" }
      local again = assert(wire.decode_stored(wire.encode_stored(message)))[1]
      assert.equal(0x14, again.sys_flag) -- the born host has 16 bytes
      again.offset_msg_id, again.sys_flag = nil, message.sys_flag
      assert.same(message, again)
    end)
  end)

  it("may have a long topic", function()
    local name = ("T"):rep(200)
    local got = assert(wire.decode_stored(long_topic(name)))
    assert.equal(name, got[1].topic)
    assert.equal(fields.properties, got[1].properties)
  end)

  it("is damaged at every place but its end", function()
    local one = hex.decode(golden)
    local both = one .. one
    for len = 0, #both do
      local got, err = wire.decode_stored(both:sub(1, len))
      if len % #one == 0 then
        assert.equal(len / #one, #got)
      else
        assert.is_nil(got, len)
        assert.matches("stored message " .. (len > #one and 2 or 1) .. " is damaged", err)
      end
    end
  end)

  it("trusts no length in it", function()
    local one = hex.decode(golden)
    -- of the whole, the body (place 89), the topic, the properties
    for _, at in ipairs { 1, 2, 3, 4, 85, 86, 87, 88, 94, 101, 102 } do
      for _, byte in ipairs { 0x7f, 0x80, 0xff } do
        local bytes = one:sub(1, at - 1) .. string.char(byte) .. one:sub(at + 1)
        if bytes ~= one then assert.is_nil((wire.decode_stored(bytes)), at) end
      end
    end
  end)

  it("is another thing with another magic number", function()
    local blank = golden:gsub("daa320a7", "cbd43194")
    assert.is_nil((wire.decode_stored(hex.decode(blank))))
  end)

  it("cannot have a topic that does not fit", function()
    assert.has_error(function() wire.encode_stored(with { topic = ("T"):rep(128) }) end,
      "wire.encode_stored: the topic or the properties are too long for a stored message")
    assert.has_error(function() wire.encode_stored(with { topic = false }) end)
    assert.has_error(function() wire.encode_stored(with { store_host = "nowhere" }) end,
      "wire.encode_stored: field 'store_host' must be an IP address, not 'nowhere'")
  end)
end)
