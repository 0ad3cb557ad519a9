-- What a script sends stands in a real RocketMQ, byte for byte and each message once, as the Java
-- client reads it.

local cjson = require "cjson"
local messages = require "spec.real.messages"
local support = require "spec.real.support"

-- Set it to the seed of a failure to see that failure again.
local seed = tonumber(os.getenv "RMQ_SEED") or os.time() % 1000000

-- Properties that the client or the broker adds to those of the message.
local added = {
  KEYS = true, TAGS = true, UNIQ_KEY = true, WAIT = true, CLUSTER = true, MSG_REGION = true,
  TRACE_ON = true, MIN_OFFSET = true, MAX_OFFSET = true,
}

local function check(holds, index, what)
  if not holds then error(("seed %d, message %s: %s"):format(seed, tostring(index), what), 0) end
end

local function check_equal(actual, expected, index, what)
  if actual == cjson.null then actual = nil end
  if actual ~= expected then
    check(false, index, ("%s is %q, not %q"):format(what, tostring(actual), tostring(expected)))
  end
end

-- Sends through a process of its own, as a user would; gives what the broker answered, by index.
local function send(server, topic, count, tasks)
  local answers = {}
  local arguments = { server.namesrv, topic, seed, count, tasks }
  support.rmqlua("spec/real/send_many.lua", arguments, function(line)
    local index, status, msg_id, offset_msg_id, broker, queue, offset =
      line:match "^(%d+)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t(%d+)\t(%d+)$"
    check(index, "?", "not a line of the script: " .. line)
    check_equal(status, "SEND_OK", index, "status")
    answers[tonumber(index)] = { msgId = msg_id, offsetMsgId = offset_msg_id, broker = broker,
      queueId = tonumber(queue), queueOffset = tonumber(offset) }
  end)
  check_equal(#answers, count, "?", "number of answers")
  return answers
end

local function check_properties(properties, expected, index)
  for name, value in pairs(expected) do
    check_equal(properties[name], value, index, ("property %q"):format(name))
  end
  for name in pairs(properties) do
    check(expected[name] or added[name], index, ("property %q was never sent"):format(name))
  end
end

-- Compares one message as Drain printed it with what was sent and with the broker's answer to it.
local function check_message(read, expected, answer, index)
  local keys = expected.keys
  if type(keys) == "table" then keys = table.concat(keys, " ") end
  check(support.base64_decode(read.body) == expected.body, index, "the body differs")
  check_equal(read.tags, expected.tags, index, "tags")
  check_equal(read.keys, keys, index, "keys")
  check_equal(read.flag, expected.flag, index, "flag")
  check_properties(read.properties, expected.properties, index)
  for name, value in pairs(answer) do check_equal(read[name], value, index, name) end
end

local function round_trip(server, topic, count, tasks)
  local answers = send(server, topic, count, tasks)
  local found, times = 0, {}
  support.java("Drain", { server.namesrv, topic }, function(line)
    local read = cjson.decode(line)
    local index = tonumber(read.properties[messages.INDEX])
    check(index and answers[index], index, "was read but never sent")
    check(not times[index], index, "is there twice")
    times[index], found = true, found + 1
    check_message(read, messages.make(seed, index), answers[index], index)
  end, { expect = count })
  check_equal(found, count, "?", "number of messages")
end

for _, server in ipairs(support.servers()) do
  describe("RocketMQ " .. server.version, function()
    it("gives back 10,000 random messages of 16 tasks, each once and byte for byte", function()
      support.java("Admin", { server.namesrv, "createTopic", 8, "RoundTrip" })
      round_trip(server, "RoundTrip", 10000, 16)
    end)

    it("makes a topic that nobody created", function()
      round_trip(server, "MadeBySending", 100, 4)
    end)
  end)
end
