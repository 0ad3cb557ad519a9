--- What the ids of messages say: `result.msg_id` (the unique key, made by the producer) and
--- `result.offset_msg_id` (where a broker stored the message).
local ffi = require "ffi"
local wire = require "rocketmq.wire"

local M = {}

--- Fields of the other kind are nil.
---@class rocketmq.MessageId
---@field kind "unique"|"offset"
---@field host string the IP address: of the producer in a unique key, of the broker in an offset id
---@field port? integer the broker's
---@field offset? integer where the message begins in the broker's commit log, in bytes; from 2^53
--- on an int64_t cdata
---@field pid? integer the low 16 bits of the producer's process id
---@field tag? integer 32 bits that tell apart processes with the same address and process id
---@field time? number when the id was made, in milliseconds since 1970. The id knows the time since
--- its month began, where it was made: the answer is right for one that was made within the last
--- month and in this time zone
---@field counter? integer 16 bits, one more with each id

local int64 = ffi.typeof "int64_t"

local SHORT, LONG = 32, 56 -- hex digits with an IPv4 and an IPv6 address

-- Milliseconds since 1970 at which a local month began; `back` months before the present one.
local function month_start(now, back)
  local date = os.date("*t", math.floor(now / 1000))
  return os.time { year = date.year, month = date.month - back, day = 1, hour = 0 } * 1000
end

-- Another machine's clock may be ahead by so many milliseconds.
local SLACK = 600000

-- The last moment, not after now, that lies so far into a month.
local function time_in_month(since, now)
  local this = month_start(now, 0) + since
  return this <= now + SLACK and this or month_start(now, 1) + since
end

local function number(id, first, last) return tonumber(id:sub(first, last), 16) end

local function read_unique(id, host, now)
  local at = #id - 24 -- the last digit of the address
  return {
    kind = "unique",
    host = host,
    pid = number(id, at + 1, at + 4),
    tag = number(id, at + 5, at + 12),
    time = time_in_month(number(id, at + 13, at + 20), now),
    counter = number(id, at + 21, at + 24),
  }
end

local function read_offset(id, host, port)
  local high, low = number(id, #id - 15, #id - 8), number(id, #id - 7, #id)
  local offset = high * 2 ^ 32 + low
  if offset >= 2 ^ 53 then offset = int64(high) * int64(2 ^ 32) + int64(low) end
  return { kind = "offset", host = host, port = port, offset = offset }
end

local function refuse(id, why, ...)
  return nil, ("'%s' is no message id: " .. why):format(id:sub(1, 80):gsub("%c", "?"), ...)
end

---Takes a message id apart. The two kinds look alike; an offset id has a port where a unique key has
---a process id, so its first two bytes there are zero. A unique key whose process id is a multiple of
---65536 is the only one that looks like an offset id: say `kind` where that matters.
---@param id string
---@param kind? "unique"|"offset" what it is known to be
---@return rocketmq.MessageId? parts
---@return string? err why it is none
function M.read(id, kind)
  if type(id) ~= "string" then error("message_id: the id must be a string, not " .. type(id), 2) end
  if kind ~= nil and kind ~= "unique" and kind ~= "offset" then
    error(("message_id: the kind must be 'unique' or 'offset', not '%s'"):format(tostring(kind)), 2)
  end
  if #id ~= SHORT and #id ~= LONG then
    return refuse(id, "it has %d characters, not %d or %d", #id, SHORT, LONG)
  elseif id:find "%X" then
    return refuse(id, "it has '%s' at position %d, which is no hex digit",
      id:match("%X"):gsub("[%c\127-\255]", "?"), (id:find "%X"))
  end
  local address_end = #id - 24
  local looks_stored = id:sub(address_end + 1, address_end + 4) == "0000"
  local host = wire.decode_offset_id(id:sub(1, address_end) .. ("0"):rep(24)).host
  if kind == "unique" or kind == nil and not looks_stored then
    local seconds, microseconds = require("luv").gettimeofday()
    return read_unique(id, host, seconds * 1000 + math.floor(microseconds / 1000))
  elseif not looks_stored then
    return refuse(id, "an offset id has a port here, which %s is not",
      id:sub(address_end + 1, address_end + 8))
  elseif id:sub(-16, -16):find "[89A-Fa-f]" then
    return refuse(id, "its offset %s is negative", id:sub(-16))
  end
  return read_offset(id, host, number(id, address_end + 5, address_end + 8))
end

return M
