--- What a user says about a mock cluster, checked and with every default filled in.
local fields = require "rocketmq.mock.fields"
local parts = require "rocketmq.mock.parts"
local unproxied = require "rocketmq.mock.unproxied"

local description = {}

---@type rocketmq.mock.Field[]
description.fields = {
  { name = "brokers", type = "count|table",
    help = "how many, named broker-a, broker-b ...; or a list of names and tables { name =, "
      .. "cluster =, slaves =, ids =, perm =, topics = }; default 1" },
  { name = "topics", type = "table",
    help = "topics that exist at every broker: names, or name = queues, or name = { queues =, "
      .. "read_queues =, write_queues =, perm =, brokers = { names }, order = true or "
      .. "'broker-a:4;...' }" },
  { name = "auto_create", type = "boolean",
    help = "a send to an unknown topic makes it, as the default topic allows; default true" },
  { name = "default_topic", type = "string", help = "the default topic's name; default TBW102" },
  { name = "default_topic_queues", type = "count",
    help = "the default topic's queues; default 8" },
  { name = "namesrvs", type = "count|table",
    help = "how many name servers, or a list of tables { reverse = true: lists brokers the other "
      .. "way round, bare_keys = true: writes ids without quotes as old servers do }; default "
      .. "1" },
  { name = "cluster", type = "string", help = "the cluster's name; default DefaultCluster" },
  { name = "max_message_size", type = "count",
    help = "the longest body in bytes that a broker accepts; default 4194304" },
  { name = "version", type = "integer",
    help = "the version in answers; default 493 (5.4.0); servers before 413 (5.0.0) do as 4.9.2 "
      .. "(397)" },
  { name = "keep", type = "integer",
    help = "how many messages, and how many requests, are kept; the oldest are forgotten; "
      .. "default 100000" },
  { name = "keep_bytes", type = "integer",
    help = "about how many bytes of messages, and of requests, are kept at most; default "
      .. "268435456" },
  { name = "listen", type = "string",
    help = "'host:port' where the first name server listens; all others take any port of that "
      .. "host, and with 0.0.0.0 clients are told the address that they came to; default "
      .. "127.0.0.1:0, which is any port" },
  { name = "proxy", type = "string",
    help = "'host:port;...' of real name servers: the mock stands in front of them and of the "
      .. "brokers that they name, passes all on and applies its rules" },
  { name = "seed", type = "integer",
    help = "makes the mock's random choices repeatable; default 1" },
}

for _, part in ipairs(parts.list) do
  for _, row in ipairs(part.fields or {}) do table.insert(description.fields, row) end
end

local broker_fields = {
  { name = "name", type = "string", help = "the broker's name" },
  { name = "cluster", type = "string", help = "its cluster's name" },
  { name = "slaves", type = "integer",
    help = "how many slaves it has, with ids from 1; default 0" },
  { name = "ids", type = "table",
    help = "which ids it has instead: { 1 } is a slave without master" },
  { name = "perm", type = "perm", help = "2 write, 4 read, 6 both (default)" },
  { name = "topics", type = "table",
    help = "topics that exist at this broker only, or differ there" },
}

local topic_fields = {
  { name = "queues", type = "integer", help = "read and write queues; default 4" },
  { name = "read_queues", type = "integer", help = "read queues, when they differ" },
  { name = "write_queues", type = "integer", help = "write queues, when they differ" },
  { name = "perm", type = "perm", help = "2 write, 4 read, 6 both (default)" },
  { name = "brokers", type = "table", help = "names of the brokers that have it; default all" },
  { name = "order", type = "boolean|string",
    help = "an ordered topic: true, or its order configuration 'broker-a:4;broker-b:4'" },
}

local namesrv_fields = {
  { name = "reverse", type = "boolean", help = "lists brokers the other way round" },
  { name = "bare_keys", type = "boolean", help = "always writes ids without quotes" },
}

-- "broker-a", "broker-b", ... "broker-z", "broker-27".
local function broker_name(index)
  return "broker-" .. (index <= 26 and string.char(96 + index) or index)
end

-- Each is a listening socket.
local MOST_SERVERS = 1000

local function check_number_of_servers(what, name, number)
  if number <= MOST_SERVERS then return end
  error(("%s: '%s' is %g; at most %d are possible"):format(what, name, number, MOST_SERVERS), 0)
end

-- Raises for a table with other keys than 1, 2, 3 ...
local function check_list(what, name, list, of)
  local count = 0
  for _ in pairs(list) do count = count + 1 end
  if count == #list then return end
  error(("%s: '%s' must be a list%s"):format(what, name, of), 0)
end

-- A list of n empty tables, or a list as given.
local function as_list(what, given)
  if type(given) == "table" then
    check_list("mock", what, given, "")
    return given
  end
  check_number_of_servers("mock", what, given)
  local list = {}
  for index = 1, given do list[index] = {} end
  return list
end

local function read_topic(name, given)
  if type(given) == "number" then given = { queues = given } end
  if type(name) == "number" then name, given = given, {} end
  if type(name) ~= "string" then
    error("mock topics: a topic's name must be a text, not " .. type(name), 0)
  end
  local what = "mock topic '" .. name .. "'"
  if type(given) ~= "table" then error(what .. ": must be a table or a number of queues", 0) end
  fields.check(what, given, topic_fields)
  if given.brokers then check_list(what, "brokers", given.brokers, " of names") end
  return name, given
end

local function read_topics(given)
  local topics = {}
  for key, value in pairs(given or {}) do
    local name, topic = read_topic(key, value)
    topics[name] = topic
  end
  return topics
end

-- The ids of a broker's servers.
local function read_ids(what, given)
  if not given.ids then
    check_number_of_servers(what, "slaves", given.slaves or 0)
    local ids = { 0 }
    for id = 1, given.slaves or 0 do ids[#ids + 1] = id end
    return ids
  end
  if given.slaves then error(what .. ": 'ids' and 'slaves' exclude each other", 0) end
  check_list(what, "ids", given.ids, " of numbers")
  if #given.ids == 0 then error(what .. ": 'ids' is empty", 0) end
  local seen = {}
  for _, id in ipairs(given.ids) do
    if not (type(id) == "number" and id >= 0 and id < 2 ^ 31 and id % 1 == 0) then
      error(("%s: 'ids' must be whole numbers from 0, not %s"):format(what, fields.show(id)), 0)
    end
    if seen[id] then error(("%s: 'ids' has %d twice"):format(what, id), 0) end
    seen[id] = true
  end
  return given.ids
end

-- Rules tell servers apart by their names.
local function check_name(what, name)
  if name ~= "broker" and not name:find "^namesrv" and not name:find("#", 1, true) then return end
  error(("%s: 'name' cannot be '%s': rules call others so; no name is 'broker', begins with "
    .. "'namesrv' or has a '#'"):format(what, name), 0)
end

local function read_broker(given, index, cluster)
  if type(given) == "string" then given = { name = given } end
  local what = "mock broker " .. index
  if type(given) ~= "table" then error(what .. ": must be a name or a table", 0) end
  fields.check(what, given, broker_fields)
  if given.name then check_name(what, given.name) end
  return { name = given.name or broker_name(index), cluster = given.cluster or cluster,
    ids = read_ids(what, given), perm = given.perm or 6, topics = read_topics(given.topics) }
end

local function read_brokers(given, cluster)
  local brokers, names = {}, {}
  for index, one in ipairs(as_list("brokers", given)) do
    local broker = read_broker(one, index, cluster)
    if names[broker.name] then error("mock: two brokers are called " .. broker.name, 0) end
    brokers[index], names[broker.name] = broker, true
  end
  if #brokers == 0 then error("mock: 'brokers' is empty", 0) end
  return brokers, names
end

local function contains(list, value)
  for _, one in ipairs(list) do
    if one == value then return true end
  end
  return false
end

-- Spreads the cluster's topics over the brokers; what a broker says of itself comes first.
local function place_topics(topics, brokers, names)
  for name, topic in pairs(topics) do
    for _, wanted in ipairs(topic.brokers or {}) do
      if not names[wanted] then
        error(("mock topic '%s': there is no broker '%s'"):format(name, tostring(wanted)), 0)
      end
    end
    for _, broker in ipairs(brokers) do
      local here = not topic.brokers or contains(topic.brokers, broker.name)
      if here and not broker.topics[name] then broker.topics[name] = topic end
    end
  end
end

-- The order configurations of the topics that have one.
local function order_confs(topics, brokers)
  local confs = {}
  for name, topic in pairs(topics) do
    if type(topic.order) == "string" then
      confs[name] = topic.order
    elseif topic.order then
      local entries = {}
      for _, broker in ipairs(brokers) do
        local here = broker.topics[name]
        if here then
          entries[#entries + 1] = broker.name .. ":" .. (here.write_queues or here.queues or 4)
        end
      end
      confs[name] = table.concat(entries, ";")
    end
  end
  return confs
end

local function read_namesrvs(given)
  local list = as_list("namesrvs", given)
  if #list == 0 then error("mock: 'namesrvs' is empty", 0) end
  for index, one in ipairs(list) do
    local what = "mock name server " .. index
    if type(one) ~= "table" then error(what .. ": must be a table", 0) end
    fields.check(what, one, namesrv_fields)
  end
  return list
end

-- What was given of the fields that the parts have.
local function part_options(given)
  local options = {}
  for _, part in ipairs(parts.list) do
    for _, row in ipairs(part.fields or {}) do options[row.name] = given[row.name] end
  end
  return options
end

local MAX_PORT = 65535

local function is_ipv4(host)
  local octets = { host:match "^(%d+)%.(%d+)%.(%d+)%.(%d+)$" }
  for _, octet in ipairs(octets) do
    if tonumber(octet) > 255 then return false end
  end
  return #octets == 4
end

local function read_listen(given)
  local host, port = given:match "^([%d.]+):(%d+)$"
  if not host or tonumber(port) > MAX_PORT or not is_ipv4(host) then
    error(("mock: 'listen' must be an IPv4 address and a port, 127.0.0.1:9876, not '%s'"):format(
      given), 0)
  end
  return host, tonumber(port)
end

local function check_proxy(given)
  unproxied.check(given)
  local found = false
  for addr in given.proxy:gmatch "[^;,%s]+" do
    local port = tonumber(addr:match "^[^/]+:(%d+)$")
    if not port or port == 0 or port > MAX_PORT then
      error(("mock: 'proxy': '%s' is not host:port"):format(addr), 0)
    end
    found = true
  end
  if not found then error("mock: 'proxy' names no address", 0) end
end

---Reads a description. Raises, without a position, when it is wrong.
---@param given table?
---@return table
function description.read(given)
  given = given or {}
  if type(given) ~= "table" then error("mock: must be given a table, not " .. type(given), 0) end
  fields.check("mock", given, description.fields)
  if given.proxy then check_proxy(given) end
  local host, port = read_listen(given.listen or "127.0.0.1:0")
  local topics = read_topics(given.topics)
  local brokers, names = read_brokers(given.brokers or 1, given.cluster or "DefaultCluster")
  place_topics(topics, brokers, names)
  return {
    brokers = brokers,
    order_confs = order_confs(topics, brokers),
    auto_create = given.auto_create ~= false,
    default_topic = given.default_topic or "TBW102",
    default_topic_queues = given.default_topic_queues or 8,
    namesrvs = read_namesrvs(given.namesrvs or 1),
    max_message_size = given.max_message_size or 4194304,
    version = given.version or 493,
    keep = given.keep or 100000,
    keep_bytes = given.keep_bytes or 268435456,
    seed = given.seed or 1,
    host = host,
    port = port,
    proxy = given.proxy,
    options = part_options(given),
  }
end

return description
