--- Random messages that can be made again: message `index` of a seed is always the same one, so the
--- script that sends them and the spec that reads them back need not share more than the seed.

local bit = require "bit"
local ffi = require "ffi"

local messages = {}

--- What every message carries so that it can be told which one it is.
messages.INDEX = "index"

local LONGEST_BODY = 65536
local words = ffi.new("int32_t[?]", LONGEST_BODY / 4)

--- A xorshift generator: fast when compiled, and the same everywhere.
---@param seed integer
---@return fun(limit: integer): integer below gives an integer from 0 to limit - 1
---@return fun(length: integer): string bytes gives that many random bytes
local function generator(seed)
  local state = bit.tobit(seed)
  if state == 0 then state = 1 end

  local function step()
    state = bit.bxor(state, bit.lshift(state, 13))
    state = bit.bxor(state, bit.rshift(state, 17))
    state = bit.bxor(state, bit.lshift(state, 5))
    return state
  end

  -- Neighbours' seeds differ in few bits, and it takes some steps until that no longer shows.
  for _ = 1, 16 do step() end

  local function below(limit)
    return bit.band(step(), 0x7fffffff) % limit
  end

  local function bytes(length)
    for i = 0, math.ceil(length / 4) - 1 do words[i] = step() end
    return ffi.string(words, length)
  end

  return below, bytes
end

--- UTF-8 of a code point.
local function utf8(code)
  if code < 0x80 then return string.char(code) end
  local tail = string.char(0x80 + code % 64)
  code = math.floor(code / 64)
  if code < 0x20 then return string.char(0xC0 + code) .. tail end
  tail = string.char(0x80 + code % 64) .. tail
  code = math.floor(code / 64)
  if code < 0x10 then return string.char(0xE0 + code) .. tail end
  return string.char(0xF0 + math.floor(code / 64), 0x80 + code % 64) .. tail
end

-- Bytes 1 and 2 separate properties on the wire, every other ASCII character may stand in one.
local every_ascii = string.char(0)
for code = 3, 127 do every_ascii = every_ascii .. string.char(code) end
local every_printable = ""
for code = 33, 126 do every_printable = every_printable .. string.char(code) end

--- Up to `longest` random characters, at least one: ASCII out of `ascii`, accents, Chinese, emoji.
local function text(below, ascii, longest)
  local parts = {}
  for i = 1, 1 + below(longest) do
    local kind = below(6)
    if kind == 0 then parts[i] = utf8(0x4E00 + below(0x5000))
    elseif kind == 1 then parts[i] = utf8(0x1F300 + below(0x350))
    elseif kind == 2 then parts[i] = utf8(0xA1 + below(0x600))
    else
      local at = 1 + below(#ascii)
      parts[i] = ascii:sub(at, at)
    end
  end
  return table.concat(parts)
end

--- Half of the bodies are short, but every power of two is as likely as the next.
local function body_length(index, below)
  if index == 1 then return 1 end
  if index == 2 then return LONGEST_BODY end
  return 1 + below(bit.lshift(1, below(17)))
end

--- Message `index` of a seed, as `producer:send` takes it (without a topic).
---@param seed integer
---@param index integer from 1
---@return table message
function messages.make(seed, index)
  local below, bytes = generator(seed * 1000003 + index * 7919)
  local message = {
    body = bytes(body_length(index, below)),
    flag = below(2) == 0 and below(0x7fffffff) or -1 - below(0x7fffffff),
    properties = { [messages.INDEX] = tostring(index) },
  }
  if below(8) > 0 then
    message.tags = below(16) == 0 and every_printable or text(below, every_printable, 20)
  end
  local keys = {}
  for i = 1, below(4) do keys[i] = text(below, every_printable, 20) end
  if #keys == 1 and below(2) == 0 then
    message.keys = keys[1]
  elseif #keys > 0 then
    message.keys = keys
  end
  for i = 1, below(6) do
    -- RocketMQ refuses a value of nothing but blanks, so each ends with a digit.
    local value = (below(8) == 0 and every_ascii or text(below, every_ascii, 60)) .. below(10)
    message.properties["p" .. i .. text(below, every_ascii, 10)] = value
  end
  return message
end

return messages
