-- Makes a topic, asks for the offsets of its queues, and looks for messages that are stored.
--
--     ./run examples/admin.lua
--
-- No name server is named here: that of --namesrv is used, or of NAMESRV_ADDR, or else the mock.

local rocketmq = require "rocketmq"

local producer = rocketmq.producer { group = "admin" }

-- On every broker; when this returns, the name server shows the topic, and what is sent next finds it.
assert(producer:create_topic { topic = "Parcels", queues = 1 })
local queues = assert(producer:queues "Parcels")
print(("%d queues"):format(#queues))

local results = {}
for i = 1, 4 do
  results[i] = assert(producer:send {
    topic = "Parcels",
    body = "parcel " .. i,
    keys = { "parcel-" .. i, i % 2 == 0 and "oslo" or "rome" },
  })
end

-- By the id that the broker gave, and by the one that was made here.
print(assert(producer:view_message(results[1].offset_msg_id)).body)

-- A broker counts a message in its queue, and writes its index of keys, a moment after it has stored it.
local function find(key, wanted)
  for _ = 1, 100 do
    local messages = assert(producer:query_message("Parcels", key))
    if #messages == wanted then return messages end
    rocketmq.sleep(100)
  end
  error("the broker has not indexed " .. key)
end

for _, message in ipairs(find("oslo", 2)) do
  print(("oslo: %s, keys %s"):format(message.body, table.concat(message.keys, " ")))
end
print(assert(producer:view_message("Parcels", results[4].msg_id)).body)

for _, queue in ipairs(queues) do
  local min, max = assert(producer:min_offset(queue)), assert(producer:max_offset(queue))
  print(("%s: offsets %d to %d"):format(tostring(queue), min, max))
end

-- When the first message of a queue was stored, and which one is the first that was stored then or
-- later; a time after the last one gives the offset of the message that comes next (4.9.2: of the last).
for _, queue in ipairs(queues) do
  local time = assert(producer:earliest_time(queue))
  local first = assert(producer:search_offset(queue, time))
  local after = assert(producer:search_offset(queue, time + 3600 * 1000))
  print(("%s: from the first on %d, an hour later %d"):format(tostring(queue), first, after))
end

-- What is not there is an error that says so.
local message, err = producer:view_message("Parcels", ("F"):rep(32))
if not message then print(err) end

producer:shutdown()
