-- What a script sends stands in a real RocketMQ, byte for byte and each message once, as the Java
-- client reads it.

local messages = require "spec.real.messages"
local readback = require "spec.real.readback"
local support = require "spec.real.support"

-- Set it to the seed of a failure to see that failure again.
local seed = tonumber(os.getenv "RMQ_SEED") or os.time() % 1000000

local function at(index) return ("seed %d, message %s"):format(seed, tostring(index)) end

-- Sends through a process of its own, as a user would; gives what the broker answered, by index.
local function send(server, topic, count, tasks)
  local answers = {}
  local arguments = { server.namesrv, topic, seed, count, tasks }
  support.rmqlua("spec/real/send_many.lua", arguments, function(line)
    local index, status, msg_id, offset_msg_id, broker, queue, offset =
      line:match "^(%d+)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t(%d+)\t(%d+)$"
    readback.check(index, at "?", "not a line of the script: " .. line)
    readback.equal(status, "SEND_OK", at(index), "status")
    answers[tonumber(index)] = { msgId = msg_id, offsetMsgId = offset_msg_id, broker = broker,
      queueId = tonumber(queue), queueOffset = tonumber(offset) }
  end)
  readback.equal(#answers, count, at "?", "number of answers")
  return answers
end

local function round_trip(server, topic, count, tasks)
  local answers = send(server, topic, count, tasks)
  local found, times = 0, {}
  readback.drain(server, { topic }, count, function(read)
    local index = tonumber(read.properties[messages.INDEX])
    readback.check(index and answers[index], at(index), "was read but never sent")
    readback.check(not times[index], at(index), "is there twice")
    times[index], found = true, found + 1
    readback.compare(read, messages.make(seed, index), answers[index], at(index))
  end)
  readback.equal(found, count, at "?", "number of messages")
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
