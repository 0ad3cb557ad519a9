--- One accepted connection: bytes into requests, answers into as few writes as there were reads.
local wire = require "rocketmq.wire"

---@class rocketmq.mock.Connection
---@field number integer counted over the whole mock, from 1
---@field peer string "ip:port" of the client
---@field closed boolean
local Connection = {}
Connection.__index = Connection

local LENGTH_BYTES = 4

---@param socket userdata an accepted uv_tcp_t
---@param number integer
---@param events table `request(connection, command, frame)` for each request; `bad(connection, why)`
--- when the bytes are no command (the connection is closed then, as a real server does);
--- `closed(connection)` once
---@return rocketmq.mock.Connection
function Connection.new(socket, number, events)
  local peer = socket:getpeername() or { ip = "?", port = 0 }
  local connection = setmetatable({
    number = number,
    peer = ("%s:%d"):format(peer.ip, peer.port),
    closed = false,
    ending = false, -- nothing more is read, what was put is still being written
    socket = socket,
    events = events,
    parts = {}, -- received and not yet decoded; `held` bytes in all
    held = 0,
    wanted = 0, -- decoding makes no sense before there are so many
    out = {},   -- answers of this turn
  }, Connection)
  socket:unref()
  socket:nodelay(true)
  socket:read_start(function(err, chunk)
    if err or not chunk then return connection:close() end
    connection:receive(chunk)
  end)
  return connection
end

-- The whole length of the frame that starts at `at`, as far as it can be seen.
local function frame_size(bytes, at)
  local a, b, c, d = bytes:byte(at, at + LENGTH_BYTES - 1)
  if not d then return 0 end
  return LENGTH_BYTES + ((a * 256 + b) * 256 + c) * 256 + d
end

---@private
function Connection:receive(chunk)
  self.parts[#self.parts + 1] = chunk
  self.held = self.held + #chunk
  -- A long frame comes in many reads; joining them each time would copy it as often.
  if self.held < self.wanted then return end
  local bytes = #self.parts == 1 and chunk or table.concat(self.parts)
  local at = self:decode(bytes)
  if self.closed then return end
  local rest = at == 1 and bytes or bytes:sub(at)
  self.parts, self.held = { rest }, #rest
  self.wanted = frame_size(rest, 1)
  self:flush()
end

---@private
function Connection:decode(bytes)
  local at = 1
  while not (self.closed or self.ending) do
    local command, detail = wire.decode(bytes, at)
    if not command then
      if command == nil then
        self:flush()
        self.events.bad(self, detail)
        self:close()
      end
      break
    end
    local frame = bytes:sub(at, at + command.size - 1)
    at = at + command.size
    self.events.request(self, command, frame)
  end
  return at
end

---Adds bytes to what the end of the turn writes.
---@param bytes string
function Connection:put(bytes)
  self.out[#self.out + 1] = bytes
end

---Writes what was put.
function Connection:flush()
  if self.closed or #self.out == 0 then return end
  local bytes = #self.out == 1 and self.out[1] or table.concat(self.out)
  self.out = {}
  local written = self.socket:try_write(bytes) or 0
  if written < #bytes then self.socket:write(bytes:sub(written + 1)) end
end

---Writes what was put, then ends the connection in order.
function Connection:finish()
  if self.closed then return end
  self:flush()
  if self.socket:get_write_queue_size() == 0 then return self:close() end
  self.ending = true
  self.socket:read_stop()
  self.socket:shutdown(function() self:close() end)
end

---Ends the connection now; what was put and not written is lost.
---@param reset boolean? with an RST
function Connection:close(reset)
  if self.closed then return end
  self.closed = true
  if not self.socket:is_closing() then
    if not (reset and self.socket:close_reset()) then self.socket:close() end
  end
  self.events.closed(self)
end

return Connection
