--- The mock as a proxy: servers that pass everything on to real ones, and that the rules apply to. A name
--- server's answers are rewritten, so that clients come to brokers through a proxy too.
local wire = require "rocketmq.wire"
local answer_of = require "rocketmq.mock.answer"
local Link = require "rocketmq.mock.link"
local Server = require "rocketmq.mock.server"
local faults = require "rocketmq.mock.faults"
local fields = require "rocketmq.mock.fields"
local naming = require "rocketmq.naming"
local plugins = require "rocketmq.native.plugins"
local unproxied = require "rocketmq.mock.unproxied"

local request = wire.request
local GET_BROKER_CLUSTER_INFO = 106
local MASTER = 0

-- Answers to these sends say where the messages are stored.
local SENDS = { [request.SEND_MESSAGE] = true, [request.SEND_MESSAGE_V2] = true,
  [request.SEND_BATCH_MESSAGE] = true }

---@class rocketmq.mock.Proxy stands in front of one server
---@field name string "namesrv-1", "broker-a", "broker-a#1"
---@field addr string where it listens
---@field port integer
---@field upstream string the address of the server behind it
local Proxy = {}
Proxy.__index = Proxy

-- Notes the messages of a send that the broker says it has stored.
local function note_stored(world, broker, command, entry, answer)
  local stored = SENDS[command.code] and answer_of.says_stored(answer.code) and answer.ext.msgId
  local header = stored and wire.decode_send_header(command)
  if not header then return end
  local queue_id = tonumber(answer.ext.queueId) or header.queue_id
  local offset, number = tonumber(answer.ext.queueOffset) or 0, 0
  local batch = command.code == request.SEND_BATCH_MESSAGE
  for id in stored:gmatch "[^,]+" do
    world.journal:message { request = entry, topic = header.topic, broker = broker,
      queue_id = queue_id, queue_offset = offset + number, offset_msg_id = id,
      member = batch and number + 1 or nil }
    number = number + 1
  end
end

---@private
-- The answer's frame as it goes to the client, its opaque replaced when there is one to replace it.
function Proxy:frame_of(answer, frame, rule, opaque)
  if rule and rule.answer then
    return faults.encode(answer, faults.changed_answer(rule, answer), answer.version, opaque)
  end
  return opaque and self:encode(answer, answer.body, opaque) or frame
end

---@private
function Proxy:encode(answer, body, opaque) -- luacheck: no self
  return wire.encode { serialize = answer.serialize, code = answer.code,
    opaque = opaque or answer.opaque, flag = answer.flag, language = answer.language,
    version = answer.version, remark = answer.remark, ext = answer.ext, body = body }
end

---@private
function Proxy:answered(connection, command, entry, rule, answer, frame)
  if self.broker_name then
    note_stored(self.world, self.broker_name, command, entry, answer)
  else
    local body = self.rewrite(command, answer, connection)
    if body then
      frame = self:encode(answer, body)
      answer.body = body
    end
  end
  if not rule then return connection:put(frame) end
  self.server:misbehave(rule, connection, function(opaque)
    return self:frame_of(answer, frame, rule, opaque)
  end, command)
end

local function nothing() return nil end

---@private
-- Passes a request on, and its answer back, in which a rule may see to it.
function Proxy:pass(connection, command, frame, entry, rule)
  local link = self.links[connection]
  if not link then return end
  if not entry then return link:pass(frame) end -- an answer to a request of the server's
  if not faults.is_oneway(command) then
    return link:pass(frame, command.opaque, function(answer, answer_frame)
      self:answered(connection, command, entry, rule, answer, answer_frame)
    end)
  end
  link:pass(frame)
  if rule then self.server:misbehave(rule, connection, nothing, command) end
end

---@private
function Proxy:accepted(connection)
  self.links[connection] = Link.new(connection, self.upstream, function(why)
    self.world.journal:bad(self.name, connection.number, why)
    self.world.trouble(self.name, why)
  end)
end

---@private
function Proxy:lost(connection)
  local link = self.links[connection]
  self.links[connection] = nil
  if link then link:close() end
end

---Closes the port and all connections: connecting is refused until `start`.
function Proxy:stop() self.server:stop() end

---Opens the same port again.
function Proxy:start() self.server:start() end

---Goes to another port. Routes that are asked for from now on name it.
function Proxy:move()
  self.server:move()
  self.addr, self.port = self.server.addr, self.server.port
end

---Ends the connections; the port stays open.
---@param reset boolean? with an RST
function Proxy:disconnect(reset)
  fields.argument("disconnect", "reset", "boolean|nil", reset)
  self.server:disconnect(reset)
end

---Writes bytes that nobody asked for to all clients.
---@param bytes string
function Proxy:write(bytes)
  fields.argument("write", "bytes", "bytes", bytes)
  self.server:write(bytes)
end

naming.guard_methods("proxy", Proxy)
unproxied.add(Proxy)

-- A proxy in front of `upstream`. `given`: `name`, `labels`, `broker_name`, `rewrite`, `port`.
local function new_proxy(world, upstream, given)
  local self = setmetatable({ world = world, upstream = upstream, name = given.name, links = {},
    broker_name = given.broker_name, rewrite = given.rewrite }, Proxy)
  self.server = Server.new {
    name = given.name,
    labels = given.labels,
    world = world,
    port = given.port,
    accepted = function(connection) self:accepted(connection) end,
    pass = function(...) self:pass(...) end,
    settled = function(connection)
      local link = self.links[connection]
      if link then link:settled() end
    end,
    drained = function(connection)
      local link = self.links[connection]
      if link then link:drained() end
    end,
    lost = function(connection) self:lost(connection) end,
  }
  self.server.broker = given.broker_name
  self.addr, self.port = self.server.addr, self.server.port
  return self
end

-- The proxy in front of a broker's server, made when it is heard of for the first time. A server
-- that has moved keeps its proxy.
local function broker_proxy(mock, name, id, upstream)
  local servers = mock.brokers[name] or {}
  mock.brokers[name] = servers
  local proxy = servers[id]
  if proxy then
    proxy.upstream = upstream
    return proxy
  end
  local suffix = "#" .. id
  proxy = new_proxy(mock.world, upstream, {
    name = id == MASTER and name or name .. suffix,
    labels = { broker = true, [name] = true, [name .. suffix] = true },
    broker_name = name,
  })
  servers[id] = proxy
  mock.world.appeared(proxy)
  return proxy
end

-- Each broker's server in a route: name, id, address.
local function each_in_route(body, visit)
  local route = wire.decode_route(body)
  for _, broker in ipairs(route and route.brokers or {}) do
    for id, addr in pairs(broker.addrs) do visit(broker.broker_name, tonumber(id), addr) end
  end
end

-- Each broker's server in what a name server says of its cluster.
local function each_in_cluster(body, visit)
  local all = body:match '"brokerAddrTable"%s*:%s*(%b{})' or "{}"
  for name, broker in all:sub(2, -2):gmatch '"([^"]*)"%s*:%s*(%b{})' do
    local addrs = broker:match '"brokerAddrs"%s*:%s*(%b{})' or "{}"
    for id, addr in addrs:gmatch '"?(%d+)"?%s*:%s*"([^"]*)"' do visit(name, tonumber(id), addr) end
  end
end

-- Warns once of each rule for a broker that no route has named: mostly it is a typing error, but it
-- may be one of which no client has heard yet.
local function check_rules(mock)
  local known = {}
  for name in pairs(mock.brokers) do known[#known + 1] = name end
  table.sort(known)
  for _, rule in ipairs(mock.world.rules) do
    local name = rule.at and rule.at:match "^[^#]+"
    local is_placed = not name or name == "broker" or name:find "^namesrv" or mock.brokers[name]
    if not is_placed and not rule.is_warned_of and not rule.removed then
      rule.is_warned_of = true
      plugins.log("warn", ("mock: a rule is for '%s', and no route has named such a broker yet; "
        .. "they have named %s"):format(rule.at, table.concat(known, ", ")))
    end
  end
end

local readers = { [request.GET_ROUTEINFO_BY_TOPIC] = each_in_route,
  [GET_BROKER_CLUSTER_INFO] = each_in_cluster }

-- The body of a name server's answer with the addresses of proxies; nil when it has none. All else in it
-- stays as it came.
local function rewritten(mock, command, answer, connection)
  local each = readers[command.code]
  if not each or answer.code ~= wire.response.SUCCESS then return nil end
  local proxied = {}
  each(answer.body, function(name, id, addr)
    local proxy = broker_proxy(mock, name, id, addr)
    proxied[addr] = proxy.server:address_for(connection)
  end)
  if not next(proxied) then return nil end
  check_rules(mock)
  return (answer.body:gsub('("brokerAddrs"%s*:%s*)(%b{})', function(before, addrs)
    return before .. addrs:gsub('"([^"]*)"', function(addr)
      return proxied[addr] and '"' .. proxied[addr] .. '"'
    end)
  end))
end

local proxy = {}

---Starts proxies in front of name servers.
---@param mock rocketmq.Mock
---@param namesrv string their addresses, "host:port;host:port"
---@param port integer that the first one takes; 0: any
function proxy.start(mock, namesrv, port)
  for upstream in namesrv:gmatch "[^;,%s]+" do
    local index = #mock.name_servers + 1
    local name = "namesrv-" .. index
    mock.name_servers[index] = new_proxy(mock.world, upstream, {
      name = name,
      labels = { namesrv = true, [name] = true },
      port = index == 1 and port or 0,
      rewrite = function(command, answer, connection)
        return rewritten(mock, command, answer, connection)
      end,
    })
  end
end

return proxy
