-- Sends a message once and shows it in several light queues (LMQ) besides its topic.
--
--     ./run examples/light_queues.lua
--
-- A real broker does that when its enableLmq and enableMultiDispatch are true.

local rocketmq = require "rocketmq"

local producer = rocketmq.producer { group = "chat" }

-- One room, a queue for each phone in it. %LMQ% in front of a name may stand there or not.
local function say(text, phones)
  local result, err = producer:send { topic = "Chat", body = text, lmq = phones }
  print(("%s: %s"):format(text, result and result.status or err.message))
  return result
end

local result = say("to two phones", { "phone-1", "%LMQ%phone-2" })
say("to one phone", "phone-1")

-- Where brokers read which queues a message is for.
local message = assert(producer:view_message(result.offset_msg_id))
print(message.properties.INNER_MULTI_DISPATCH)

-- A light queue is named with care: commas stand between them.
say("to nobody", { "phone-1,phone-2" })

producer:shutdown()
