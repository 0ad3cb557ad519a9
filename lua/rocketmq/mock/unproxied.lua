--- What a mock has and a proxy has not, because the servers behind it decide that; and what does it there.
local unproxied = {}

local BROKER = "set it in the real broker's configuration"
local NAME_SERVER = "a rule answers otherwise: { at = 'namesrv', code = 'GET_ROUTEINFO_BY_TOPIC', "
  .. "answer = { code = 0, body = ... } }"
local TOPIC = "mqadmin updateTopic makes and changes topics there"

-- Fields of a description.
local options = {
  brokers = "the real name servers tell which there are",
  topics = TOPIC,
  auto_create = BROKER .. ": autoCreateTopicEnable",
  default_topic = BROKER .. ": defaultTopicQueueNums, autoCreateTopicEnable",
  default_topic_queues = BROKER .. ": defaultTopicQueueNums",
  namesrvs = "name several in 'proxy', separated by ';'",
  cluster = BROKER .. ": brokerClusterName",
  max_message_size = BROKER .. ": maxMessageSize",
  version = "answers have that of the real servers",
  transaction_timeout = BROKER .. ": transactionTimeOut",
  transaction_check_interval = BROKER .. ": transactionCheckInterval",
  transaction_check_max = BROKER .. ": transactionCheckMax",
  timer_scale = "real brokers wait as long as a message says",
  delay_levels = BROKER .. ": messageDelayLevel",
  max_delay = BROKER .. ": timerMaxDelaySec",
  recall = BROKER .. ": recallMessageEnable",
  echo_requests = "a consumer of the topic replies",
}

-- Methods of the mock.
local mock_methods = {
  reply = "a consumer of the topic replies",
  transactions = "mock:requests { code = 'END_TRANSACTION' } has what became of them",
  set_order_conf = "mqadmin updateOrderConf sets it there",
  clients = "mock:requests { code = 'HEART_BEAT' } has what they say, mqadmin producerConnection "
    .. "whom a broker knows",
}

-- Methods of brokers and name servers.
local server_methods = {
  set_perm = "mqadmin wipeWritePerm, or brokerPermission of the real broker, does that there",
  set_topic = TOPIC,
  remove_topic = "mqadmin deleteTopic does that there",
  leave_routes = NAME_SERVER,
  join_routes = NAME_SERVER,
  freeze = NAME_SERVER,
  thaw = NAME_SERVER,
  set_route = NAME_SERVER,
  route = "mqadmin topicRoute shows it",
  request = "the real broker makes such requests; write(require 'rocketmq.wire'.encode { ... }) "
    .. "sends one, whose answer goes to the real broker",
  clients = mock_methods.clients,
  connections_of_group = mock_methods.clients,
  connection_of_client = mock_methods.clients,
}

---Raises, without a position, for a field that says what only a mock has.
---@param given table a description
function unproxied.check(given)
  for name in pairs(given) do
    if options[name] then
      error(("mock: 'proxy' excludes '%s', which the servers behind it decide; %s"):format(name,
        options[name]), 0)
    end
  end
end

-- Raises at the line that called the method.
local function refuse(name, instead)
  error(("%s: a proxy neither decides nor knows this, the servers behind it do; %s"):format(name,
    instead), 3)
end

---Makes methods of the mock raise when it is a proxy.
---@param class table
function unproxied.guard_mock(class)
  for name, instead in pairs(mock_methods) do
    local method = class[name]
    class[name] = function(self, ...)
      if getmetatable(self) == class and self.is_proxy then refuse(name, instead) end
      return method(self, ...)
    end
  end
end

---Gives a proxy the methods of brokers and name servers that it cannot have: they raise.
---@param class table
function unproxied.add(class)
  for name, instead in pairs(server_methods) do
    class[name] = function() refuse(name, instead) end
  end
end

return unproxied
