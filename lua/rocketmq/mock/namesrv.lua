--- A name server of the mock: tells where topics are, from what the brokers have at this moment.
local bit = require "bit"
local answer = require "rocketmq.mock.answer"
local faults = require "rocketmq.mock.faults"
local fields = require "rocketmq.mock.fields"
local naming = require "rocketmq.naming"
local parts = require "rocketmq.mock.parts"
local perm = require "rocketmq.mock.perm"
local Server = require "rocketmq.mock.server"
local versions = require "rocketmq.mock.versions"
local wire = require "rocketmq.wire"

---@class rocketmq.mock.NameServer
---@field name string "namesrv-1", ...
---@field addr string "127.0.0.1:port"
---@field port integer
local NameServer = {}
NameServer.__index = NameServer

---Closes the port and all connections: connecting is refused until `start`.
function NameServer:stop() self.server:stop() end

---Opens the same port again.
function NameServer:start() self.server:start() end

---Ends the connections; the port stays open.
---@param reset boolean? with an RST
function NameServer:disconnect(reset)
  fields.argument("disconnect", "reset", "boolean|nil", reset)
  self.server:disconnect(reset)
end

---Writes bytes that nobody asked for to all connections.
---@param bytes string
function NameServer:write(bytes)
  fields.argument("write", "bytes", "bytes", bytes)
  self.server:write(bytes)
end

local function reversed(list)
  local back = {}
  for index = #list, 1, -1 do back[#back + 1] = list[index] end
  return back
end

-- What a topic permits at a broker; no broker takes away that it is inherited from.
local function permitted(topic, group)
  return bit.band(topic.perm, bit.bor(group.perm, perm.INHERIT))
end

-- The addresses of a broker's servers by id; nil when no route names one of them.
local function addresses(group, connection)
  local addrs = {}
  for id, broker in pairs(group.servers) do
    if not broker.is_hidden then addrs[id] = broker.server:address_for(connection) end
  end
  return next(addrs) and addrs or nil
end

-- The route of a topic as the brokers are at this moment; nil when none has it.
local function present_route(world, topic, connection)
  local queues, brokers = {}, {}
  for _, group in ipairs(world.groups) do
    local config, addrs = group.topics[topic], addresses(group, connection)
    if config and addrs then
      queues[#queues + 1] = { broker_name = group.name, read_queue_nums = config.read,
        write_queue_nums = config.write, perm = permitted(config, group),
        topic_sys_flag = config.sys_flag or 0 }
      brokers[#brokers + 1] = { cluster = group.cluster, broker_name = group.name, addrs = addrs }
    end
  end
  if #queues == 0 then return nil end
  return { order_topic_conf = world.order_confs[topic], queues = queues, brokers = brokers }
end

---From now on this name server gives routes as they are at this moment, whatever becomes of the
---brokers and topics: one that hears nothing more of them. `thaw` ends it.
function NameServer:freeze()
  self.frozen = {}
  for _, group in ipairs(self.world.groups) do
    for topic in pairs(group.topics) do
      self.frozen[topic] = self.frozen[topic] or present_route(self.world, topic)
    end
  end
end

---Ends `freeze`.
function NameServer:thaw() self.frozen = nil end

local route_types = { ["table"] = true, ["function"] = true, ["string"] = true,
  ["boolean"] = true, ["nil"] = true }

-- A copy of a table with all in it.
local function deep_copy(value)
  if type(value) ~= "table" then return value end
  local copy = {}
  for key, inner in pairs(value) do copy[key] = deep_copy(inner) end
  return copy
end

-- What a script's function makes of a route. It may change the table that it gets.
local function changed_route(topic, change, route)
  local what = ("set_route: the function for topic '%s'"):format(topic)
  local changed = faults.call(what, change, deep_copy(route))
  if not route_types[type(changed)] or type(changed) == "function" or changed == true then
    error(("%s gave %s; it must give a route, a body, false or nil"):format(what,
      fields.show(changed)), 0)
  end
  if type(changed) == "table" then
    local ok, why = pcall(wire.encode_route, changed)
    if not ok then error(("%s gave no route: %s"):format(what, why), 0) end
  end
  return changed
end

---Makes this name server tell something else of a topic.
---@param topic string
---@param route table|string|false|nil|fun(route: table?): table|string|false|nil a route as
--- `rocketmq.wire.encode_route` takes it, or the answer's body, or false: it knows no such topic; or a
--- function that gets the usual route, nil when there is none, and gives one of these; nil: as usual
function NameServer:set_route(topic, route)
  if type(topic) ~= "string" then error("set_route: topic must be a text", 2) end
  if not route_types[type(route)] or route == true then
    error("set_route: a route must be a table, a body, false, a function or nil, not "
      .. tostring(route), 2)
  end
  if type(route) == "table" then
    local ok, why = pcall(wire.encode_route, route)
    if not ok then error("set_route: no route: " .. why, 2) end
  end
  self.overrides[topic] = route
end

---The route of a topic as this name server tells it.
---@param topic string
---@param connection rocketmq.mock.Connection? of the client that asks
---@return table|string|nil route a table as `rocketmq.wire.encode_route` takes it, or a body; nil when it
--- knows none
function NameServer:route(topic, connection)
  local route
  if self.frozen then
    route = self.frozen[topic]
  else
    route = present_route(self.world, topic, connection)
  end
  if route and self.reverse then
    route = { order_topic_conf = route.order_topic_conf, queues = reversed(route.queues),
      brokers = reversed(route.brokers) }
  end
  local other = self.overrides[topic]
  if type(other) == "function" then
    route = changed_route(topic, other, route)
  elseif other ~= nil then
    route = other
  end
  return route or nil
end

---@private
function NameServer:handle(command, connection)
  local handler = parts.name_server[command.code]
  if handler then return handler(self, command, connection) end
  if self.world.version < versions.V5_0_0 then return nil end -- who asks waits in vain there
  return answer.not_supported(command.code)
end

naming.guard_methods("name_server", NameServer)

---@param world table
---@param index integer from 1
---@param given table `reverse` (lists brokers the other way round), `bare_keys` (always)
---@return rocketmq.mock.NameServer
local function new(world, index, given)
  local self = setmetatable({ name = "namesrv-" .. index, world = world, reverse = given.reverse,
    bare_keys = given.bare_keys, overrides = {} }, NameServer)
  self.server = Server.new {
    name = self.name,
    port = index == 1 and world.port or 0,
    labels = { namesrv = true, [self.name] = true },
    world = world,
    handle = function(command, connection) return self:handle(command, connection) end,
  }
  self.addr, self.port = self.server.addr, self.server.port
  return self
end

return new
