--- What the rules do to answers and connections.
local bit = require "bit"
local fields = require "rocketmq.mock.fields"
local plugins = require "rocketmq.native.plugins"
local rules = require "rocketmq.mock.rules"
local task = require "rocketmq.native.task"
local wire = require "rocketmq.wire"

local faults = {}

local RESPONSE, ONEWAY = 1, 2

-- How servers of other protocols open, or refuse what they do not understand.
local speech = {
  http = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
  -- SETTINGS, then GOAWAY with PROTOCOL_ERROR.
  http2 = "\0\0\0\4\0\0\0\0\0" .. "\0\0\8\7\0\0\0\0\0\0\0\0\0\0\0\0\1",
  ["http2-preface"] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0",
  -- A fatal alert of TLS 1.2: unexpected_message.
  tls = "\21\3\3\0\2\2\10",
  -- The beginning of a handshake.
  ["tls-handshake"] = "\22\3\1\0\5\1\0\0\1\0",
}

---The frame of an answer. One that cannot be sent, such as one with bytes that no text has, which a client
---brought, is an error's in its place: no answer ends the process.
---@param command table the request
---@param answer rocketmq.mock.Answer
---@param version integer of the server
---@param opaque integer? instead of the request's
---@return string frame
function faults.encode(command, answer, version, opaque)
  local whole = {
    serialize = "json",
    code = answer.code,
    opaque = opaque or command.opaque,
    flag = RESPONSE,
    language = "JAVA",
    version = version,
    remark = answer.remark,
    ext = answer.ext,
    body = answer.body,
  }
  local ok, frame = pcall(wire.encode, whole)
  if ok then return frame end
  whole.code, whole.ext, whole.body = wire.response.SYSTEM_ERROR, nil, nil
  whole.remark = "mock: the answer cannot be sent: " .. frame:gsub("^.*wire%.encode: ", "")
  return wire.encode(whole)
end

---Whether a request asks for no answer.
---@param command table
---@return boolean
function faults.is_oneway(command)
  return bit.band(command.flag, ONEWAY) ~= 0
end

---What a rule makes of the usual answer: the rule's own, with the ext fields of the usual one
---when the request was carried out.
---@param rule rocketmq.mock.Rule
---@param usual rocketmq.mock.Answer?
---@return rocketmq.mock.Answer?
function faults.changed_answer(rule, usual)
  if not rule.answer then return usual end
  local ext = {}
  for name, value in pairs(usual and usual.code == 0 and usual.ext or {}) do ext[name] = value end
  for name, value in pairs(rule.answer.ext or {}) do ext[name] = value end
  return { code = rule.answer.code, remark = rule.answer.remark, ext = next(ext) and ext or nil,
    body = rule.answer.body or usual and usual.code == 0 and usual.body or nil }
end

local function big_endian(number)
  return string.char(math.floor(number / 2 ^ 24), math.floor(number / 2 ^ 16) % 256,
    math.floor(number / 2 ^ 8) % 256, number % 256)
end

local CHUNK = 65536

local function random_bytes(random, count)
  local chunks, bytes = {}, {}
  for first = 1, count, CHUNK do
    local length = math.min(CHUNK, count - first + 1)
    for index = 1, length do bytes[index] = string.char(random(256)) end
    chunks[#chunks + 1] = table.concat(bytes, "", 1, length)
  end
  return table.concat(chunks)
end

-- No request of a client has this opaque while it has fewer than 2^30 under way.
local function wrong_opaque(command)
  return bit.bxor(command.opaque, 0x40000000)
end

-- The frame of an answer as the rule wants it, again and again.
local function changed_frame(rule, frame)
  if rule.length then frame = big_endian(rule.length) .. frame:sub(5) end
  return frame:rep(1 + math.min(rule.duplicate, math.floor(rules.MOST_BYTES / #frame)))
end

-- `count` parts of about the same length, none empty.
local function in_parts(bytes, count)
  local parts, from = {}, 1
  count = math.min(count, #bytes)
  for number = 1, count do
    local to = math.floor(#bytes * number / count)
    parts[number], from = bytes:sub(from, to), to + 1
  end
  return parts
end

---Puts bytes as a rule wants them: cut, and in parts.
---@param rule rocketmq.mock.Rule
---@param connection rocketmq.mock.Connection
---@param bytes string
function faults.put(rule, connection, bytes)
  if rule.cut then bytes = bytes:sub(1, rule.cut) end
  if #bytes == 0 then return end
  if not rule.split then return connection:put(bytes) end
  connection:put_slowly(in_parts(bytes, rule.split), rule.pause)
end

---Calls a function of the script's. Raises, without a position, a text that says whose it is when it
---does.
---@param what string "rule: the function 'raw'"
---@param fn function
---@param ... any
---@return any
function faults.call(what, fn, ...)
  local ok, value = pcall(fn, ...)
  if ok then return value end
  error(("%s failed: %s"):format(what, task.error_text(value)), 0)
end

-- A copy of a request, for a function that may change it.
local function copy_of(command)
  if not command then return nil end
  local copy, ext = {}, {}
  for name, value in pairs(command) do copy[name] = value end
  for name, value in pairs(command.ext) do ext[name] = value end
  copy.ext = ext
  return copy
end

-- The bytes that a rule sends, or nil.
local function spoken(rule, command)
  if type(rule.raw) == "function" then
    local bytes = faults.call("rule: the function 'raw'", rule.raw, copy_of(command))
    if bytes == nil or type(bytes) == "string" then return bytes end
    error("rule: the function 'raw' must give a string of bytes or nil, not " .. fields.show(bytes),
      0)
  end
  if rule.raw then return rule.raw end
  if rule.garbage then return random_bytes(rule.random, rule.garbage) end
  return speech[rule.speak]
end

-- All that a rule sends, or nil for nothing.
local function bytes_of(rule, frame, command)
  local bytes = spoken(rule, command)
  if bytes or not command then return bytes end
  bytes = frame(rule.wrong_opaque and wrong_opaque(command) or nil)
  return bytes and changed_frame(rule, bytes)
end

---Logs what a function of the script's has raised, so that it does not end the process, which may be
---serving others.
---@param at string whose: "broker-a", ...
---@param err any
---@return string why
function faults.report(at, err)
  local why = task.error_text(err)
  plugins.log("error", ("mock: %s: %s"):format(at, why))
  return why
end

---Carries a rule out: sends what it sends, and ends the connection if it does.
---@param rule rocketmq.mock.Rule
---@param connection rocketmq.mock.Connection
---@param frame fun(opaque: integer?): string? the answer's frame, the request's opaque in it or this one; nil
--- when there is none
---@param command table? the request; none when the connection was just made
function faults.act(rule, connection, frame, command)
  if rule.sends then
    local ok, bytes = pcall(bytes_of, rule, frame, command)
    if not ok then -- its own function has failed; who waits for an answer reads there why
      rule.failed = faults.report("connection #" .. connection.number, bytes)
      bytes = command and not faults.is_oneway(command) and faults.encode(command,
        { code = wire.response.SYSTEM_ERROR, remark = rule.failed }, 0)
    end
    if bytes then faults.put(rule, connection, bytes) end
  end
  if rule.ending then connection:finish(rule.ending) end
  if rule.deaf then connection:pause_reading(rule.deaf) end
end

return faults
