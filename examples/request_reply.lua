-- Asks questions with messages, and answers them with messages.
--
--     ./run examples/request_reply.lua
--
-- In a real cluster a consumer of the topic gets the questions. Here a mock of the script's own
-- hands them to it instead; what is done with them then, and all of the asking, is the same.

local rocketmq = require "rocketmq"

local mock = rocketmq.mock { topics = { Questions = 4 } }

-- The side that answers: a reply is a message that knows its way back, and is sent like any other.
local answering = rocketmq.producer { group = "answers", namesrv = mock.namesrv }

mock:reply("Questions", function(message)
  local answer = assert(rocketmq.reply(message, message.body:upper() .. "!"))
  answer.tags = "polite"
  assert(answering:send(answer))
end)

-- The side that asks.
local asking = rocketmq.producer { group = "questions", namesrv = mock.namesrv }

local function ask(question)
  local reply, err = asking:request({ topic = "Questions", body = question }, { timeout = 3000 })
  print(("%s -> %s"):format(question, reply and reply.tags .. ": " .. reply.body or err))
end

ask "who is there?"

-- Several at a time: each gets its own reply.
rocketmq.gather {
  function() ask "one" end,
  function() ask "two" end,
}

-- With a callback instead of waiting.
local done
assert(asking:request_async({ topic = "Questions", body = "later?" }, function(reply, err)
  print("later? -> " .. (reply and reply.body or tostring(err)))
  done = true
end))
while not done do rocketmq.sleep(1) end

-- Only a request can be replied to.
local _, err = rocketmq.reply({ properties = {} }, "nobody asked")
print(err.message)

asking:shutdown()
answering:shutdown()
mock:close()
