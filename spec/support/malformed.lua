--- Everything malformed that a server can send instead of an answer, for each decoder of a client.
local bit = require "bit"

local malformed = {}

---@class spec.Form
---@field name string
---@field rule table what a rule of the mock is to do
---@field says string? a pattern of what the client's error says of it

local RESPONSE = 1

local function u16(n) return string.char(bit.band(bit.rshift(n, 8), 255), bit.band(n, 255)) end
local function u24(n) return string.char(bit.band(bit.rshift(n, 16), 255)) .. u16(n) end
local function u32(n) return string.char(bit.band(bit.rshift(n, 24), 255)) .. u24(n) end

--- A frame whose lengths fit, whatever is in it.
local function frame(kind, header, body)
  body = body or ""
  return u32(4 + #header + #body) .. string.char(kind) .. u24(#header) .. header .. body
end

-- A header in JSON; OPAQUE in it becomes the request's.
local function json(text, body)
  return function(command) return frame(0, (text:gsub("OPAQUE", command.opaque)), body) end
end

-- A header in ROCKETMQ's own form: what comes after the flag.
local function binary(rest, code)
  return function(command)
    return frame(1, u16(code or 0) .. "\0\1\237" .. u32(command.opaque) .. u32(RESPONSE) .. rest)
  end
end

local NO_REMARK = u32(0)
local UNREADABLE = "header that cannot be read"

---@type spec.Form[]
malformed.frames = {
  { name = "HTTP", rule = { speak = "http" }, says = "speaks HTTP .is this a dashboard's port" },
  { name = "HTTP/2", rule = { speak = "http2" }, says = "is this the proxy's gRPC port" },
  { name = "HTTP/2's preface", rule = { speak = "http2-preface" }, says = "speaks HTTP/2" },
  { name = "a TLS alert", rule = { speak = "tls" }, says = "speaks TLS, .*tls.server.mode" },
  { name = "a TLS handshake", rule = { speak = "tls-handshake" }, says = "speaks TLS" },
  { name = "another protocol", rule = { raw = "SSH-2.0-OpenSSH_9.2p1\r\n" },
    says = "is this a port of RocketMQ" },
  { name = "random bytes", rule = { garbage = 5000, close = true } },
  { name = "zeros", rule = { raw = ("\0"):rep(5000) }, says = "too short" },
  { name = "a huge length", rule = { length = "huge" }, says = "longer than 16 MiB" },
  { name = "a length of 0", rule = { length = 0 }, says = "too short" },
  { name = "a length of 3", rule = { length = 3 }, says = "too short" },
  { name = "no header", rule = { raw = u32(5) .. u32(0) .. "x" }, says = "no header" },
  { name = "a header longer than its frame", rule = { raw = u32(10) .. u32(7) .. ("x"):rep(6) },
    says = "longer than its frame" },
  { name = "an unknown serialize type", rule = { raw = frame(2, "{}") },
    says = "neither JSON nor ROCKETMQ" },
  { name = "a connection that closes", rule = { close = true }, says = "closed by the other side" },
  { name = "one that is reset", rule = { reset = true }, says = "reset" },
  { name = "one that closes in one direction", rule = { half_close = true },
    says = "closed by the other side" },
  { name = "half an answer", rule = { cut = 30, close = true }, says = "closed by the other side" },
}

---@type spec.Form[]
malformed.headers = {
  { name = "a header of one byte", rule = { raw = frame(0, "{") }, says = UNREADABLE },
  { name = "a header that is no object", rule = { raw = frame(0, "[1,2]") }, says = UNREADABLE },
  { name = "a header that is null", rule = { raw = frame(0, "null") }, says = UNREADABLE },
  { name = "a header cut in a text", rule = { raw = json '{"opaque":OPAQUE,"flag":1,"remark":"x' },
    says = UNREADABLE },
  { name = "a nest of arrays", rule = { raw = json('{"opaque":OPAQUE,"flag":1,"x":'
    .. ("["):rep(200000) .. "}") }, says = UNREADABLE },
  { name = "a code that is a text", rule = { raw = json '{"opaque":OPAQUE,"flag":1,"code":"x"}' },
    says = UNREADABLE },
  { name = "a code beyond all numbers",
    rule = { raw = json '{"opaque":OPAQUE,"flag":1,"code":1e999}' }, says = UNREADABLE },
  { name = "an opaque of 64 bits", rule = { raw = json '{"opaque":9223372036854775807,"flag":1}' },
    says = UNREADABLE },
  { name = "fields that are no object",
    rule = { raw = json '{"opaque":OPAQUE,"flag":1,"extFields":[1]}' }, says = UNREADABLE },
  { name = "a broken escape",
    rule = { raw = json '{"opaque":OPAQUE,"flag":1,"remark":"\\u12"}' }, says = UNREADABLE },
  { name = "a binary header without its end", rule = { raw = frame(1, "\0\0\0\1\237") },
    says = UNREADABLE },
  { name = "a remark longer than its header", rule = { raw = binary(u32(1000) .. "x") },
    says = UNREADABLE },
  { name = "a remark of negative length", rule = { raw = binary(u32(-1) .. u32(0)) },
    says = UNREADABLE },
  { name = "fields longer than their header",
    rule = { raw = binary(NO_REMARK .. u32(100) .. "x") }, says = UNREADABLE },
  { name = "a field name of negative length",
    rule = { raw = binary(NO_REMARK .. u32(8) .. "\255\255abcdef") }, says = UNREADABLE },
  { name = "a field value of negative length",
    rule = { raw = binary(NO_REMARK .. u32(7) .. "\0\1a" .. u32(-1)) }, says = UNREADABLE },
}

-- What is readable and makes no sense: it may end a request in whichever way, or not at all.
---@type spec.Form[]
malformed.nonsense = {
  { name = "an answer to nobody", rule = { wrong_opaque = true } },
  { name = "an answer without a code", rule = { raw = json '{"opaque":OPAQUE,"flag":1}' } },
  { name = "an answer with nothing at all", rule = { raw = frame(0, "{}") } },
  { name = "an answer with an unknown code", rule = { answer = { code = -2147483648 } } },
  { name = "an answer of 4 MiB", rule = { raw = function(command)
    return frame(0, ('{"opaque":%d,"flag":1,"remark":"%s"}'):format(command.opaque,
      ("r"):rep(4194304)))
  end } },
  { name = "an answer with 50,000 fields", rule = { raw = function(command)
    local fields = {}
    for index = 1, 50000 do fields[index] = ('"f%d":"v"'):format(index) end
    return frame(0, ('{"opaque":%d,"flag":1,"extFields":{%s}}'):format(command.opaque,
      table.concat(fields, ",")))
  end } },
  { name = "an answer thrice", rule = { duplicate = 2 } },
  { name = "a request instead of an answer",
    rule = { raw = json '{"opaque":OPAQUE,"flag":0,"code":39,"extFields":{}}' } },
  { name = "its own request", rule = { raw = json '{"opaque":OPAQUE,"flag":2,"code":310}' } },
}

-- Answers to a send that say that it was stored, with what no broker says.
---@type spec.Form[]
malformed.send_replies = {
  { name = "a place that is no number", rule = { store = false,
    answer = { code = 0, ext = { msgId = "x", queueId = "two", queueOffset = "0" } } } },
  { name = "no place", rule = { store = false, answer = { code = 0 } } },
  { name = "an offset beyond 64 bits", rule = { store = false, answer = { code = 0,
    ext = { msgId = "x", queueId = "0", queueOffset = ("9"):rep(40) } } } },
  { name = "a negative queue", rule = { store = false,
    answer = { code = 0, ext = { msgId = "x", queueId = "-7", queueOffset = "-9" } } } },
  { name = "an id of a megabyte", rule = { store = false, answer = { code = 0,
    ext = { msgId = ("x"):rep(2 ^ 20), queueId = "0", queueOffset = "1" } } } },
}

-- Answers to a question for an offset, or for the time of the earliest message.
---@type spec.Form[]
malformed.offsets = {
  { name = "no offset", says = "has no proper", rule = { store = false, answer = { code = 0 } } } }
for name, text in pairs { ["that is no number"] = "x", ["that is empty"] = "",
  ["beyond 64 bits"] = ("9"):rep(30), ["of a megabyte"] = ("1"):rep(2 ^ 20) } do
  table.insert(malformed.offsets, { name = "an offset " .. name, says = "has no proper",
    rule = { store = false, answer = { code = 0, ext = { offset = text, timestamp = text } } } })
end

-- Answers to a recall.
---@type spec.Form[]
malformed.recalls = {}
for name, text in pairs { ["with a blank"] = "a b", ["with a line feed"] = "a\nb",
  ["of 256 bytes"] = ("x"):rep(256), ["of a megabyte"] = ("x"):rep(2 ^ 20) } do
  table.insert(malformed.recalls, { name = "an id " .. name, says = "has no proper id",
    rule = { answer = { code = 0, ext = { msgId = text } } } })
end

-- Bodies that are said to be stored messages.
---@type { name: string, body: string }[]
malformed.stored = {
  { name = "nothing", body = "" },
  { name = "half a number", body = "\0\0" },
  { name = "a length of 0", body = ("\0"):rep(100) },
  { name = "a negative length", body = ("\255"):rep(100) },
  { name = "a length beyond the body", body = u32(1000) .. ("x"):rep(100) },
  { name = "a whole length and nonsense", body = u32(100) .. ("x"):rep(96) },
  { name = "the right magic and nonsense",
    body = u32(100) .. "\218\163\32\167" .. ("\127"):rep(92) },
  { name = "a megabyte", body = u32(2 ^ 20) .. ("\218\163\32\167"):rep(2 ^ 18 - 1) },
}

-- What a broker may ask its clients, with fields and bodies that no broker sends.
---@type table[]
malformed.requests = {}
for _, code in ipairs { 39, 326, 40, 220, 221, 307, 309, 0, -1, 9999 } do
  for _, body in ipairs { "", "{", ("\0"):rep(200), u32(2000) .. ("\255"):rep(100) } do
    table.insert(malformed.requests, { code = code, body = body, ext = { tranStateTableOffset = "x",
      commitLogOffset = ("9"):rep(30), msgId = "", transactionId = "\1\2", topic = ("t"):rep(300),
      properties = "CORRELATION_ID\1\2\1\1", sysFlag = "x", bornHost = "nowhere",
      storeTimestamp = "-" } })
  end
end

-- Bodies of a name server's answer that are no usable route.
---@type { name: string, body: string }[]
malformed.routes = {
  { name = "nothing", body = "" },
  { name = "half a route", body = '{"brokerDatas":[{"brokerAddrs":{"0":"127.0' },
  { name = "no object", body = "[]" },
  { name = "null", body = "null" },
  { name = "no brokers", body = '{"queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":1,'
    .. '"writeQueueNums":1}],"brokerDatas":[]}' },
  { name = "no queues", body = '{"queueDatas":[],"brokerDatas":[{"brokerName":"a",'
    .. '"brokerAddrs":{"0":"127.0.0.1:1"}}]}' },
  { name = "queues that are a text", body = '{"queueDatas":"x","brokerDatas":[]}' },
  { name = "a number of queues beyond all", body = '{"queueDatas":[{"brokerName":"a","perm":6,'
    .. '"readQueueNums":2147483647,"writeQueueNums":2147483647}],"brokerDatas":['
    .. '{"brokerName":"a","brokerAddrs":{"0":"127.0.0.1:1"}}]}' },
  { name = "a negative number of queues", body = '{"queueDatas":[{"brokerName":"a","perm":6,'
    .. '"readQueueNums":-1,"writeQueueNums":-1}],"brokerDatas":[{"brokerName":"a",'
    .. '"brokerAddrs":{"0":"127.0.0.1:1"}}]}' },
  { name = "an address that is none", body = '{"queueDatas":[{"brokerName":"a","perm":6,'
    .. '"readQueueNums":1,"writeQueueNums":1}],"brokerDatas":[{"brokerName":"a",'
    .. '"brokerAddrs":{"0":"here"}}]}' },
  { name = "an order that is none", body = '{"orderTopicConf":"a:x;;:;b","queueDatas":['
    .. '{"brokerName":"a","perm":6,"readQueueNums":1,"writeQueueNums":1}],"brokerDatas":['
    .. '{"brokerName":"a","brokerAddrs":{"0":"127.0.0.1:1"}}]}' },
  { name = "a nest", body = ('{"x":'):rep(100000) },
  { name = "megabytes",
    body = '{"queueDatas":[' .. ('{"brokerName":"abc","perm":6},'):rep(200000) },
}

return malformed
