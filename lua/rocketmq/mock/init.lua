--- A RocketMQ cluster for trying scripts: name servers and brokers on ports of this machine, in
--- this process. It answers as RocketMQ does and shows what it was sent; it keeps that in memory
--- only.
---
---     local mock = require "rocketmq.mock" { brokers = 2, topics = { Orders = 4 } }
---     local producer = rocketmq.producer { group = "orders", namesrv = mock.namesrv }
---     mock:rule { at = "broker-a", code = "SEND_MESSAGE_V2", times = 1, answer = { code = 2 } }
---     ...
---     print(#mock:messages("Orders"))
---     mock:close()
local uv = require "luv"
local countdown = require "rocketmq.mock.countdown"
local new_broker = require "rocketmq.mock.broker"
local Journal = require "rocketmq.mock.journal"
local new_name_server = require "rocketmq.mock.namesrv"
local description = require "rocketmq.mock.description"
local fields = require "rocketmq.mock.fields"
local naming = require "rocketmq.naming"
local parts = require "rocketmq.mock.parts"
local new_random = require "rocketmq.mock.random"
local proxy = require "rocketmq.mock.proxy"
local rules = require "rocketmq.mock.rules"
local unproxied = require "rocketmq.mock.unproxied"
local wait = require "rocketmq.mock.wait"
local wire = require "rocketmq.wire"

local DEFAULT_WAIT = 5000
local MASTER = 0
local RULE_SEEDS = 7919 -- between the seeds of one rule and the next

---@class rocketmq.Mock
---@field namesrv string the addresses of its name servers, "127.0.0.1:port;..."
local Mock = {}
Mock.__index = Mock

for name, method in pairs(parts.mock_methods) do Mock[name] = method end

-- Milliseconds since 1970.
local function wall()
  local seconds, microseconds = uv.gettimeofday()
  return seconds * 1000 + math.floor(microseconds / 1000)
end

-- What all servers of one mock share.
local function new_world(plan)
  local started = uv.hrtime()
  local connections = 0
  local world = {
    auto_create = plan.auto_create,
    default_topic = plan.default_topic,
    default_topic_queues = plan.default_topic_queues,
    max_message_size = plan.max_message_size,
    version = plan.version,
    order_confs = plan.order_confs,
    options = plan.options,
    parts = parts,
    timers = {}, -- of `after` that are still to fire
    groups = {}, -- of broker servers, in the order of the description
    rules = {},
    rules_made = 0,
    seed = plan.seed,
    host = plan.host, -- on which all servers listen
    port = plan.port, -- of the first name server, 0: any
    noted = function() end, -- told the journal's entry of each request
    refused = function() end, -- told a server's name, a connection and why what it brought is no request
    trouble = function() end, -- told a proxy's name and why it cannot pass on
    appeared = function() end, -- told each broker's proxy when it is made
    random = new_random(plan.seed),
  }
  function world.now() return (uv.hrtime() - started) / 1e6 end
  function world.after(ms, fn)
    local timer = assert(uv.new_timer())
    world.timers[timer] = true
    countdown(timer, ms, function()
      world.timers[timer] = nil
      timer:close()
      fn()
    end)
    timer:unref()
  end
  function world.next_connection()
    connections = connections + 1
    return connections
  end
  world.has_reading_rules = false
  -- The first rule of this phase that takes what has happened.
  function world.rule_for(phase, labels, code, topic)
    for _, rule in ipairs(world.rules) do
      if rule.phase == phase and rule:takes(labels, code, topic) then return rule end
    end
  end
  -- The same for rules that act before all of a request has been read: those that ask neither for
  -- code nor topic, or, when these are given, the others. A shorter request never gets so far.
  function world.reading_rule(labels, size, code, topic)
    local is_known = code ~= nil
    for _, rule in ipairs(world.rules) do
      if rule.phase == "read" and rule.after_read <= size
        and (rule.code or rule.topic) ~= nil == is_known and rule:takes(labels, code, topic) then
        return rule
      end
    end
  end
  world.journal = Journal.new(plan.keep, plan.keep_bytes, world.now, wall)
  return world
end

local function start_brokers(self, plan)
  for _, given in ipairs(plan.brokers) do
    local servers = new_broker(self.world, given)
    self.brokers[given.name] = servers
    local any = select(2, next(servers))
    self.world.groups[#self.world.groups + 1] = any.group
    for name, topic in pairs(given.topics) do
      any:set_topic(name, { queues = topic.queues, read_queues = topic.read_queues,
        write_queues = topic.write_queues, perm = topic.perm })
    end
  end
end

local function start_name_servers(self, plan)
  for index, given in ipairs(plan.namesrvs) do
    self.name_servers[index] = new_name_server(self.world, index, given)
  end
end

local function start(self, plan)
  if plan.proxy then
    proxy.start(self, plan.proxy, plan.port)
  else
    start_name_servers(self, plan) -- first, so that no broker takes the port that was asked for
    start_brokers(self, plan)
  end
  local addrs = {}
  for index, server in ipairs(self.name_servers) do addrs[index] = server.addr end
  self.namesrv = table.concat(addrs, ";")
end

-- All servers, brokers first.
local function each_server(self)
  local list = {}
  for _, servers in pairs(self.brokers) do
    for _, broker in pairs(servers) do list[#list + 1] = broker.server end
  end
  for _, name_server in ipairs(self.name_servers) do list[#list + 1] = name_server.server end
  return ipairs(list)
end

---Starts a cluster. The names that `given` may have are those of `rocketmq.mock.description`.
---@param given table? `brokers`, `topics`, `auto_create`, `namesrvs`, `cluster`, `seed`, `keep`
--- ...
---@return rocketmq.Mock
local function new(given)
  local ok, plan = pcall(description.read, given)
  if not ok then error(plan, 2) end
  local self = setmetatable({ world = new_world(plan), brokers = {}, name_servers = {},
    is_proxy = plan.proxy ~= nil }, Mock)
  local why
  ok, why = pcall(start, self, plan)
  if not ok then
    self:close()
    error(why, 2)
  end
  return self
end

-- The keys of a table, sorted.
local function names_of(map)
  local names = {}
  for name in pairs(map) do names[#names + 1] = name end
  table.sort(names)
  return names
end

-- Raises, without a position, for a broker that there is not. A proxy learns of them only by and by.
local function check_broker(self, what, name)
  if name == nil or self.brokers[name] or self.is_proxy then return end
  error(naming.unknown(what, name, names_of(self.brokers)), 0)
end

---A broker's server.
---@param name string
---@param id integer? 0 (default) for the master, else a slave's
---@return rocketmq.mock.Broker
function Mock:broker(name, id)
  fields.argument("broker", "name", "string", name)
  local servers = self.brokers[name]
  if not servers then
    local known = names_of(self.brokers)
    error(self.is_proxy and #known == 0
      and "mock: no route has named a broker yet; a proxy knows those that its clients asked for"
      or naming.unknown("mock broker", name, known), 2)
  end
  id = id or MASTER
  return servers[id]
    or error(("mock: broker %s has no id %s; ids are numbers, and it has %s"):format(name,
      fields.show(id), table.concat(names_of(servers), ", ")), 2)
end

---A name server.
---@param index integer? from 1 (default)
---@return rocketmq.mock.NameServer
function Mock:name_server(index)
  return self.name_servers[index or 1]
    or error(("mock: there is no name server %s"):format(fields.show(index)), 2)
end

---Sets the order configuration of a topic, as name servers tell it.
---@param topic string
---@param conf string? "broker-a:4;broker-b:4"; nil: the topic is not ordered
function Mock:set_order_conf(topic, conf)
  if type(topic) ~= "string" then error("set_order_conf: topic must be a text", 2) end
  if conf ~= nil and type(conf) ~= "string" then
    error("set_order_conf: conf must be a text, not " .. type(conf), 2)
  end
  self.world.order_confs[topic] = conf
end

-- Raises, without a position, for a place where no server is. A proxy learns of brokers only by and by.
local function check_place(self, what, at)
  local places = { broker = true }
  for _, server in each_server(self) do
    for label in pairs(server.labels) do places[label] = true end
  end
  rules.check_place(what, at, places, self.is_proxy)
end

---Makes the cluster misbehave; see `rocketmq.mock.rules` for all that a rule can say.
---@param given table
---@return rocketmq.mock.Rule
function Mock:rule(given)
  local world = self.world
  world.rules_made = world.rules_made + 1
  -- Chances of its own, so that they do not depend on what other rules were asked.
  local random = new_random(world.seed + RULE_SEEDS * world.rules_made)
  local ok, rule = pcall(rules.new, given, random)
  if not ok then error(rule, 2) end
  local why
  ok, why = pcall(check_place, self, "rule", rule.at)
  if not ok then error(why, 2) end
  table.insert(world.rules, rule)
  if rule.phase == "read" then world.has_reading_rules = true end
  return rule
end

---What was stored, in the order in which it came.
---@param topic string?
---@param broker string?
---@param queue_id integer?
---@return rocketmq.mock.Message[]
function Mock:messages(topic, broker, queue_id)
  fields.argument("messages", "topic", "string|nil", topic)
  fields.argument("messages", "broker", "string|nil", broker)
  fields.argument("messages", "queue_id", "integer|nil", queue_id)
  local ok, why = pcall(check_broker, self, "messages", broker)
  if not ok then error(why, 2) end
  return self.world.journal:messages(topic, broker, queue_id)
end

---How many messages were stored in all, those included that are no longer kept.
---@return integer
function Mock:count()
  return self.world.journal.received
end

---@type rocketmq.mock.Field[]
local request_filter = {
  { name = "code", type = "code|string", help = "the code, as a number or a name" },
  { name = "broker", type = "string", help = "the broker's name" },
  { name = "at", type = "string", help = "where, as in rules: 'broker', 'broker-a', 'namesrv-1'" },
  { name = "topic", type = "string", help = "the topic that it names" },
  { name = "connection", type = "count", help = "the number of the connection" },
}

---Every request that came, stored or not, in the order in which they came.
---@param filter table? `code`, `broker`, `at`, `topic`, `connection`
---@return rocketmq.mock.Request[]
function Mock:requests(filter)
  filter = filter or {}
  local ok, code = pcall(function()
    fields.check("requests", filter, request_filter)
    check_place(self, "requests", filter.at)
    check_broker(self, "requests", filter.broker)
    return rules.code("requests", filter.code, wire.request)
  end)
  if not ok then error(code, 2) end
  return self.world.journal:requests { code = code, at = filter.at, broker = filter.broker,
    topic = filter.topic, connection = filter.connection }
end

---Every message of every send that reached a broker, whether it was stored or not, in the order in which
---they came: one that was sent again is there again.
---@return table[] messages as `messages` gives them, without `queue_offset` and `offset_msg_id`
function Mock:attempts()
  return self.world.journal:attempts()
end

---What peers sent that was no request: `at`, `connection`, `why`, `time`.
---@return table[]
function Mock:bad_input()
  return self.world.journal:bad_input()
end

---Who has sent heartbeats and is still connected: by broker (slaves as "broker-a#1"), by client
---id.
---@return table<string, table<string, rocketmq.mock.Client>>
function Mock:clients()
  local found = {}
  for _, servers in pairs(self.brokers) do
    for _, broker in pairs(servers) do found[broker.server.name] = broker:clients() end
  end
  return found
end

---Waits, in this task, until something is true of the mock.
---@param wanted integer|fun(mock: rocketmq.Mock): any so many messages stored, or a function
--- giving something true
---@param timeout_ms number? default 5000
---@return any value of the function, or the number of messages; nil when the time is over
---@return string? err
function Mock:wait(wanted, timeout_ms)
  timeout_ms = timeout_ms or DEFAULT_WAIT
  fields.argument("wait", "timeout_ms", "milliseconds", timeout_ms)
  local ready
  if type(wanted) == "number" then
    if not (wanted >= 0 and wanted < math.huge and wanted % 1 == 0) then
      error(("wait: a number of messages must be a whole number from 0, not %s"):format(wanted), 2)
    end
    ready = function() return self:count() >= wanted and self:count() end
  elseif type(wanted) == "function" then
    ready = function() return wanted(self) end
  else
    error("wait: needs a number of messages or a function, not " .. type(wanted), 2)
  end
  local value = wait(ready, timeout_ms)
  if value then return value end
  return nil, ("mock: after %g ms still waiting; %d messages and %d requests have come"):format(
    timeout_ms, self:count(), self.world.journal:request_count())
end

---Forgets all that has come, and ends rules, replies and open transactions: for a mock that several specs
---use. What brokers and name servers are stays: topics, routes, offsets, ports, connections, clients.
function Mock:clear()
  local world = self.world
  for _, rule in ipairs(world.rules) do rule:remove() end
  world.rules, world.rules_made, world.has_reading_rules = {}, 0, false
  world.random = new_random(world.seed)
  world.journal:clear()
  parts.ask("clear", world)
end

---Closes everything. Closing again does nothing; what came can still be read.
function Mock:close()
  for timer in pairs(self.world.timers) do timer:close() end
  self.world.timers = {}
  for _, server in each_server(self) do server:close() end
end

naming.guard_methods("mock", Mock)
unproxied.guard_mock(Mock)

return naming.limit_arguments("rocketmq.mock", new)
