--- The records of message trace, as they stand in the messages of a trace topic.
local fields = require "rocketmq.mock.fields"

local FIELD, RECORD = "\1", "\2"
local TOPIC = "RMQ_SYS_TRACE_TOPIC"

---One record. What a producer does not know of it is nil.
---@class rocketmq.mock.Trace
---@field kind "Pub"|"EndTransaction"|"Recall" or what else it says
---@field timestamp integer milliseconds since 1970
---@field region string
---@field group string of the producer
---@field topic string of the message that it is about
---@field msg_id string?
---@field tags string?
---@field keys string? with spaces between several
---@field store_host string? the broker's address
---@field body_length integer? of a Pub
---@field cost integer? of a Pub, in milliseconds
---@field msg_type string? "Normal_Msg", "Trans_Msg_Half", "Trans_msg_Commit", "Delay_Msg", "Order_Msg"
---@field offset_msg_id string? of a Pub
---@field success boolean? of a Pub and a Recall
---@field transaction_id string? of an EndTransaction
---@field state string? of an EndTransaction: "COMMIT_MESSAGE", "ROLLBACK_MESSAGE", "UNKNOW"
---@field from_check boolean? of an EndTransaction
---@field carrier rocketmq.mock.Message the message that the record came in

local layouts = {
  Pub = { "timestamp", "region", "group", "topic", "msg_id", "tags", "keys", "store_host",
    "body_length", "cost", "msg_type", "offset_msg_id", "success" },
  EndTransaction = { "timestamp", "region", "group", "topic", "msg_id", "tags", "keys",
    "store_host", "msg_type", "transaction_id", "state", "from_check" },
  Recall = { "timestamp", "region", "group", "topic", "msg_id", "success" },
}

local types = { [0] = "Normal_Msg", "Trans_Msg_Half", "Trans_msg_Commit", "Delay_Msg", "Order_Msg" }

local readers = {
  timestamp = tonumber,
  body_length = tonumber,
  cost = tonumber,
  msg_type = function(text) return types[tonumber(text)] end,
  success = function(text) return text == "true" end,
  from_check = function(text) return text == "true" end,
}

local function split(text, separator)
  local parts = {}
  for part in (text .. separator):gmatch("(.-)" .. separator) do parts[#parts + 1] = part end
  return parts
end

local function read(text, carrier)
  local parts = split(text, FIELD)
  local record = { kind = parts[1], carrier = carrier }
  for number, name in ipairs(layouts[record.kind] or {}) do
    local part = parts[number + 1]
    local reader = readers[name]
    if reader and part then
      record[name] = reader(part)
    elseif part ~= "null" then
      record[name] = part
    end
  end
  return record
end

---@class rocketmq.Mock
local methods = {}

---The records of message trace that were stored, in the order in which they came.
---@param topic string? the trace topic; default RMQ_SYS_TRACE_TOPIC
---@return rocketmq.mock.Trace[]
function methods:traces(topic)
  fields.argument("traces", "topic", "string|nil", topic)
  local records = {}
  for _, message in ipairs(self:messages(topic or TOPIC)) do
    for text in message.body:gmatch("[^" .. RECORD .. "]+") do
      records[#records + 1] = read(text, message)
    end
  end
  return records
end

---@type rocketmq.mock.Part
return { mock = methods }
