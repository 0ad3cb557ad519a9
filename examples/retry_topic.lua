-- Gives messages back to the consumers of a group, which could not deal with them, until they have been
-- tried often enough.
--
--     ./run examples/retry_topic.lua
--
-- Consumers of the group "billing" read %RETRY%billing beside their own topics. The broker looks at
-- how often a message was tried, and moves it to %DLQ%billing, the group's dead letters, when that is
-- too often.

local rocketmq = require "rocketmq"

local producer = rocketmq.producer { group = "janitor" }

-- Both properties travel in the header of the send; the message does not keep them.
local function give_back(body, tried, most)
  local result = assert(producer:send {
    topic = "%RETRY%billing",
    body = body,
    properties = { RECONSUME_TIME = tostring(tried), MAX_RECONSUME_TIMES = tostring(most) },
  })
  local message = assert(producer:view_message(result.offset_msg_id))
  print(("%s: tried %d times, in %s"):format(body, message.reconsume_times, message.topic))
end

give_back("invoice 1", 1, 3)
give_back("invoice 2", 2, 3)
give_back("invoice 3", 4, 3)

-- They are texts, as all properties, and must be whole numbers.
local _, err = producer:send {
  topic = "%RETRY%billing", body = "invoice 4", properties = { RECONSUME_TIME = "often" },
}
print(err.message)

producer:shutdown()
