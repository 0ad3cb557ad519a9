--- A name server of the mock: tells where topics are, from what the brokers have at this moment.
local bit = require "bit"
local answer = require "rocketmq.mock.answer"
local fields = require "rocketmq.mock.fields"
local parts = require "rocketmq.mock.parts"
local perm = require "rocketmq.mock.perm"
local Server = require "rocketmq.mock.server"

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
function NameServer:disconnect(reset) self.server:disconnect(reset) end

local function reversed(list)
  local back = {}
  for index = #list, 1, -1 do back[#back + 1] = list[index] end
  return back
end

-- What a topic permits at a broker; no broker takes away that it is inherited from.
local function permitted(topic, group)
  return bit.band(topic.perm, bit.bor(group.perm, perm.INHERIT))
end

---The route of a topic as this name server tells it; nil when it knows none.
---@param topic string
---@return table? as `rocketmq.wire.encode_route` takes it
function NameServer:route(topic)
  local queues, brokers = {}, {}
  for _, group in ipairs(self.world.groups) do
    local config = group.topics[topic]
    if config then
      local addrs = {}
      for id, broker in pairs(group.servers) do addrs[id] = broker.addr end
      queues[#queues + 1] = { broker_name = group.name, read_queue_nums = config.read,
        write_queue_nums = config.write, perm = permitted(config, group), topic_sys_flag = 0 }
      brokers[#brokers + 1] = { cluster = group.cluster, broker_name = group.name, addrs = addrs }
    end
  end
  if #queues == 0 then return nil end
  if self.reverse then queues, brokers = reversed(queues), reversed(brokers) end
  return { order_topic_conf = self.world.order_confs[topic], queues = queues, brokers = brokers }
end

---@private
function NameServer:handle(command, connection)
  local handler = parts.name_server[command.code]
  if handler then return handler(self, command, connection) end
  return answer.not_supported(command.code)
end

fields.guard_methods("name_server", NameServer)

---@param world table
---@param index integer from 1
---@param given table `reverse` (lists brokers the other way round), `bare_keys` (always)
---@return rocketmq.mock.NameServer
local function new(world, index, given)
  local self = setmetatable({ name = "namesrv-" .. index, world = world, reverse = given.reverse,
    bare_keys = given.bare_keys }, NameServer)
  self.server = Server.new {
    name = self.name,
    labels = { namesrv = true, [self.name] = true },
    world = world,
    handle = function(command, connection) return self:handle(command, connection) end,
  }
  self.addr, self.port = self.server.addr, self.server.port
  return self
end

return new
