--- What a producer says of names that it does not know. Many come from Java, where most of them are spelled
--- otherwise; docs/messages.md has all methods of DefaultMQProducer.
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

local from_java = {}

---The sentence about a method that a class of producers does not have.
---@param class table
---@param name any
---@return string
function from_java.method(class, name)
  local text = ("producer: unknown name '%s'"):format(tostring(name))
  if type(name) ~= "string" then return text end
  if here[name] then return ("%s, did you mean '%s'?"):format(text, here[name]) end
  if name == "start" then return text .. "; a producer has started when it is made" end
  if name:find "^[sg]et%u" or name:find "^is%u" or name == "addRetryResponseCode" then
    return text .. "; settings are given to what makes the producer, producer:settings() shows them"
  end
  return naming.unknown("producer", name, known_names(class))
end

local NO_THREADS = "there are no threads: callbacks and checks run as tasks. Leave it out"
local HOOKS = "producer:add_hook adds hooks"
local TRANSACTIONS = "rocketmq.transaction_producer takes it as check, send_in_transaction as "
  .. "execute"
local ACL = "rocketmq.hook.acl signs requests; producer:add_hook adds it"

-- Settings that Java's producer has, or others, and what there is in their place.
local instead = {
  accessKey = ACL,
  acl = ACL,
  asyncSenderExecutor = NO_THREADS,
  callbackExecutor = NO_THREADS,
  check = "rocketmq.transaction_producer takes it",
  checkThreadPoolMinSize = NO_THREADS,
  clientCallbackExecutorThreads = NO_THREADS,
  credentials = ACL,
  customizedTraceTopic = "it is trace_topic",
  enableBackpressureForAsyncMode = "it is always so; its limits are max_inflight and "
    .. "max_inflight_bytes",
  executorService = NO_THREADS,
  hook = HOOKS,
  hooks = HOOKS,
  namespace = "write names of topics and groups with it: NAMESPACE%Orders",
  namespaceV2 = "a hook's before_request can: ctx.ext.nsd, ctx.ext.ns = \"true\", \"NAMESPACE\"",
  rpcHook = HOOKS,
  sendMessageWithVIPChannel = "a broker's second port is not used. Leave it out",
  topics = "producer:queues(topic) looks for a topic's route before the first send",
  transactionCheckListener = TRANSACTIONS,
  transactionListener = TRANSACTIONS,
  unitName = "units have no names here. Leave it out",
  useTLS = "there is no TLS yet",
  vipChannelEnabled = "a broker's second port is not used. Leave it out",
}

-- The same for a name in Lua's spelling: use_tls and useTLS.
local function letters(name) return name:gsub("_", ""):lower() end

local by_letters = {}
for name, text in pairs(instead) do by_letters[letters(name)] = text end

---The sentence about the first setting that there is not here, when it is one of Java's.
---@param settings table<string, any>
---@return string?
function from_java.setting(settings)
  local found
  for name in pairs(settings) do
    local is_known = type(name) == "string" and by_letters[letters(name)]
    if is_known and (not found or name < found) then found = name end
  end
  return found and ("unknown setting '%s': %s"):format(found, by_letters[letters(found)])
end

return from_java
