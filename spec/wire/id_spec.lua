local wire = require "rocketmq.wire"
local random = require "spec.support.random"

local ip = "\127\0\0\1"
-- Somewhere in the middle of a month in every time zone.
local now = 1700000000000

local function maker(fields)
  fields = fields or {}
  return wire.id_maker { ip = fields.ip or ip, pid = 0x12345, tag = fields.tag or 0xABCDEF01 }
end

-- Makes `count` ids and checks that none was seen before.
local function all_new(ids, count, wall_ms, seen)
  for _ = 1, count do
    local id = ids:next(wall_ms)
    if seen[id] then error("made twice: " .. id) end
    seen[id] = true
  end
end

local function time_of(id) return tonumber(id:sub(21, 28), 16) end

describe("a unique id", function()
  it("has Java's layout", function()
    local id = maker():next(now)
    assert.matches("^7F000001" .. "2345" .. "ABCDEF01" .. "%x%x%x%x%x%x%x%x" .. "0000$", id)
    assert.equal(id:upper(), id)
    local start = os.time { year = 2023, month = 11, day = 1, hour = 0 }
    assert.equal(now - start * 1000, time_of(id))
    id = maker { ip = ("\0"):rep(15) .. "\1" }:next(now)
    assert.equal(56, #id)
    assert.matches("^" .. ("0"):rep(31) .. "1" .. "2345ABCDEF01", id)
  end)

  it("counts in its last two bytes", function()
    local ids = maker()
    for i = 0, 300 do assert.equal(("%04X"):format(i), ids:next(now):sub(-4)) end
  end)

  it("moves to the next millisecond when the counter has gone round in one", function()
    local ids, seen = maker(), {}
    all_new(ids, 65536, now, seen)
    local id = ids:next(now)
    assert.is_nil(seen[id])
    assert.equal(time_of(maker():next(now)) + 1, time_of(id))
    seen[id] = true
    all_new(ids, 200000, now, seen)
    all_new(ids, 200000, now + 1, seen)
  end)

  it("is new a million times in a standing and a running clock", function()
    local ids, seen = maker(), {}
    all_new(ids, 500000, now, seen)
    for i = 1, 500 do all_new(ids, 1000, now + i, seen) end
  end)

  it("is new when the clock steps back", function()
    local ids, seen = maker(), {}
    all_new(ids, 70000, now, seen)
    local before = time_of(ids:next(now))
    all_new(ids, 70000, now - 3600000, seen)
    all_new(ids, 70000, now - 40 * 86400000, seen)
    all_new(ids, 70000, 0, seen)
    assert.is_true(time_of(ids:next(0)) >= before)
    all_new(ids, 70000, now, seen)
  end)

  it("is new when a month ends, and a year of months", function()
    local ids, seen = maker(), {}
    local start = os.time { year = 2023, month = 12, day = 1, hour = 0 } * 1000
    all_new(ids, 70000, start - 1, seen)
    all_new(ids, 10, start, seen)
    all_new(ids, 10, start + 1, seen)
    for month = 1, 24 do
      local from = os.time { year = 2024, month = month, day = 1, hour = 0 } * 1000
      local id = ids:next(from + 5)
      assert.equal(5, time_of(id))
      assert.is_nil(seen[id:sub(1, 28)])
      seen[id:sub(1, 28)] = true
    end
  end)

  it("takes another tag with the month, so that the counter may start anywhere", function()
    local ids = maker()
    local start = os.time { year = 2023, month = 11, day = 1, hour = 0 } * 1000
    assert.equal(31 * 86400000 - 1, time_of(ids:next(start - 1)))
    assert.equal(0, time_of(ids:next(start)))
    local first = ids:next(os.time { year = 2023, month = 11, day = 1, hour = 0 } * 1000 + 7)
    local second = ids:next(os.time { year = 2023, month = 12, day = 1, hour = 0 } * 1000 + 7)
    assert.equal(time_of(first), time_of(second))
    assert.equal(first:sub(1, 12), second:sub(1, 12))
    assert.not_equal(first:sub(13, 20), second:sub(13, 20))
  end)

  it("is new in two processes with one address and one pid", function()
    local seen = {}
    all_new(maker { tag = 1 }, 70000, now, seen)
    all_new(maker { tag = 2 }, 70000, now, seen)
  end)

  it("is new whatever the clock does", function()
    random.rounds(20, function(source)
      local ids, seen, clock = maker(), {}, now
      for _ = 1, 200 do
        local step = source:one_of { 0, 0, 1, 2, -1, -500, 3600000, -90000000, 2700000000 }
        clock = math.max(0, clock + step)
        all_new(ids, source:one_of { 1, 10, 100 }, clock, seen)
      end
    end)
  end)

  it("needs an address of 4 or 16 bytes", function()
    assert.error_matches(function() wire.id_maker { ip = "127.0.0.1" } end, "4 or 16 bytes, not 9")
    assert.error_matches(function() wire.id_maker { ip = ip, pid = -1 } end, "'pid'")
    assert.error_matches(function() maker():next(-1) end, "milliseconds")
    assert.error_matches(function() maker():next(0 / 0) end, "milliseconds")
  end)
end)

describe("an offset id", function()
  it("has Java's bytes", function()
    local v4 = { host = "127.0.0.1", port = 9103, offset = 123456 }
    assert.equal("7F0000010000238F000000000001E240", wire.encode_offset_id(v4))
    assert.same(v4, wire.decode_offset_id "7F0000010000238F000000000001E240")
    local v6 = { host = "::1", port = 0, offset = 123456 }
    local text = "0000000000000000000000000000000100000000000000000001E240"
    assert.equal(text, wire.encode_offset_id(v6))
    assert.same(v6, wire.decode_offset_id(text))
    assert.same(v4, wire.decode_offset_id "7f0000010000238f000000000001e240")
  end)

  it("carries every offset", function()
    for _, offset in ipairs { 0, 2 ^ 53, "9007199254740993", "9223372036854775807" } do
      local id = { host = "10.1.2.3", port = 65535, offset = offset }
      assert.same(id, wire.decode_offset_id(wire.encode_offset_id(id)))
    end
  end)

  it("is refused when it is none", function()
    local good = "7F0000010000238F000000000001E240"
    for len = 0, #good - 1 do assert.is_nil((wire.decode_offset_id(good:sub(1, len)))) end
    local ports_too_large = "7F00000100010000000000000001E240 7F000001FFFFFFFF000000000001E240"
    local wrong = { good .. "0", good:sub(1, 31) .. "G", " " .. good:sub(2),
      good:sub(1, 30) .. "0x" }
    for text in ports_too_large:gmatch "%x+" do wrong[#wrong + 1] = text end
    for _, text in ipairs(wrong) do
      local id, err = wire.decode_offset_id(text)
      assert.is_nil(id, text)
      assert.matches("32 or 56 hex digits", err)
    end
    assert.error_matches(function() wire.encode_offset_id { host = "localhost" } end, "IP address")
  end)
end)
