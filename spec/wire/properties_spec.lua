local wire = require "rocketmq.wire"
local random = require "spec.support.random"

describe("a property string", function()
  it("ends every pair, also the last, and is sorted by name", function()
    assert.equal("DELAY\0014\2", wire.encode_properties { DELAY = "4" })
    assert.equal("A\1x\2KEYS\1k1 k2\2b\1y\2",
      wire.encode_properties { b = "y", A = "x", KEYS = "k1 k2" })
    assert.equal("", wire.encode_properties {})
  end)

  it("comes back as it went", function()
    random.rounds(300, function(source)
      local properties = {}
      for _ = 1, source:int(0, 20) do
        properties[source:text(6, 1):gsub("[\1\2]", "")] = source:text(20, 1)
      end
      assert.same(properties, wire.decode_properties(assert(wire.encode_properties(properties))))
    end)
  end)

  it("is read with and without its last separator", function()
    assert.same({ DELAY = "4" }, wire.decode_properties "DELAY\0014\2")
    assert.same({ DELAY = "4" }, wire.decode_properties "DELAY\0014")
    assert.same({ a = "x", b = "y" }, wire.decode_properties "a\1x\2b\1y")
  end)

  it("is read as Java reads it when it is damaged", function()
    assert.same({}, wire.decode_properties "")
    assert.same({}, wire.decode_properties "\2\2\2")
    assert.same({}, wire.decode_properties "ab\2\1x\2a\1\2\1\2")
    assert.same({ ok = "yes" }, wire.decode_properties "nothing\2ok\1yes\2\1")
    assert.same({ a = "1\1b" }, wire.decode_properties("a\1" .. "1\1b\2"))
    assert.same({ a = "2" }, wire.decode_properties "a\0011\2a\0012\2")
  end)

  it("refuses a separator in a name or value and says where", function()
    local function refused(properties, pattern)
      local bytes, err = wire.encode_properties(properties)
      assert.is_nil(bytes)
      assert.matches(pattern, err)
    end
    refused({ a = "x\2b\1y" }, "'a' has a separator %(byte 2 at position 2%)")
    refused({ a = "\1" }, "'a' has a separator %(byte 1 at position 1%)")
    refused({ ["na\1me"] = "x" }, "name of property.*byte 1 at position 3")
    refused({ ["\2"] = "x" }, "byte 2 at position 1")
    refused({ [""] = "x" }, "name of a property is empty")
    refused({ x = "" }, "'x' is empty")
  end)

  it("takes 32767 bytes and no more", function()
    -- A name of one byte and two separators are part of it.
    assert.equal(32767, #wire.encode_properties { a = ("x"):rep(32764) })
    for _, len in ipairs { 32765, 32766, 70000 } do
      local bytes, err = wire.encode_properties { a = ("x"):rep(len) }
      assert.is_nil(bytes)
      assert.matches(("take %d bytes together, 32767 are allowed"):format(len + 3), err)
    end
    local _, err = wire.encode_properties { a = ("x"):rep(20000), b = ("x"):rep(20000) }
    assert.matches("40006 bytes", err)
  end)

  it("holds strings only", function()
    assert.error_matches(function() wire.encode_properties { a = 1 } end, "must be strings")
    assert.error_matches(function() wire.encode_properties { "a" } end, "must be strings")
  end)

  it("has 51 names that are not the user's", function()
    local reserved = [[TRACE_ON MSG_REGION KEYS TAGS WAIT DELAY RETRY_TOPIC REAL_TOPIC REAL_QID
      TRAN_MSG PGROUP MIN_OFFSET MAX_OFFSET BUYER_ID ORIGIN_MESSAGE_ID TRANSFER_FLAG
      CORRECTION_FLAG MQ2_FLAG RECONSUME_TIME UNIQ_KEY MAX_RECONSUME_TIMES CONSUME_START_TIME
      POP_CK POP_CK_OFFSET 1ST_POP_TIME TRAN_PREPARED_QUEUE_OFFSET DUP_INFO EXTEND_UNIQ_INFO
      INSTANCE_ID CORRELATION_ID REPLY_TO_CLIENT TTL ARRIVE_TIME PUSH_REPLY_TIME CLUSTER MSG_TYPE
      INNER_MULTI_QUEUE_OFFSET TIMER_DELAY_MS TIMER_DELAY_SEC TIMER_DELIVER_MS TIMER_ENQUEUE_MS
      TIMER_DEQUEUE_MS TIMER_ROLL_TIMES TIMER_OUT_MS TIMER_DEL_UNIQKEY TIMER_DELAY_LEVEL
      __BORNHOST BORN_TIMESTAMP DLQ_ORIGIN_TOPIC DLQ_ORIGIN_MESSAGE_ID __CRC32#]]
    local count = 0
    for name in reserved:gmatch "%S+" do
      count = count + 1
      assert.is_true(wire.is_reserved_property(name), name)
      assert.is_false(wire.is_reserved_property(name .. "X"), name)
      assert.is_false(wire.is_reserved_property(name:lower() .. "x"), name)
    end
    assert.equal(51, count)
    for _, name in ipairs { "", "KEY", "keys", "Tags", "INNER_NUM", "__SHARDINGKEY", "X" } do
      assert.is_false(wire.is_reserved_property(name), name)
    end
  end)
end)
