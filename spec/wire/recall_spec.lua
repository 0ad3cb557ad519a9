local wire = require "rocketmq.wire"
local random = require "spec.support.random"

-- Java's client makes this text of these parts.
local text = "djEgdG9waWMgYnJva2VyLTAgMTcwMDAwMDAwMDAwMCBBQzE0MTUxMTZEMTQxOEI0"
  .. "QUFDMjE3RkUxQjRFMDAwMA=="
local parts = { topic = "topic", broker = "broker-0", deliver_at = 1700000000000,
  msg_id = "AC1415116D1418B4AAC217FE1B4E0000" }

describe("a recall handle", function()
  it("is Java's", function()
    assert.equal(text, wire.encode_recall_handle(parts))
    assert.same(parts, wire.decode_recall_handle(text))
  end)

  it("may leave the padding out", function()
    assert.same(parts, wire.decode_recall_handle((text:gsub("=", ""))))
  end)

  it("comes back whatever its length and letters", function()
    random.rounds(200, function(source)
      local given = { topic = source:bytes(40, "abcXYZ019%_-|", 1), broker = "b\239\191\191" ..
        source:bytes(9, "~?>"), deliver_at = source:int(0, 2 ^ 40),
        msg_id = source:bytes(56, "0123456789ABCDEF", 1) }
      local handle = wire.encode_recall_handle(given)
      assert.is_nil(handle:find "[^%w_=-]")
      assert.same(given, wire.decode_recall_handle(handle))
    end)
  end)

  it("that is none is refused", function()
    local function of(plain)
      -- Through the standard alphabet's own encoder of the handle: topic "t" stands for the rest.
      local handle = wire.encode_recall_handle { topic = plain, broker = "b", deliver_at = 1,
        msg_id = "i" }
      return handle
    end
    for _, wrong in ipairs { "", "=", "A", "====", "djEg", text .. "A", text:sub(1, -2), "dj!g",
      text:gsub("d", "+", 1), text:gsub("d", "/", 1), text .. "\n", "\255", of "a b c" } do
      local handle, why = wire.decode_recall_handle(wrong)
      assert.is_nil(handle)
      assert.equal("this is no recall handle", why)
    end
  end)

  it("is refused in every part that is cut off", function()
    for length = 0, #text - 3 do
      local handle = wire.decode_recall_handle(text:sub(1, length))
      if handle then
        -- The id is the last item, and any text is an id.
        assert.equal(handle.msg_id, parts.msg_id:sub(1, #handle.msg_id))
        assert.is_true(#handle.msg_id > 0)
      end
    end
  end)
end)
