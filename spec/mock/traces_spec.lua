-- The records in a trace topic of the mock.
local new_mock = require "rocketmq.mock"
local raw_client = require "spec.support.raw_client"
local wire = require "rocketmq.wire"

describe("the traces of the mock", function()
  local mock, client

  before_each(function()
    mock = new_mock { topics = { Mine = 1 } }
    client = assert(raw_client.connect(mock:broker("broker-a").addr))
  end)

  after_each(function()
    client:close()
    mock:close()
  end)

  local function store(body, topic, sys_flag)
    assert.equal(0, client:request({ code = 310, body = body, ext = { a = "group",
      b = topic or "RMQ_SYS_TRACE_TOPIC", c = "TBW102", d = "4", e = "0",
      f = tostring(sys_flag or 0), g = "1700000000000", h = "0",
      i = "UNIQ_KEY\1A\2KEYS\1ID k\2", j = "0", k = "false", m = "false" } }).code)
  end

  -- Written out by hand from the format of Java's encoder.
  local PUB = table.concat({ "Pub", "1700000000123", "r", "g", "T", "ID", "t", "k1 k2", "1.2.3.4:5",
    "42", "7", "3", "OID", "true" }, "\1") .. "\2"
  local END = table.concat({ "EndTransaction", "1700000000123", "r", "g", "T", "ID", "null", "null",
    "1.2.3.4:5", "2", "X", "ROLLBACK_MESSAGE", "true" }, "\1") .. "\2"
  local RECALL = "Recall\0011700000000123\1r\1g\1T\1ID\1false\2"

  it("are read from the messages of the topic, in their order", function()
    store(PUB .. END)
    store(RECALL)
    local pub, ending, recall = unpack(mock:traces())
    assert.same({ "Pub", 1700000000123, "r", "g", "T", "ID", "t", "k1 k2", "1.2.3.4:5", 42, 7,
      "Delay_Msg", "OID", true }, { pub.kind, pub.timestamp, pub.region, pub.group, pub.topic,
      pub.msg_id, pub.tags, pub.keys, pub.store_host, pub.body_length, pub.cost, pub.msg_type,
      pub.offset_msg_id, pub.success })
    assert.same({ "EndTransaction", "Trans_msg_Commit", "X", "ROLLBACK_MESSAGE", true },
      { ending.kind, ending.msg_type, ending.transaction_id, ending.state, ending.from_check })
    assert.is_nil(ending.tags)
    assert.same({ "Recall", "ID", false }, { recall.kind, recall.msg_id, recall.success })
    assert.same({ "ID", "k" }, recall.carrier.keys)
    assert.equal(3, #mock:traces())
  end)

  it("are read from another topic, and from compressed bodies", function()
    local compressed, sys_flag = wire.compress(PUB:rep(100), "zlib")
    store(compressed, "Mine", sys_flag)
    assert.equal(100, #mock:traces "Mine")
    assert.equal(0, #mock:traces())
  end)

  it("are what they can be when a body holds something else", function()
    store "what is this?"
    store "Pub\1x\2\2\2Recall"
    local traces = mock:traces()
    assert.same({ "what is this?", "Pub", "Recall" },
      { traces[1].kind, traces[2].kind, traces[3].kind })
    assert.is_nil(traces[2].timestamp)
  end)
end)
