--- Heartbeats: which clients a broker knows.
local cjson = require "cjson"
local wire = require "rocketmq.wire"
local answer = require "rocketmq.mock.answer"
local versions = require "rocketmq.mock.versions"

---Who sends heartbeats to a broker.
---@class rocketmq.mock.Client
---@field groups string[] of its producers, sorted
---@field heartbeats integer how many
---@field connection integer

local function heartbeat(broker, command, connection)
  local ok, data = pcall(cjson.decode, command.body)
  if not ok or type(data) ~= "table" or type(data.clientID) ~= "string" then
    return answer.refuse(wire.response.SYSTEM_ERROR, "mock: this heartbeat has no readable body")
  end
  local before = broker.client_table[data.clientID]
  local client = { groups = {}, heartbeats = (before and before.heartbeats or 0) + 1,
    connection = connection }
  for _, producer in ipairs(type(data.producerDataSet) == "table" and data.producerDataSet or {}) do
    if type(producer) == "table" and producer.groupName then
      client.groups[tostring(producer.groupName)] = true
    end
  end
  broker.client_table[data.clientID] = client
  if broker.group.world.version < versions.V5_0_0 then return answer.ok() end
  return answer.ok { IS_SUPPORT_HEART_BEAT_V2 = "true", IS_SUB_CHANGE = "false" }
end

local function unregister(broker, command)
  local id, group = command.ext.clientID, command.ext.producerGroup
  local client = id and broker.client_table[id]
  if client then
    if group then client.groups[group] = nil end
    if not group or not next(client.groups) then broker.client_table[id] = nil end
  end
  return answer.ok()
end

---@class rocketmq.mock.Broker
local methods = {}

---The clients that have sent a heartbeat to this server and are still connected, by client id.
---@return table<string, rocketmq.mock.Client>
function methods:clients()
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

---The connections of the clients that have a producer of this group, in the order of their making.
---@param group string
---@return rocketmq.mock.Connection[]
function methods:connections_of_group(group)
  local found = {}
  for _, client in pairs(self.client_table) do
    if client.groups[group] then found[#found + 1] = client.connection end
  end
  table.sort(found, function(a, b) return a.number < b.number end)
  return found
end

---The connection of a client.
---@param id string
---@return rocketmq.mock.Connection?
function methods:connection_of_client(id)
  local client = self.client_table[id]
  return client and client.connection
end

---@type rocketmq.mock.Part
return {
  handlers = {
    [wire.request.HEART_BEAT] = heartbeat,
    [wire.request.UNREGISTER_CLIENT] = unregister,
  },
  start = function(broker) broker.client_table = {} end,
  lost = function(broker, connection)
    for id, client in pairs(broker.client_table) do
      if client.connection == connection then broker.client_table[id] = nil end
    end
  end,
  broker = methods,
}
