--- A broker of the mock: topics, what it answers, what it stores in the journal. One group of
--- servers (a master and slaves) shares its name and topics.
local cjson = require "cjson"
local wire = require "rocketmq.wire"
local fields = require "rocketmq.mock.fields"
local Server = require "rocketmq.mock.server"

local request, response = wire.request, wire.response

local READ, WRITE, INHERIT = 4, 2, 1
local DEFAULT_PERM = READ + WRITE
local MASTER = 0
local MAX_PROPERTIES = 32767 -- a stored message has an int16 for their length
local MAX_TOPIC = 127
local TOPIC_PATTERN = "^[%%|%w_-]+$"
local INVALID_PARAMETER = 29
local REGION = "DefaultRegion"

local function permits(perm, bit)
  return perm % (bit * 2) >= bit
end

---What a topic is at one broker.
---@class rocketmq.mock.Topic
---@field write integer write queues
---@field read integer read queues
---@field perm integer 4 read, 2 write, 1 inherit

---@type rocketmq.mock.Field[]
local topic_fields = {
  { name = "queues", type = "integer", help = "read and write queues, default 4" },
  { name = "read_queues", type = "integer", help = "read queues, when they differ" },
  { name = "write_queues", type = "integer", help = "write queues, when they differ" },
  { name = "perm", type = "integer", help = "2 write, 4 read, 6 both (default)" },
}

---Who sends heartbeats to a broker.
---@class rocketmq.mock.Client
---@field groups string[] of its producers, sorted
---@field heartbeats integer how many
---@field connection integer

---@class rocketmq.mock.Broker one server of a broker: a master or a slave
---@field name string the broker's name
---@field id integer 0 for the master
---@field addr string "127.0.0.1:port"
---@field port integer
local Broker = {}
Broker.__index = Broker

-- The group that all servers of one broker share.
local function new_group(world, given)
  local group = { world = world, name = given.name, cluster = given.cluster, perm = given.perm,
    topics = {}, offsets = {}, log_offset = 0, servers = {} }
  if world.auto_create then
    group.topics[world.default_topic] = { write = world.default_topic_queues,
      read = world.default_topic_queues, perm = DEFAULT_PERM + INHERIT }
  end
  return group
end

---Makes the servers of one broker.
---@param world table
---@param given table `name`, `cluster`, `perm`, `ids`
---@return table<integer, rocketmq.mock.Broker> servers by id
function Broker.group(world, given)
  local group = new_group(world, given)
  for _, id in ipairs(given.ids) do
    local suffix = "#" .. id
    local self = setmetatable({ group = group, name = given.name, id = id, client_table = {} },
      Broker)
    self.server = Server.new {
      name = id == MASTER and given.name or given.name .. suffix,
      labels = { broker = true, [given.name] = true, [given.name .. suffix] = true },
      world = world,
      handle = function(command, connection, entry)
        return self:handle(command, connection, entry)
      end,
      lost = function(connection) self:forget(connection) end,
    }
    self.server.broker = given.name
    self.addr, self.port = self.server.addr, self.server.port
    group.servers[id] = self
  end
  return group.servers
end

---Closes the port and all connections: connecting is refused until `start`. Routes go on naming
---it, as a name server's do until it misses the broker.
function Broker:stop() self.server:stop() end

---Opens the same port again.
function Broker:start() self.server:start() end

---Ends the connections; the port stays open.
---@param reset boolean? with an RST
function Broker:disconnect(reset) self.server:disconnect(reset) end

---Sets what the whole broker permits: 6 all, 4 read-only, 2 write-only. Routes show it at once.
---@param perm integer
function Broker:set_perm(perm)
  if type(perm) ~= "number" then error("set_perm: perm must be a number", 2) end
  self.group.perm = perm
end

---Makes or changes a topic at this broker; what is not given stays as it is.
---@param name string
---@param given table? `queues`, `read_queues`, `write_queues`, `perm`
function Broker:set_topic(name, given)
  given = given or {}
  local ok, why = pcall(fields.check, "topic '" .. tostring(name) .. "'", given, topic_fields)
  if not ok then error(why, 2) end
  local old = self.group.topics[name] or { write = 4, read = 4, perm = DEFAULT_PERM }
  self.group.topics[name] = {
    write = given.write_queues or given.queues or old.write,
    read = given.read_queues or given.queues or old.read,
    perm = given.perm or old.perm,
  }
end

---Removes a topic from this broker.
---@param name string
function Broker:remove_topic(name)
  self.group.topics[name] = nil
end

---The clients that have sent a heartbeat to this server and are still connected, by client id.
---@return table<string, rocketmq.mock.Client>
function Broker:clients()
  local found = {}
  for id, client in pairs(self.client_table) do
    local groups = {}
    for group in pairs(client.groups) do groups[#groups + 1] = group end
    table.sort(groups)
    found[id] = { groups = groups, heartbeats = client.heartbeats,
      connection = client.connection.number }
  end
  return found
end

---@private
function Broker:forget(connection)
  for id, client in pairs(self.client_table) do
    if client.connection == connection then self.client_table[id] = nil end
  end
end

local function refuse(code, text, ...)
  return { code = code, remark = text:format(...) }
end

---@private
function Broker:heartbeat(command, connection)
  local ok, data = pcall(cjson.decode, command.body)
  if not ok or type(data) ~= "table" or type(data.clientID) ~= "string" then
    return refuse(response.SYSTEM_ERROR, "mock: this heartbeat has no readable body")
  end
  local before = self.client_table[data.clientID]
  local client = { groups = {}, heartbeats = (before and before.heartbeats or 0) + 1,
    connection = connection }
  for _, producer in ipairs(type(data.producerDataSet) == "table" and data.producerDataSet or {}) do
    if type(producer) == "table" and producer.groupName then
      client.groups[tostring(producer.groupName)] = true
    end
  end
  self.client_table[data.clientID] = client
  return { code = response.SUCCESS,
    ext = { IS_SUPPORT_HEART_BEAT_V2 = "true", IS_SUB_CHANGE = "false" } }
end

---@private
function Broker:unregister(command)
  local id, group = command.ext.clientID, command.ext.producerGroup
  local client = id and self.client_table[id]
  if client then
    if group then client.groups[group] = nil end
    if not group or not next(client.groups) then self.client_table[id] = nil end
  end
  return { code = response.SUCCESS }
end

-- The topic of a send, made from the default topic when it is new; or nil and the refusal.
local function topic_for(group, header)
  local topic = group.topics[header.topic]
  if topic then return topic end
  local model = group.topics[header.default_topic]
  if not model or not permits(model.perm, INHERIT) then
    return nil, refuse(response.TOPIC_NOT_EXIST,
      "mock: broker %s has no topic %s and does not make one from %s", group.name, header.topic,
      header.default_topic)
  end
  local queues = math.max(0, math.min(header.default_topic_queue_nums, model.write))
  topic = { write = queues, read = queues, perm = model.perm - INHERIT }
  group.topics[header.topic] = topic
  return topic
end

local function check_topic_name(name)
  if name:match(TOPIC_PATTERN) and #name <= MAX_TOPIC then return nil end
  return refuse(INVALID_PARAMETER, "mock: '%s' is not a topic's name", name)
end

-- Why a message cannot be stored; nil when it can.
local function check_content(group, body, properties)
  if #properties > MAX_PROPERTIES then
    return refuse(response.MESSAGE_ILLEGAL, "mock: the properties have %d bytes, the limit is %d",
      #properties, MAX_PROPERTIES)
  end
  local limit = group.world.max_message_size
  if #body > limit then
    return refuse(response.MESSAGE_ILLEGAL, "mock: the body has %d bytes, the limit is %d", #body,
      limit)
  end
end

---@private
-- The queue of a send and its id; or nil and the refusal.
function Broker:queue_for(header)
  local group = self.group
  if self.id ~= MASTER then
    return nil, refuse(response.SERVICE_NOT_AVAILABLE, "mock: broker %s#%d is a slave", group.name,
      self.id)
  end
  local refusal = check_topic_name(header.topic)
  if refusal then return nil, refusal end
  local topic
  topic, refusal = topic_for(group, header)
  if not topic then return nil, refusal end
  if not permits(topic.perm, WRITE) or not permits(group.perm, WRITE) then
    return nil, refuse(response.NO_PERMISSION,
      "mock: sending to topic %s at broker %s is forbidden", header.topic, group.name)
  end
  local queues = math.max(topic.write, topic.read)
  if header.queue_id >= queues then
    return nil, refuse(INVALID_PARAMETER,
      "mock: topic %s at broker %s has %d queues, none with id %d", header.topic, group.name,
      queues, header.queue_id)
  end
  if header.queue_id >= 0 then return header.queue_id end
  return group.world.random(math.max(1, topic.write))
end

---@private
-- Gives a message its place; returns its offset in the queue and its offset id.
function Broker:place(topic, queue_id, size)
  local group = self.group
  local offsets = group.offsets[topic]
  if not offsets then
    offsets = {}
    group.offsets[topic] = offsets
  end
  local queue_offset = offsets[queue_id] or 0
  offsets[queue_id] = queue_offset + 1
  local log_offset = group.log_offset
  group.log_offset = log_offset + size
  return queue_offset,
    wire.encode_offset_id { host = self.server.host, port = self.port, offset = log_offset }
end

-- What a stored message takes besides body, topic and properties.
local STORED_OVERHEAD = 91

---@private
-- Stores one message of a request: `number` is its place in a batch, or nil.
function Broker:store(topic, queue_id, member, number, entry)
  local queue_offset, offset_id = self:place(topic, queue_id,
    STORED_OVERHEAD + #member.body + #topic + #member.properties)
  self.group.world.journal:message { request = entry, topic = topic, broker = self.name,
    queue_id = queue_id, queue_offset = queue_offset, offset_msg_id = offset_id, member = number }
  return queue_offset, offset_id
end

local function stored(queue_id, queue_offset, offset_id, unique_key)
  return { code = response.SUCCESS, ext = {
    msgId = offset_id,
    queueId = ("%d"):format(queue_id),
    queueOffset = ("%d"):format(queue_offset),
    transactionId = unique_key,
    MSG_REGION = REGION,
    TRACE_ON = "true",
  } }
end

local function unique_key(properties)
  return properties:match("UNIQ_KEY\1([^\2]+)")
end

---@private
function Broker:send(command, _, entry)
  local header, why = wire.decode_send_header(command)
  if not header then
    return refuse(response.SYSTEM_ERROR, "mock: this request cannot be read: %s", tostring(why))
  end
  local queue_id, refusal = self:queue_for(header)
  if not queue_id then return refusal end
  local member = { body = command.body, properties = header.properties }
  refusal = check_content(self.group, member.body, member.properties)
  if refusal then return refusal end
  local queue_offset, offset_id = self:store(header.topic, queue_id, member, nil, entry)
  return stored(queue_id, queue_offset, offset_id, unique_key(member.properties))
end

---@private
function Broker:send_batch(command, _, entry)
  local header, why = wire.decode_send_header(command)
  local members
  if header then members, why = wire.decode_batch(command.body) end
  if not members or #members == 0 then
    return refuse(response.SYSTEM_ERROR, "mock: this batch cannot be read: %s", tostring(why))
  end
  local queue_id, refusal = self:queue_for(header)
  if not queue_id then return refusal end
  refusal = check_content(self.group, command.body, header.properties)
  if refusal then return refusal end
  local first, ids = nil, {}
  for number, member in ipairs(members) do
    local queue_offset
    queue_offset, ids[number] = self:store(header.topic, queue_id, member, number, entry)
    first = first or queue_offset
  end
  return stored(queue_id, first, table.concat(ids, ","), unique_key(header.properties))
end

---@private
-- The offset that the next message of a queue would get; 0 for a queue that there is not, as real
-- brokers answer.
function Broker:max_offset(command)
  local offsets = self.group.offsets[command.ext.topic] or {}
  local queue_id = tonumber(command.ext.queueId)
  if not queue_id then
    return refuse(response.SYSTEM_ERROR, "mock: this request names no queueId")
  end
  return { code = response.SUCCESS, ext = { offset = ("%d"):format(offsets[queue_id] or 0) } }
end

local handlers = {
  [request.GET_MAX_OFFSET] = Broker.max_offset,
  [request.HEART_BEAT] = Broker.heartbeat,
  [request.UNREGISTER_CLIENT] = Broker.unregister,
  [request.SEND_MESSAGE] = Broker.send,
  [request.SEND_MESSAGE_V2] = Broker.send,
  [request.SEND_BATCH_MESSAGE] = Broker.send_batch,
}

---@private
function Broker:handle(command, connection, entry)
  local handler = handlers[command.code]
  if handler then return handler(self, command, connection, entry) end
  return refuse(response.REQUEST_CODE_NOT_SUPPORTED,
    "mock: request code %d is not known here", command.code)
end

return Broker
