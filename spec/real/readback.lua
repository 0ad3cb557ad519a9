--- Compares messages as the Java client reads them with what was sent.
---
---     local readback = require "spec.real.readback"
---     readback.compare(read, message, answer, where)
local cjson = require "cjson"
local support = require "spec.real.support"

local readback = {}

-- Properties that the client or the broker adds to those of the message.
local added = {
  KEYS = true, TAGS = true, UNIQ_KEY = true, WAIT = true, CLUSTER = true, MSG_REGION = true,
  TRACE_ON = true, MIN_OFFSET = true, MAX_OFFSET = true,
}

--- Raises with the place and what is wrong unless it holds.
---@param holds any
---@param where string which message of which seed
---@param what string
function readback.check(holds, where, what)
  if not holds then error(("%s: %s"):format(where, what), 0) end
end

---@param actual any cjson.null counts as nil
---@param expected any
---@param where string
---@param what string what it is
function readback.equal(actual, expected, where, what)
  if actual == cjson.null then actual = nil end
  if actual ~= expected then
    readback.check(false, where,
      ("%s is %q, not %q"):format(what, tostring(actual), tostring(expected)))
  end
end

local function compare_properties(properties, expected, where, more)
  for name, value in pairs(expected) do
    readback.equal(properties[name], value, where, ("property %q"):format(name))
  end
  for name in pairs(properties) do
    readback.check(expected[name] or added[name] or more[name], where,
      ("property %q was never sent"):format(name))
  end
end

--- Compares one message as Drain prints it with the one that was sent.
---@param read table
---@param message rocketmq.Message
---@param answer table what the broker said of it, by Drain's names
---@param where string
---@param more? table<string, true> properties that may be there besides the message's
function readback.compare(read, message, answer, where, more)
  local keys = message.keys
  if type(keys) == "table" then keys = table.concat(keys, " ") end
  readback.check(support.base64_decode(read.body) == message.body, where, "the body differs")
  readback.equal(read.tags, message.tags, where, "tags")
  readback.equal(read.keys, keys, where, "keys")
  readback.equal(read.flag, message.flag, where, "flag")
  compare_properties(read.properties, message.properties, where, more or {})
  for name, value in pairs(answer) do readback.equal(read[name], value, where, name) end
end

--- Reads topics with the Java client, from their beginnings.
---@param server support.Server
---@param topics string[]
---@param expect integer waits until there are so many messages
---@param each fun(read: table) a message as Drain prints it
---@param properties? table<string, string|number> of the Java program
function readback.drain(server, topics, expect, each, properties)
  local all = { expect = expect }
  for name, value in pairs(properties or {}) do all[name] = value end
  support.java("Drain", { server.namesrv, unpack(topics) }, function(line)
    each(cjson.decode(line))
  end, all)
end

return readback
