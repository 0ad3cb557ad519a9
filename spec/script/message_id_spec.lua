local rocketmq = require "rocketmq"
local cluster = require "spec.support.cluster"
local wire = require "rocketmq.wire"
local uv = require "luv"

local message_id = rocketmq.message_id

describe("message_id", function()
  it("reads an offset id", function()
    assert.same({ kind = "offset", host = "127.0.0.1", port = 9103, offset = 123456 },
      message_id "7F0000010000238F000000000001E240")
    assert.same({ kind = "offset", host = "::1", port = 0, offset = 123456 },
      message_id "0000000000000000000000000000000100000000000000000001E240")
    assert.equal("int64_t", tostring(require("ffi").typeof(
      message_id("7F0000010000238F7FFFFFFFFFFFFFFF").offset)):match "int64_t")
    assert.is_true(message_id("7F0000010000238F7FFFFFFFFFFFFFFF").offset == 0x7FFFFFFFFFFFFFFFLL)
    assert.equal(2 ^ 53 - 1, message_id("7F0000010000238F001FFFFFFFFFFFFF").offset)
  end)

  it("reads a unique key", function()
    local now = 1700000000123
    local maker = wire.id_maker { ip = "\10\1\2\3", pid = 0x12345, tag = 0xABCDEF01 }
    maker:next(now)
    local parts = message_id(maker:next(now))
    assert.same({ "unique", "10.1.2.3", 0x2345, 0xABCDEF01, 1 },
      { parts.kind, parts.host, parts.pid, parts.tag, parts.counter })
    local long = wire.id_maker { ip = ("\0"):rep(15) .. "\1", pid = 7, tag = 1 }
    parts = message_id(long:next(now))
    assert.same({ "unique", "::1", 7, 0 }, { parts.kind, parts.host, parts.pid, parts.counter })
  end)

  it("knows when a key was made, up to a month ago", function()
    local seconds, microseconds = uv.gettimeofday()
    local now = seconds * 1000 + math.floor(microseconds / 1000)
    local maker = wire.id_maker { ip = "\10\1\2\3", pid = 1, tag = 1 }
    local day = 24 * 3600 * 1000
    for back = 27, 0, -1 do
      local then_ms = now - back * day
      assert.equal(then_ms, message_id(maker:next(then_ms)).time)
    end
  end)

  it("reads what a send returns", function()
    local c = cluster.new { topics = { Orders = 1 } }
    local result = assert(c.producer:send { topic = "Orders", body = "x" })
    local unique, stored = message_id(result.msg_id), message_id(result.offset_msg_id)
    assert.equal(uv.os_getpid() % 65536, unique.pid)
    local broker = c.mock:broker "broker-a"
    assert.same({ "offset", "127.0.0.1", broker.port, 0 },
      { stored.kind, stored.host, stored.port, stored.offset })
    local sent = c.mock:messages()[1].born_timestamp
    assert.is_true(math.abs(unique.time - sent) < 2000)
    c:finish()
  end)

  it("may be told which it is", function()
    local id = wire.id_maker({ ip = "\10\1\2\3", pid = 65536, tag = 5 }):next(1700000000000)
    assert.equal("offset", message_id(id).kind)
    assert.equal("unique", message_id(id, "unique").kind)
    assert.equal(5, message_id(id, "unique").tag)
    local other = wire.id_maker({ ip = "\10\1\2\3", pid = 1, tag = 5 }):next(1700000000000)
    local parts, why = message_id(other, "offset")
    assert.is_nil(parts)
    assert.matches("port", why)
  end)

  it("refuses what is none, and says why", function()
    for id, pattern in pairs {
      [""] = "0 characters",
      ["7F00"] = "4 characters",
      [("0"):rep(33)] = "33 characters",
      [("G"):rep(32)] = "'G' at position 1",
      [("0"):rep(31) .. " "] = "' ' at position 32",
      [("0"):rep(31) .. "\n"] = "at position 32",
      [("0"):rep(30) .. "é"] = "at position 31",
      ["7F0000010000238FFFFFFFFFFFFFFFFF"] = "negative",
    } do
      local parts, why = message_id(id)
      assert.is_nil(parts)
      assert.matches(pattern, why)
      assert.is_nil(why:find "%c")
    end
    assert.error_matches(function() message_id(7) end, "the id must be a string, not number")
    assert.error_matches(function() message_id("x", "stored") end, "'unique' or 'offset'")
  end)
end)
