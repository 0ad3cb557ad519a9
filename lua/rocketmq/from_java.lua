--- What a producer says of a name that it does not have. Many come from Java, where most of them are spelled
--- otherwise; docs/messages.md has all of DefaultMQProducer's.
local naming = require "rocketmq.naming"

-- Those that are not found by their spelling.
local here = {
  close = "shutdown",
  earliestMsgStoreTime = "earliest_time",
  fetchPublishMessageQueues = "queues",
  recallMessage = "recall",
  registerCheckForbiddenHook = "add_hook",
  registerEndTransactionHook = "add_hook",
  registerSendMessageHook = "add_hook",
  sendMessage = "send",
  sendMessageInTransaction = "send_in_transaction",
  setNamesrvAddr = "set_namesrv",
  stop = "shutdown",
}

local FIELDS = { "group", "namesrv", "client_id" }

-- What scripts may call, in the order of the alphabet.
local function known_names(class)
  local known = { unpack(FIELDS) }
  for name in pairs(class) do
    if not name:find "^__" and name ~= "replace_loaded_hooks" then known[#known + 1] = name end
  end
  table.sort(known)
  return known
end

---The sentence about a name that a class of producers does not have.
---@param class table
---@param name any
---@return string
return function(class, name)
  local text = ("producer: unknown name '%s'"):format(tostring(name))
  if type(name) ~= "string" then return text end
  if here[name] then return ("%s, did you mean '%s'?"):format(text, here[name]) end
  if name == "start" then return text .. "; a producer has started when it is made" end
  if name:find "^[sg]et%u" or name:find "^is%u" or name == "addRetryResponseCode" then
    return text .. "; settings are given to what makes the producer, producer:settings() shows them"
  end
  return naming.unknown("producer", name, known_names(class))
end
