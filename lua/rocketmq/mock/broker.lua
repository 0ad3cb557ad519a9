--- A broker of the mock: topics, and what its servers (a master and slaves) share. What they answer
--- stands in the parts, see `rocketmq.mock.parts`.
local answer = require "rocketmq.mock.answer"
local fields = require "rocketmq.mock.fields"
local naming = require "rocketmq.naming"
local parts = require "rocketmq.mock.parts"
local perm = require "rocketmq.mock.perm"
local Server = require "rocketmq.mock.server"

local MASTER = 0
local TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"

---What a topic is at one broker.
---@class rocketmq.mock.Topic
---@field write integer write queues
---@field read integer read queues
---@field perm integer 4 read, 2 write, 1 inherit
---@field sys_flag integer? as its making said; only routes tell it

---@type rocketmq.mock.Field[]
local topic_fields = {
  { name = "queues", type = "integer", help = "read and write queues, default 4" },
  { name = "read_queues", type = "integer", help = "read queues, when they differ" },
  { name = "write_queues", type = "integer", help = "write queues, when they differ" },
  { name = "perm", type = "perm", help = "2 write, 4 read, 6 both (default)" },
}

---@class rocketmq.mock.Broker one server of a broker: a master or a slave
---@field name string the broker's name
---@field id integer 0 for the master
---@field addr string "127.0.0.1:port"
---@field port integer
---@field is_hidden boolean routes do not name it
---@field group table what all servers of the broker share: `world`, `name`, `cluster`, `perm`, `topics`,
--- `offsets` (by topic, by queue id), `log_offset`, `servers` (by id)
---@field server rocketmq.mock.Server
local Broker = {}
Broker.__index = Broker

for name, method in pairs(parts.broker_methods) do Broker[name] = method end

-- Topics that every broker has: one that is called like its cluster and one that is called like it, by
-- whose routes brokers are found; and the topic for message trace.
local function own_topics(given)
  return { [given.cluster] = { write = 16, read = 16, perm = perm.READ_WRITE + perm.INHERIT },
    [given.name] = { write = 1, read = 1, perm = perm.READ_WRITE + perm.INHERIT },
    [TRACE_TOPIC] = { write = 1, read = 1, perm = perm.READ_WRITE } }
end

-- The group that all servers of one broker share.
local function new_group(world, given)
  local group = { world = world, name = given.name, cluster = given.cluster, perm = given.perm,
    topics = own_topics(given), offsets = {}, log_offset = 0, servers = {} }
  if world.auto_create then
    group.topics[world.default_topic] = { write = world.default_topic_queues,
      read = world.default_topic_queues, perm = perm.READ_WRITE + perm.INHERIT }
  end
  return group
end

local function new_server(world, group, id)
  local suffix = "#" .. id
  local self = setmetatable({ group = group, name = group.name, id = id, is_hidden = false },
    Broker)
  self.server = Server.new {
    name = id == MASTER and group.name or group.name .. suffix,
    labels = { broker = true, [group.name] = true, [group.name .. suffix] = true },
    world = world,
    handle = function(command, connection, entry)
      return self:handle(command, connection, entry)
    end,
    lost = function(connection) parts.ask("lost", self, connection) end,
  }
  self.server.broker = group.name
  self.addr, self.port = self.server.addr, self.server.port
  parts.ask("start", self)
  return self
end

---Closes the port and all connections: connecting is refused until `start`. Routes go on naming
---it, as a name server's do until it misses the broker.
function Broker:stop() self.server:stop() end

---Opens the same port again.
function Broker:start() self.server:start() end

---Ends the connections; the port stays open.
---@param reset boolean? with an RST
function Broker:disconnect(reset)
  fields.argument("disconnect", "reset", "boolean|nil", reset)
  self.server:disconnect(reset)
end

---Goes to another port, as a broker that was started anew elsewhere: `addr` and `port` change, and routes
---name the new one at once. The old port refuses.
function Broker:move()
  self.server:move()
  self.addr, self.port = self.server.addr, self.server.port
end

---Routes no longer name this server, which goes on as before: a name server that missed its
---registrations.
function Broker:leave_routes() self.is_hidden = true end

---Routes name this server again.
function Broker:join_routes() self.is_hidden = false end

---Writes bytes that nobody asked for to all connections.
---@param bytes string
function Broker:write(bytes)
  fields.argument("write", "bytes", "bytes", bytes)
  self.server:write(bytes)
end

---Sets what the whole broker permits: 6 all, 4 read-only, 2 write-only. Routes show it at once.
---@param value integer
function Broker:set_perm(value)
  fields.argument("set_perm", "perm", "perm", value)
  self.group.perm = value
end

---Makes or changes a topic at this broker; what is not given stays as it is.
---@param name string
---@param given table? `queues`, `read_queues`, `write_queues`, `perm`
function Broker:set_topic(name, given)
  fields.argument("set_topic", "name", "string", name)
  given = given or {}
  local ok, why = pcall(fields.check, "topic '" .. name .. "'", given, topic_fields)
  if not ok then error(why, 2) end
  local old = self.group.topics[name] or { write = 4, read = 4, perm = perm.READ_WRITE }
  self.group.topics[name] = {
    write = given.write_queues or given.queues or old.write,
    read = given.read_queues or given.queues or old.read,
    perm = given.perm or old.perm,
    sys_flag = old.sys_flag,
  }
end

---Removes a topic from this broker.
---@param name string
function Broker:remove_topic(name)
  fields.argument("remove_topic", "name", "string", name)
  self.group.topics[name] = nil
end

---@private
function Broker:handle(command, connection, entry)
  local handler = parts.handlers[command.code]
  if handler then return handler(self, command, connection, entry) end
  return answer.not_supported(command.code)
end

naming.guard_methods("broker", Broker)

---Makes the servers of one broker.
---@param world table
---@param given table `name`, `cluster`, `perm`, `ids`
---@return table<integer, rocketmq.mock.Broker> servers by id
local function new(world, given)
  local group = new_group(world, given)
  for _, id in ipairs(given.ids) do group.servers[id] = new_server(world, group, id) end
  return group.servers
end

return new
