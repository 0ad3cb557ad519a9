--- A listening socket of the mock with its connections. What it answers is decided by its handler
--- and, before that, by the rules.
local uv = require "luv"
local wire = require "rocketmq.wire"
local answers = require "rocketmq.mock.answer"
local Connection = require "rocketmq.mock.connection"
local countdown = require "rocketmq.mock.countdown"
local faults = require "rocketmq.mock.faults"

local RESPONSE, ONEWAY = 1, 2 -- bits of a command's flag
local BACKLOG = 512
local EVERY_HOST = "0.0.0.0"

---@class rocketmq.mock.Server
---@field name string "namesrv-1", "broker-a", "broker-a#1"
---@field addr string "127.0.0.1:port"; the port stays the same over stop and start, not over `move`
---@field port integer
---@field running boolean
local Server = {}
Server.__index = Server

-- What to do about an address that cannot be had, by luv's name of the error.
local advice = {
  EADDRINUSE = "; end the program, or the other mock, that listens there, or listen on another "
    .. "port (0 is any)",
  EADDRNOTAVAIL = "; this machine has no such address: 0.0.0.0 is all that it has, 127.0.0.1 "
    .. "is for itself only",
  EACCES = "; listen on a port from 1024 on (0 is any), lower ones are for the system",
}

local function cannot_listen(host, port, why, name)
  error(("mock: cannot listen on %s:%d: %s%s"):format(host, port, why, advice[name] or ""), 0)
end

-- A socket bound to the port, not yet listening. One that is bound keeps others off the port, and
-- whoever connects to it is refused.
local function bound(host, port)
  local socket = assert(uv.new_tcp())
  socket:unref()
  local ok, why, name = socket:bind(host, port)
  if not ok then
    socket:close()
    cannot_listen(host, port, why, name)
  end
  return socket
end

---@param options table `name`, `labels` (set of what a rule's `at` may call it), `world` (see
--- init.lua: rules, journal, version, next_connection, now), `port` (0, the default: any),
--- `handle(command, connection, entry)` giving an answer or nil, `lost(connection)` when a
--- connection has ended; instead of `handle` there may be `pass(connection, command, frame, entry,
--- rule)`, which sees to the answer, and to the rule if there is one, itself, and gets what clients
--- answer too, without an entry; and with it
--- `accepted(connection)`, `settled(connection)` and `drained(connection)`
---@return rocketmq.mock.Server
function Server.new(options)
  local self = setmetatable({
    name = options.name,
    labels = options.labels,
    world = options.world,
    handle = options.handle,
    lost = options.lost,
    pass = options.pass,
    accepted = options.accepted,
    settled = options.settled,
    drained = options.drained,
    host = options.world.host,
    connections = {},
    timers = {},
    calls = {}, -- requests of ours that wait for their answers: by opaque, `connection` and `done`
    last_opaque = 0,
    running = false,
    closed = false,
  }, Server)
  self:bind(options.port or 0)
  self:start()
  return self
end

---@private
function Server:bind(port)
  self.socket = bound(self.host, port)
  -- When the port is another's, listening fails, and there may be no name, or one without it.
  local own = port == 0 and self.socket:getsockname()
  self.port = own and own.port or port
  self.ip = self.host == EVERY_HOST and "127.0.0.1" or self.host
  self.addr = ("%s:%d"):format(self.ip, self.port)
end

---The address by which the client of a connection, to this or another server, can reach this one: where
---servers listen on every address, the one that this client came to.
---@param connection rocketmq.mock.Connection?
---@return string
function Server:address_for(connection)
  local own = self.host == EVERY_HOST and connection and connection.socket:getsockname()
  return own and ("%s:%d"):format(own.ip, self.port) or self.addr
end

---Opens the port (again). Does nothing when it is open.
function Server:start()
  if self.running or self.closed then return end
  self.running = true
  local ok, why, name = self.socket:listen(BACKLOG, function(err)
    if not err then self:accept() end
  end)
  if ok then return end
  self:close()
  cannot_listen(self.host, self.port, why, name)
end

---Closes the port and all connections; whoever connects is refused until `start`. Nothing is
---forgotten.
function Server:stop()
  if not self.running then return end
  self.running = false
  self.socket:close()
  self:disconnect()
  self:bind(self.port)
end

---Goes to another port: the old one is closed, with all connections, and refuses from now on.
function Server:move()
  if self.closed then return end
  local was_running, old = self.running, self.socket
  self.running = false
  self:bind(0) -- before the old one is given up: so it is another
  old:close()
  self:disconnect()
  if was_running then self:start() end
end

---The open connections, in the order of their making.
---@return rocketmq.mock.Connection[]
function Server:open_connections()
  local open = {}
  for connection in pairs(self.connections) do open[#open + 1] = connection end
  table.sort(open, function(a, b) return a.number < b.number end)
  return open
end

---Writes bytes that nobody asked for to all connections.
---@param bytes string
function Server:write(bytes)
  for _, connection in ipairs(self:open_connections()) do
    connection:put(bytes)
    connection:flush()
  end
end

---Ends all connections; the port stays open.
---@param reset boolean? with an RST
function Server:disconnect(reset)
  for timer in pairs(self.timers) do timer:close() end
  self.timers = {}
  for _, connection in ipairs(self:open_connections()) do connection:close(reset) end
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
    request = function(from, command, frame, is_new) self:serve(from, command, frame, is_new) end,
    begun = function(from, bytes, size, is_new) return self:begun(from, bytes, size, is_new) end,
    settled = self.settled,
    drained = self.drained,
    bad = function(from, why)
      self.world.journal:bad(self.name, from.number, why)
      self.world.refused(self.name, from, why)
    end,
    closed = function(from)
      self.connections[from] = nil
      self:give_up(from)
      if self.lost then self.lost(from) end
    end,
  })
  self.connections[connection] = true
  if self.accepted then self.accepted(connection) end
  local rule = self.world.rule_for("connect", self.labels)
  if not rule then return end
  self:misbehave(rule, connection)
  connection:flush()
end

local function is_set(flag, bit)
  return flag % (bit * 2) >= bit
end

local function topic_of(command)
  return command.ext.topic or command.ext.b
end

-- The header of a request of which there is a part only; nil before all of it is there.
local function peek(bytes)
  local kind, a, b, c = bytes:byte(5, 8)
  if not c then return nil end
  local length = (a * 256 + b) * 256 + c
  if #bytes < 8 + length then return nil end
  return (wire.decode_header(kind == 0 and "json" or "rocketmq", bytes:sub(9, 8 + length)))
end

---@private
-- The rule that is to act while a request of `size` bytes is being read. It is looked for as the
-- request begins, and once more, among those that ask for it, when its header is known.
function Server:reading_rule(connection, size, is_new, header)
  if is_new then
    connection.read_header = false
    connection.read_rule = self.world.reading_rule(self.labels, size)
  end
  if header and not connection.read_header then
    connection.read_header = true
    connection.read_rule = connection.read_rule
      or self.world.reading_rule(self.labels, size, header.code, topic_of(header) or "")
  end
  return connection.read_rule
end

---@private
-- Part of a request is there. True when it should be told of each further read.
function Server:begun(connection, bytes, size, is_new)
  if not self.world.has_reading_rules then return false end
  local header = (is_new or not connection.read_header) and peek(bytes) or nil
  local rule = self:reading_rule(connection, size, is_new, header)
  if rule and #bytes >= rule.after_read then connection:finish(rule.ending) end
  return true
end

---@private
-- True when a rule ends the connection before all of this request has been read.
function Server:cut_off(connection, command, is_new)
  local rule = self:reading_rule(connection, command.size, is_new, command)
  if rule then connection:finish(rule.ending) end
  return rule ~= nil
end

---@private
function Server:serve(connection, command, frame, is_new)
  if is_set(command.flag, RESPONSE) then
    if self.pass then return self.pass(connection, command, frame) end
    return self:answered(connection, command)
  end
  if self.world.has_reading_rules and self:cut_off(connection, command, is_new) then return end
  local topic = topic_of(command)
  local entry = self.world.journal:request(self, connection, command, frame, topic)
  self.world.noted(entry)
  local rule = self.world.rule_for("request", self.labels, command.code, topic)
  if self.pass and not (rule and not rule.store) then
    return self.pass(connection, command, frame, entry, rule)
  end
  if rule then
    return self:misbehave(rule, connection, self:frame_for(rule, connection, command, entry),
      command)
  end
  local answer = self:carry_out(command, connection, entry)
  if answer then self:answer(connection, command, answer) end
end

---@private
-- What the handler answers. When it fails, as a function of the script's may in it, the client is told, as
-- a real server does.
function Server:carry_out(command, connection, entry)
  local ok, answer = pcall(self.handle, command, connection, entry)
  if ok then return answer end
  return answers.refuse(wire.response.SYSTEM_ERROR, "%s", faults.report(self.name, answer))
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
  if faults.is_oneway(command) then return end
  connection:put(faults.encode(command, answer, self.world.version))
end

---@private
-- The answer's frame as a rule wants it; the request is carried out if the rule says so.
function Server:frame_for(rule, connection, command, entry)
  local usual = rule.store and self:carry_out(command, connection, entry) or nil
  local answer = faults.changed_answer(rule, usual)
  return function(opaque)
    if not answer or faults.is_oneway(command) then return nil end
    return faults.encode(command, answer, self.world.version, opaque)
  end
end

---What a rule does, now or after its delay.
---@param rule rocketmq.mock.Rule
---@param connection rocketmq.mock.Connection
---@param frame fun(opaque: integer?): string? see `rocketmq.mock.faults`
---@param command table?
function Server:misbehave(rule, connection, frame, command)
  if not rule.delay then return faults.act(rule, connection, frame, command) end
  local timer = assert(uv.new_timer())
  self.timers[timer] = true
  countdown(timer, rule.delay, function()
    self.timers[timer] = nil
    timer:close()
    faults.act(rule, connection, frame, command)
    connection:flush()
  end)
  timer:unref()
end

return Server
