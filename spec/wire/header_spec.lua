local wire = require "rocketmq.wire"
local hex = require "spec.support.hex"

local function json(text) return wire.decode_header("json", text) end

describe("a JSON header", function()
  it("has Java's defaults where it says nothing", function()
    assert.same({ code = 0, language = "JAVA", version = 0, opaque = 0, flag = 0, ext = {} },
      json "{}")
  end)

  it("is read in any order, with white space and unknown members", function()
    local header = json [[ { "x" : [ 1 , { "code" : 9 } , null ] , "version" : 393 ,
      "extFields" : { "a" : "b" } , "flag" : 1 , "remark" : null , "opaque" : -5 , "code" : 17 ,
      "language" : "CPP" , "serializeTypeCurrentRPC" : "JSON" } ]]
    assert.same({ code = 17, language = "CPP", version = 393, opaque = -5, flag = 1,
      ext = { a = "b" } }, header)
  end)

  it("knows the languages of other clients, and takes others for OTHER", function()
    assert.equal("GO", json('{"language":"GO"}').language)
    assert.equal("NODE_JS", json('{"language":"NODE_JS"}').language)
    assert.equal("GO", json('{"language":9}').language)
    assert.equal("OTHER", json('{"language":"COBOL"}').language)
    assert.equal("OTHER", json('{"language":""}').language)
    assert.equal("OTHER", json('{"language":"JAV"}').language)
    assert.equal("OTHER", json('{"language":"JAVA\0"}').language)
    assert.equal("OTHER", json('{"language":"JAVA\0\0\0\0\0\0\0\0\0\0\0"}').language)
    assert.equal("OTHER", json('{"language":99}').language)
  end)

  it("lets the last of two members count", function()
    local header = json '{"code":1,"extFields":{"a":"1","b":"x","a":"2"},"code":2}'
    assert.equal(2, header.code)
    assert.same({ a = "2", b = "x" }, header.ext)
    assert.same({ c = "3" }, json('{"extFields":{"a":"1"},"extFields":{"c":"3"}}').ext)
    assert.same({}, json('{"extFields":{"a":"1"},"extFields":null}').ext)
    assert.same({}, json('{"extFields":{"a":"1","a":null}}').ext)
  end)

  it("takes field values that are no strings as their text", function()
    assert.same({ n = "12", f = "-1.5e3", t = "true", no = "false", s = "x" },
      json('{"extFields":{"n":12,"f":-1.5e3,"t":true,"no":false,"z":null,"s":"x"}}').ext)
  end)

  it("undoes escapes", function()
    assert.equal('"\\/\b\f\n\r\t', json([[{"remark":"\"\\\/\b\f\n\r\t"}]]).remark)
    assert.equal("é订A", json([[{"remark":"\u00e9\u8BA2\u0041"}]]).remark)
    assert.equal("😀", json([[{"remark":"\ud83d\ude00"}]]).remark)
    assert.equal("\244\143\191\191", json([[{"remark":"\udbff\udfff"}]]).remark)
    assert.equal("\240\144\128\128", json([[{"remark":"\ud800\udc00"}]]).remark)
    local replaced = "\239\191\189"
    assert.equal(replaced, json([[{"remark":"\ud83d"}]]).remark)
    assert.equal(replaced .. "x", json([[{"remark":"\ude00x"}]]).remark)
    assert.equal(replaced .. "A", json([[{"remark":"\ud83d\u0041"}]]).remark)
    assert.equal(replaced .. "😀", json([[{"remark":"\ud83d\ud83d\ude00"}]]).remark)
    assert.same({ ["a\nb"] = "c\td" }, json([[{"extFields":{"a\nb":"c\td"}}]]).ext)
    assert.equal(7, json([[{"c\u006fde":7}]]).code)
    assert.equal("a\0b", json([[{"remark":"a\u0000b"}]]).remark)
  end)

  it("takes raw control characters, which fastjson may write", function()
    assert.equal("a\tb\nc\1", json('{"remark":"a\tb\nc\1"}').remark)
  end)

  it("is refused when it is no JSON object, or damaged", function()
    local bad = {
      "", " ", "{", "}", "[]", "null", "1", '"x"', "{}x", "{}{}", "{,}", '{"code"}', '{"code":}',
      '{"code":1,}', '{"code":1 "flag":2}', '{code:1}', "{'code':1}", '{"code":01}', '{"code":1.}',
      '{"code":.5}', '{"code":-}', '{"code":+1}', '{"code":1e}', '{"code":0x10}', '{"code":NaN}',
      '{"code":"0"}', '{"code":true}', '{"code":1.5}', '{"code":1e3}', '{"code":{}}',
      '{"remark":1}',
      '{"remark":["x"]}', '{"extFields":[]}', '{"extFields":"x"}', '{"extFields":{"a":{}}}',
      '{"extFields":{"a":[]}}', '{"language":true}', '{"remark":"\\x"}', '{"remark":"\\u12"}',
      '{"remark":"\\u12g4"}', '{"remark":"\\', '{"remark":"x', '{"a":tru}', '{"a":nulll}',
      '{1.5:1}', '{1e3:1}',
      '{"a":[1}', '{"a":{"b":1]}', '{"code":1}}', '\239\187\191{"code":1}', '{"code":1}\0',
    }
    for _, text in ipairs(bad) do
      local header, err = json(text)
      assert.is_nil(header, text)
      assert.matches("damaged", err)
    end
  end)

  it("is refused when text in it is not valid UTF-8", function()
    for _, bytes in ipairs { "\255", "\195", "\192\128", "\237\160\128", "\244\144\128\128" } do
      assert.is_nil(json('{"remark":"' .. bytes .. '"}'))
      assert.is_nil(json('{"extFields":{"' .. bytes .. '":"x"}}'))
      assert.is_nil(json('{"x":"\\n' .. bytes .. '"}'))
    end
  end)

  it("checks the range of its numbers", function()
    for _, name in ipairs { "code", "flag", "opaque", "version" } do
      assert.equal(2147483647, json(('{"%s":2147483647}'):format(name))[name])
      assert.equal(-2147483648, json(('{"%s":-2147483648}'):format(name))[name])
      for _, number in ipairs { "2147483648", "-2147483649", "4294967296", ("9"):rep(20) } do
        assert.is_nil(json(('{"%s":%s}'):format(name, number)), name .. number)
      end
    end
  end)

  it("bounds depth and number of fields", function()
    local function nested(depth) return '{"x":' .. ("["):rep(depth) .. ("]"):rep(depth) .. "}" end
    assert.is_table(json(nested(63)))
    assert.is_nil(json(nested(64)))
    assert.is_nil(json(nested(100000)))
    assert.is_nil(json('{"x":' .. ('{"a":'):rep(100)))
    local function fields(count)
      local parts = {}
      for i = 1, count do parts[i] = ('"f%d":"%d"'):format(i, i) end
      return '{"extFields":{' .. table.concat(parts, ",") .. "}}"
    end
    assert.equal("128", json(fields(128)).ext.f128)
    local header, err = json(fields(129))
    assert.is_nil(header)
    assert.matches("more than 128 fields", err)
  end)

  it("is read the same with and without a space in it", function()
    -- The space sends it through the general reader.
    local texts = {
      '{"code":0,"extFields":{"queueId":"3","msgId":"7F00"},"flag":1,"language":"JAVA"}',
      '{"extFields":{},"remark":"é","version":493,"serializeTypeCurrentRPC":"JSON"}',
    }
    for _, text in ipairs(texts) do assert.same(json(text), json("{ " .. text:sub(2))) end
  end)
end)

describe("a ROCKETMQ header", function()
  local function binary(digits) return wire.decode_header("rocketmq", hex.decode(digits)) end
  local fixed = "0067 00 091d 00000007 00000000"

  it("is read from Java's bytes", function()
    assert.same({ code = 103, language = "JAVA", version = 2333, opaque = 7, flag = 0,
      ext = { key = "value" } },
      binary(fixed .. "00000000 0000000e 0003 6b6579 00000005 76616c7565"))
  end)

  it("lets the last of two fields count and takes empty values", function()
    assert.same({ a = "2" }, binary(fixed .. "00000000 00000010 0001 61 00000001 31" ..
      "0001 61 00000001 32").ext)
    assert.same({ a = "" }, binary(fixed .. "00000000 00000007 0001 61 00000000").ext)
  end)

  it("has signed code and version and takes unknown languages for OTHER", function()
    local header = binary "FFFF 63 8000 FFFFFFFF 80000000 00000002 6869 00000000"
    assert.same({ code = -1, language = "OTHER", version = -32768, opaque = -1, flag = -2147483648,
      remark = "hi", ext = {} }, header)
  end)

  it("is refused at every prefix and with anything after it", function()
    local whole = fixed .. "00000002 6869 0000000e 0003 6b6579 00000005 76616c7565"
    local bytes = hex.decode(whole)
    for len = 0, #bytes - 1 do
      assert.is_nil(wire.decode_header("rocketmq", bytes:sub(1, len)), "at " .. len)
    end
    assert.is_table(wire.decode_header("rocketmq", bytes))
    assert.is_nil(wire.decode_header("rocketmq", bytes .. "\0"))
  end)

  it("is refused when a length in it is hostile", function()
    for _, rest in ipairs {
      "FFFFFFFF", "7FFFFFFF", "80000000", -- remark
      "00000000 FFFFFFFF", "00000000 7FFFFFFF", "00000000 80000000", -- all fields
      "00000000 0000000e FFFF 6b6579 00000005 76616c7565", -- a name
      "00000000 0000000e 7FFF 6b6579 00000005 76616c7565",
      "00000000 0000000e 0003 6b6579 FFFFFFFF 76616c7565", -- a value
      "00000000 0000000e 0003 6b6579 00000006 76616c7565",
      "00000000 0000000e 0003 6b6579 00000004 76616c7565", -- a byte too many
    } do
      assert.is_nil(binary(fixed .. rest), rest)
    end
  end)

  it("bounds the number of fields", function()
    local field = "0001 61 00000000"
    local function fields(count)
      return fixed .. "00000000" .. ("%08x"):format(7 * count) .. field:rep(count)
    end
    assert.is_table(binary(fields(128)))
    local header, err = binary(fields(129))
    assert.is_nil(header)
    assert.matches("more than 128 fields", err)
  end)
end)
