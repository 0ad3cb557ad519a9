--- A listening socket of the mock with its connections. What it answers is decided by its handler
--- and, before that, by the rules.
local uv = require "luv"
local wire = require "rocketmq.wire"
local Connection = require "rocketmq.mock.connection"

local RESPONSE, ONEWAY = 1, 2
local BACKLOG = 512

---@class rocketmq.mock.Server
---@field name string "namesrv-1", "broker-a", "broker-a#1"
---@field addr string "127.0.0.1:port"; the port stays the same over stop and start
---@field port integer
---@field running boolean
local Server = {}
Server.__index = Server

-- A socket bound to the port, not yet listening. One that is bound keeps others off the port, and
-- whoever connects to it is refused.
local function bound(host, port)
  local socket = assert(uv.new_tcp())
  assert(socket:bind(host, port))
  socket:unref()
  return socket
end

---@param options table `name`, `labels` (set of what a rule's `at` may call it), `world` (see
--- init.lua: rules, journal, version, next_connection, now), `handle(command, connection,
--- entry)` giving an answer or nil, `lost(connection)` when a connection has ended
---@return rocketmq.mock.Server
function Server.new(options)
  local self = setmetatable({
    name = options.name,
    labels = options.labels,
    world = options.world,
    handle = options.handle,
    lost = options.lost,
    host = options.host or "127.0.0.1",
    connections = {},
    timers = {},
    calls = {}, -- requests of ours that wait for their answers: by opaque, `connection` and `done`
    last_opaque = 0,
    running = false,
    closed = false,
  }, Server)
  self.socket = bound(self.host, 0)
  self.port = self.socket:getsockname().port
  self.addr = ("%s:%d"):format(self.host, self.port)
  self:start()
  return self
end

---Opens the port (again). Does nothing when it is open.
function Server:start()
  if self.running or self.closed then return end
  self.running = true
  assert(self.socket:listen(BACKLOG, function(err)
    if not err then self:accept() end
  end))
end

---Closes the port and all connections; whoever connects is refused until `start`. Nothing is
---forgotten.
function Server:stop()
  if not self.running then return end
  self.running = false
  self.socket:close()
  self:disconnect()
  self.socket = bound(self.host, self.port)
end

---Ends all connections; the port stays open.
---@param reset boolean? with an RST
function Server:disconnect(reset)
  for timer in pairs(self.timers) do timer:close() end
  self.timers = {}
  local open = {}
  for connection in pairs(self.connections) do open[#open + 1] = connection end
  table.sort(open, function(a, b) return a.number < b.number end)
  for _, connection in ipairs(open) do connection:close(reset) end
end

---Ends the server for good.
function Server:close()
  if self.closed then return end
  self.closed, self.running = true, false
  self.socket:close()
  self:disconnect()
end

---@private
function Server:accept()
  local socket = assert(uv.new_tcp())
  if not self.socket:accept(socket) then return socket:close() end
  local connection = Connection.new(socket, self.world.next_connection(), {
    request = function(from, command, frame) self:serve(from, command, frame) end,
    bad = function(from, why)
      self.world.journal:bad(self.name, from.number, why)
    end,
    closed = function(from)
      self.connections[from] = nil
      self:give_up(from)
      if self.lost then self.lost(from) end
    end,
  })
  self.connections[connection] = true
end

local function is_set(flag, bit)
  return flag % (bit * 2) >= bit
end

---@private
function Server:serve(connection, command, frame)
  if is_set(command.flag, RESPONSE) then return self:answered(connection, command) end
  local topic = command.ext.topic or command.ext.b
  local entry = self.world.journal:request(self, connection, command, frame, topic)
  local rule = self.world.rule_for(self.labels, command.code, topic)
  if rule then return self:misbehave(rule, connection, command, entry) end
  local answer = self.handle(command, connection, entry)
  if answer then self:answer(connection, command, answer) end
end

---Sends a request of the server's own to a client.
---@param connection rocketmq.mock.Connection one of this server
---@param fields table `code`, `ext`, `body`, `remark`, `oneway`
---@param done fun(answer: table?, err: string?)? called once, when it is not oneway
function Server:request(connection, fields, done)
  self.last_opaque = self.last_opaque + 1
  local opaque = self.last_opaque
  if done and not fields.oneway then
    self.calls[opaque] = { connection = connection, done = done }
  end
  connection:put(wire.encode {
    serialize = "json",
    code = fields.code,
    opaque = opaque,
    flag = fields.oneway and ONEWAY or 0,
    language = "JAVA",
    version = self.world.version,
    remark = fields.remark,
    ext = fields.ext,
    body = fields.body,
  })
  connection:flush()
end

---@private
function Server:answered(connection, command)
  local call = self.calls[command.opaque]
  if not call or call.connection ~= connection then return end
  self.calls[command.opaque] = nil
  call.done(command)
end

---@private
-- Ends the calls whose answers would have come on this connection.
function Server:give_up(connection)
  local lost = {}
  for opaque, call in pairs(self.calls) do
    if call.connection == connection then lost[#lost + 1] = opaque end
  end
  table.sort(lost)
  for _, opaque in ipairs(lost) do
    local call = self.calls[opaque]
    self.calls[opaque] = nil
    call.done(nil, "the connection has ended")
  end
end

---@private
function Server:answer(connection, command, answer)
  if is_set(command.flag, ONEWAY) then return end
  connection:put(wire.encode {
    serialize = "json",
    code = answer.code,
    opaque = command.opaque,
    flag = RESPONSE,
    language = "JAVA",
    version = self.world.version,
    remark = answer.remark,
    ext = answer.ext,
    body = answer.body,
  })
end

-- What a rule makes of the usual answer: the rule's own, with the ext fields of the usual one
-- when the request was carried out.
local function changed_answer(rule, usual)
  if not rule.answer then return usual end
  local ext = {}
  for name, value in pairs(usual and usual.code == 0 and usual.ext or {}) do ext[name] = value end
  for name, value in pairs(rule.answer.ext or {}) do ext[name] = tostring(value) end
  return { code = rule.answer.code, remark = rule.answer.remark, ext = next(ext) and ext or nil,
    body = rule.answer.body or usual and usual.code == 0 and usual.body or nil }
end

---@private
function Server:misbehave(rule, connection, command, entry)
  local usual = rule.store and self.handle(command, connection, entry) or nil
  local answer = changed_answer(rule, usual)
  if not rule.delay then return self:act(rule, connection, command, answer) end
  local timer = assert(uv.new_timer())
  self.timers[timer] = true
  timer:start(rule.delay, 0, function()
    self.timers[timer] = nil
    timer:close()
    self:act(rule, connection, command, answer)
    connection:flush()
  end)
  timer:unref()
end

---@private
function Server:act(rule, connection, command, answer)
  if rule.reset then return connection:close(true) end
  if rule.raw then
    connection:put(rule.raw)
  elseif answer and not rule.silent and (rule.answer or not rule.close) then
    self:answer(connection, command, answer)
  end
  if rule.close then connection:finish() end
end

return Server
