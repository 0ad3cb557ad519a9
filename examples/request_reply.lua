-- Asks a question with a message, and gets the answer as a message.
--
--     ./run examples/request_reply.lua
--
-- The mock echoes what it is asked. In a real cluster somebody must consume the topic and reply.
local rocketmq = require "rocketmq"

local producer = rocketmq.producer { group = "example" }

local function ask(question)
  local reply, err = producer:request({ topic = "Questions", body = question }, { timeout = 3000 })
  print(("%s -> %s"):format(question, reply and reply.body or err))
end

ask "who is there?"

-- Several at a time: each gets its own reply.
rocketmq.gather {
  function() ask "one" end,
  function() ask "two" end,
}

-- With a callback instead of waiting.
local done
assert(producer:request_async({ topic = "Questions", body = "later?" }, function(reply, err)
  print("later? -> " .. (reply and reply.body or tostring(err)))
  done = true
end))
while not done do rocketmq.sleep(1) end

producer:shutdown()
