--- A name server of the mock: tells where topics are, from what the brokers have at this moment.
local bit = require "bit"
local wire = require "rocketmq.wire"
local Server = require "rocketmq.mock.server"

local request, response = wire.request, wire.response

-- From this version on a client reads standard JSON; older ones are given bare integer keys.
local STANDARD_JSON_VERSION = 401
local INHERIT = 1 -- in a topic's perm; no broker takes it away

---@class rocketmq.mock.NameServer
---@field name string "namesrv-1", ...
---@field addr string "127.0.0.1:port"
---@field port integer
local NameServer = {}
NameServer.__index = NameServer

---@param world table
---@param index integer from 1
---@param given table `reverse` (lists brokers the other way round), `bare_keys` (always)
---@return rocketmq.mock.NameServer
function NameServer.new(world, index, given)
  local self = setmetatable({ name = "namesrv-" .. index, world = world, reverse = given.reverse,
    bare_keys = given.bare_keys }, NameServer)
  self.server = Server.new {
    name = self.name,
    labels = { namesrv = true, [self.name] = true },
    world = world,
    handle = function(command) return self:handle(command) end,
  }
  self.addr, self.port = self.server.addr, self.server.port
  return self
end

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

---@private
function NameServer:route(topic)
  local queues, brokers = {}, {}
  for _, group in ipairs(self.world.groups) do
    local config = group.topics[topic]
    if config then
      local addrs = {}
      for id, broker in pairs(group.servers) do addrs[id] = broker.addr end
      queues[#queues + 1] = { broker_name = group.name, read_queue_nums = config.read,
        write_queue_nums = config.write, perm = bit.band(config.perm, bit.bor(group.perm, INHERIT)),
        topic_sys_flag = 0 }
      brokers[#brokers + 1] = { cluster = group.cluster, broker_name = group.name, addrs = addrs }
    end
  end
  if #queues == 0 then return nil end
  if self.reverse then queues, brokers = reversed(queues), reversed(brokers) end
  return { order_topic_conf = self.world.order_confs[topic], queues = queues, brokers = brokers }
end

---@private
function NameServer:handle(command)
  if command.code ~= request.GET_ROUTEINFO_BY_TOPIC then
    return { code = response.REQUEST_CODE_NOT_SUPPORTED,
      remark = ("mock: request code %d is not known here"):format(command.code) }
  end
  local topic = command.ext.topic or ""
  local route = self:route(topic)
  if not route then
    return { code = response.TOPIC_NOT_EXIST,
      remark = ("mock: no broker has told this name server of topic %s"):format(topic) }
  end
  local standard = command.version >= STANDARD_JSON_VERSION
    or (command.ext.acceptStandardJsonOnly or ""):lower() == "true"
  return { code = response.SUCCESS,
    body = wire.encode_route(route, (self.bare_keys or not standard) and "bare" or nil) }
end

return NameServer
