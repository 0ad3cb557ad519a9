local wire = require "rocketmq.wire"
local hex = require "spec.support.hex"
local random = require "spec.support.random"

-- One frame of every kind that is sent or answered, by name.
local function all_frames()
  local frames = {}
  for _, serialize in ipairs { "json", "rocketmq" } do
    local send = { serialize = serialize, opaque = 9, group = "g", topic = "订单", body = "\0\1\2",
      properties = "KEYS\1k\2", broker_name = "broker-a", max_reconsume_times = 16 }
    frames["send " .. serialize] = wire.encode_send_request(send)
    send.code, send.batch = wire.request.SEND_BATCH_MESSAGE, true
    frames["batch " .. serialize] = wire.encode_send_request(send)
    frames["heartbeat " .. serialize] =
      wire.heartbeat_request { serialize = serialize, client_id = "c@1", groups = { "g", "h" } }
    frames["unregister " .. serialize] =
      wire.unregister_request { serialize = serialize, client_id = "c@1", group = "g" }
    frames["route request " .. serialize] =
      wire.route_request { serialize = serialize, topic = "T" }
    frames["send reply " .. serialize] = wire.encode { serialize = serialize, flag = 1, opaque = 9,
      ext = { msgId = "7F", queueId = 1, queueOffset = 2 } }
    frames["refusal " .. serialize] = wire.encode { serialize = serialize, flag = 1, code = 17,
      remark = "No topic \"T\"\n" }
    frames["route " .. serialize] = wire.encode { serialize = serialize, flag = 1,
      body = wire.encode_route { brokers = { { broker_name = "b", addrs = { [0] = "h:1" } } } } }
  end
  return frames
end

describe("a frame", function()
  it("has Java's bytes", function()
    local bytes = wire.encode { serialize = "rocketmq", code = 103, language = "JAVA",
      version = 2333, opaque = 7, ext = { key = "value" } }
    assert.equal("00000027" .. "01000023" .. "0067" .. "00" .. "091d" .. "00000007" ..
      "00000000" .. "00000000" .. "0000000e" .. "0003" .. "6b6579" .. "00000005" .. "76616c7565",
      hex.encode(bytes))
  end)

  it("marks the header's length and kind as Java does", function()
    local header = '{"remark":"' .. ("x"):rep(261 - 13) .. '"}'
    local frame = assert(wire.split(hex.decode "00000109 00000105" .. header))
    assert.equal("json", frame.serialize)
    assert.equal(261, #frame.header)
    local all = hex.decode "00FFFFFC 01FFFFF8" .. ("\0"):rep(0xFFFFF8)
    frame = assert(wire.split(all))
    assert.equal("rocketmq", frame.serialize)
    assert.equal(16777216, frame.size)
    assert.equal(0xFFFFF8, #frame.header)
  end)

  it("asks for more at every prefix and is whole at its end", function()
    for kind, bytes in pairs(all_frames()) do
      for len = 0, #bytes - 1 do
        local frame, err = wire.decode(bytes:sub(1, len))
        assert.is_false(frame, kind .. " at " .. len .. ": " .. tostring(err))
      end
      local frame = assert(wire.decode(bytes), kind)
      assert.equal(#bytes, frame.size)
    end
  end)

  it("ends where its length says, whatever follows", function()
    local first, second = wire.encode { opaque = 1, body = "one" }, wire.encode { opaque = 2 }
    local both = first .. second
    local frame = wire.decode(both)
    assert.same({ 1, "one", #first }, { frame.opaque, frame.body, frame.size })
    frame = wire.decode(both, frame.size + 1)
    assert.same({ 2, "", #second }, { frame.opaque, frame.body, frame.size })
    assert.is_false(wire.decode(both, #both + 1))
    assert.is_false(wire.decode(both, #both + 100))
  end)

  it("comes back as it went, in both serializations", function()
    random.rounds(300, function(source)
      local command = {
        serialize = source:one_of { "json", "rocketmq" },
        code = source:int(-32768, 32767),
        opaque = source:int(-2147483648, 2147483647),
        flag = source:int(0, 3),
        language = source:one_of { "JAVA", "CPP", "GO", "OTHER", "RUST", "NODE_JS" },
        version = source:int(0, 32767),
        remark = source:text(10, 1),
        ext = {},
        body = source:bytes(40),
      }
      for _ = 1, source:int(0, 20) do command.ext[source:text(6, 1)] = source:text(12) end
      local bytes = wire.encode(command)
      if command.serialize == "json" then
        assert.not_matches("[%z\1-\31]", wire.split(bytes).header)
      end
      local back = assert(wire.decode(bytes))
      command.size = #bytes
      assert.same(command, back)
    end)
  end)

  it("is written the same each time, fields sorted by name", function()
    local bytes = wire.encode { ext = { b = 1, a = true, c = 2.5, aa = "x", B = -7 } }
    assert.matches('"extFields":{"B":"%-7","a":"true","aa":"x","b":"1","c":"2.5"}', bytes)
  end)
end)

describe("bytes that are no frame", function()
  local function refused(bytes, pattern)
    local frame, err = wire.split(bytes)
    assert.is_nil(frame)
    assert.matches(pattern, err)
  end

  it("are told apart by what is spoken there", function()
    refused("HTTP/1.1 400 Bad Request\r\n", "speaks HTTP")
    refused("HTTP", "speaks HTTP")
    for _, method in ipairs { "GET", "HEAD", "POST", "PUT", "OPTIONS", "DELETE", "CONNECT" } do
      refused(method .. " / HTTP/1.1\r\n", "the other side asks in HTTP")
    end
    refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/2")
    refused(hex.decode "000012 04 00 00000000 0003 00000080", "gRPC port")
    refused(hex.decode "000000 04 00 00000000", "gRPC port")
    refused(hex.decode "000008 07 00 00000000 00000000 00000001", "gRPC port")
    refused(hex.decode "15 0303 0002 0246", "TLS")
    refused(hex.decode "16 0301 0040", "TLS")
    refused("SSH-2.0-OpenSSH", "longer than 16 MiB")
  end)

  it("are refused as soon as they show it", function()
    refused("\1", "longer than 16 MiB")
    refused(hex.decode "00FFFFFD", "longer than 16 MiB")
    assert.is_false(wire.split(hex.decode "00FFFFFC"))
    refused(hex.decode "00000003", "too short")
    assert.is_false(wire.split(hex.decode "00000004"))
    refused(hex.decode "00000010 02", "neither JSON nor ROCKETMQ")
    refused(hex.decode "00000010 FF", "neither JSON nor ROCKETMQ")
    refused(hex.decode "00000010 0000000D", "longer than its frame")
    assert.is_false(wire.split(hex.decode "00000010 0000000C"))
    refused(hex.decode "00000010 00FFFFFF", "longer than its frame")
    refused(hex.decode "00000010 00000000", "no header")
    refused(hex.decode "80000000", "longer than 16 MiB")
    refused(hex.decode "FFFFFFFF", "longer than 16 MiB")
  end)
end)

describe("encoding", function()
  it("refuses what cannot be carried, by name", function()
    local function refused(command, pattern)
      assert.error_matches(function() wire.encode(command) end, pattern)
    end
    refused({ cdoe = 1 }, "unknown field 'cdoe'.*'code'")
    refused({ code = "1" }, "'code' must be a number, not string")
    refused({ code = 1.5 }, "'code' must be a whole number")
    refused({ code = 0 / 0 }, "'code' must be a whole number")
    refused({ code = 32768, serialize = "rocketmq" }, "'code'.*32767")
    refused({ opaque = 2147483648 }, "'opaque'.*2147483647")
    refused({ serialize = "xml" }, "'serialize' must be 'json' or 'rocketmq', not 'xml'")
    refused({ language = "LUA" }, "no such language: 'LUA'")
    refused({ remark = "\255" }, "remark is not valid UTF%-8 %(byte 1%)")
    refused({ ext = { a = "x\195" } }, "ext field 'a' is not valid UTF%-8 %(byte 2%)")
    refused({ ext = { a = {} } }, "'a' must be a string, number or boolean")
    refused({ ext = { "x" } }, "ext fields have names")
    refused({ serialize = "rocketmq", ext = { [("n"):rep(32768)] = "x" } }, "longer than 32767")
    local longest = ("x"):rep(16777216 - 8 - 21)
    assert.equal(16777216, #wire.encode { serialize = "rocketmq", body = longest })
    refused({ serialize = "rocketmq", body = longest .. "x" }, "longer than 16777216")
    refused({ body = longest }, "longer than 16777216")
    assert.error_matches(function() wire.encode "x" end, "must be a table, not string")
  end)

  it("carries codes beyond 16 bits in JSON", function()
    assert.equal(200050, wire.decode(wire.encode { code = 200050 }).code)
  end)

  it("gives names for numbers and numbers for names", function()
    assert.equal(310, wire.request.SEND_MESSAGE_V2)
    assert.equal("SEND_MESSAGE_V2", wire.request_name(310))
    assert.equal(17, wire.response.TOPIC_NOT_EXIST)
    assert.equal("TOPIC_NOT_EXIST", wire.response_name(17))
    assert.equal("UNKNOWN", wire.response_name(-12))
    for name, code in pairs(wire.response) do assert.equal(name, wire.response_name(code)) end
    for name, code in pairs(wire.request) do assert.equal(name, wire.request_name(code)) end
  end)
end)
