--- Sends the random messages of a seed through a script, as a user would, and compares what Java reads with
--- what was sent and with the broker's answers.

local messages = require "spec.real.messages"
local readback = require "spec.real.readback"
local support = require "spec.real.support"

-- Runs the script; gives what the broker answered, by index.
local function send(script, arguments, count, at)
  local answers = {}
  support.rmqlua(script, arguments, function(line)
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

--- Sends messages 1 to `count` of `seed` to the topic and reads them back, each once.
---@param server support.Server
---@param topic string
---@param seed integer
---@param count integer
---@param script string path; it prints a line for each message, in columns divided by tabs: index, status,
--- unique key, offset id, broker, queue, queue offset
---@param ... string|number its arguments after name server, topic, seed and count
return function(server, topic, seed, count, script, ...)
  local function at(index) return ("seed %d, message %s"):format(seed, tostring(index)) end
  local answers = send(script, { server.namesrv, topic, seed, count, ... }, count, at)
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
