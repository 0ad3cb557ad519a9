--- One accepted connection: bytes into requests, answers into as few writes as there were reads,
--- unless something else is asked for.
local uv = require "luv"
local countdown = require "rocketmq.mock.countdown"
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
---@param events table `request(connection, command, frame, is_new)` for each request, `is_new`
--- when no part of it was told before; `begun(connection, bytes,
--- size, is_new)` when there is only a part of one of so many bytes, `is_new` the first time that
--- its size is known; `settled(connection)`, which may be missing, when all of a read was told;
--- `drained(connection)`, which may be missing, when what could not be written at once has been; `bad(connection, why)`
--- when the bytes are no command (the connection is closed then, as a real server does);
--- `closed(connection)` once
---@return rocketmq.mock.Connection
function Connection.new(socket, number, events)
  local peer = socket:getpeername() or { ip = "?", port = 0 }
  local connection = setmetatable({
    number = number,
    peer = ("%s:%d"):format(peer.ip, peer.port),
    closed = false,
    ending = false, -- nothing more is read or put, what was put is still being written
    socket = socket,
    events = events,
    parts = {}, -- received and not yet decoded; `held` bytes in all
    held = 0,
    wanted = 0, -- decoding makes no sense before there are so many
    begun = false, -- the frame that `parts` begins has been told to `events.begun`
    out = {},   -- what is to be written: bytes, or a table of `put_slowly` or `finish`
    pausing = nil, -- handles that run between two parts of `put_slowly`; nothing is written meanwhile
  }, Connection)
  socket:unref()
  socket:nodelay(true)
  connection:listen()
  return connection
end

---@private
function Connection:listen()
  self.socket:read_start(function(err, chunk)
    if err or not chunk then return self:close() end
    self:receive(chunk)
  end)
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
  if #rest >= LENGTH_BYTES and not self.ending then self:look_at_begun(rest) end
  self:flush()
  if self.events.settled then self.events.settled(self) end
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
    local is_new = not self.begun
    self.begun = false
    self.events.request(self, command, frame, is_new)
  end
  return at
end

---@private
-- Part of a request is there. Whoever wants to hear of each further read of it says so by its
-- answer.
function Connection:look_at_begun(bytes)
  local is_new = not self.begun
  self.begun = true
  if self.events.begun(self, bytes, frame_size(bytes, 1), is_new) then self.wanted = 0 end
end

---Adds bytes to what the end of the turn writes.
---@param bytes string
function Connection:put(bytes)
  self.out[#self.out + 1] = bytes
end

---Adds bytes that are written one part after the other, each in a segment of its own.
---@param parts string[]
---@param pause_ms integer between two parts
function Connection:put_slowly(parts, pause_ms)
  self.out[#self.out + 1] = { parts = parts, pause_ms = pause_ms }
end

---@private
function Connection:write(bytes)
  if self.half_closed or #bytes == 0 then return end
  local written = self.socket:try_write(bytes) or 0
  if written == #bytes then return end
  self.socket:write(bytes:sub(written + 1), function()
    if not self.closed and self.events.drained then self.events.drained(self) end
  end)
end

---@private
-- Calls once when so many milliseconds are over and the loop has looked at its sockets since: a
-- client in this process has read what was written before. One call at a time.
function Connection:later(pause_ms, fn)
  local timer, idle, check = uv.new_timer(), uv.new_idle(), uv.new_check()
  self.pausing = { timer, idle, check }
  for _, handle in ipairs(self.pausing) do handle:unref() end
  countdown(timer, pause_ms, function()
    idle:start(function() end) -- the loop must not wait for anything else now
    check:start(function()
      self:stop_pausing()
      fn()
    end)
  end)
end

---@private
function Connection:stop_pausing()
  for _, handle in ipairs(self.pausing or {}) do handle:close() end
  self.pausing = nil
end

---@private
-- Writes one part, and comes back for the others.
function Connection:write_slowly(parts, number, pause_ms)
  self:write(parts[number])
  if number == #parts then return end
  self:later(pause_ms, function()
    self:write_slowly(parts, number + 1, pause_ms)
    self:flush()
  end)
end

---@private
-- What was put up to the next thing that is no mere bytes.
function Connection:next_bytes()
  local out, count = self.out, 0
  while type(out[count + 1]) == "string" do count = count + 1 end
  if count == #out then
    self.out = {}
    return count == 1 and out[1] or table.concat(out)
  end
  self.out = {}
  for index = count + 1, #out do self.out[index - count] = out[index] end
  return table.concat(out, "", 1, count)
end

---Writes what was put, in its order.
function Connection:flush()
  while #self.out > 0 and not (self.closed or self.pausing) do
    self:write(self:next_bytes())
    local step = table.remove(self.out, 1)
    if step and step.parts then
      self:write_slowly(step.parts, 1, step.pause_ms)
    elseif step then
      self:perform(step.how)
    end
  end
end

---@private
function Connection:perform(how)
  if how == "reset" then
    self:close(true)
  elseif how == "half" then
    self.half_closed = true
    self.socket:shutdown()
  elseif self.socket:get_write_queue_size() == 0 then
    self:close()
  else
    self.socket:shutdown(function() self:close() end)
  end
end

---Writes what was put, then ends the connection.
---@param how "close"|"reset"|"half"? in order (default), with an RST, or only in the direction to the
--- client
function Connection:finish(how)
  if self.closed or self.ending then return end
  self.out[#self.out + 1] = { how = how or "close" }
  if how ~= "half" then
    self.ending = true
    self.socket:read_stop()
  end
  self:flush()
end

---How many bytes wait to be written.
---@return integer
function Connection:unsent()
  return self.closed and 0 or self.socket:get_write_queue_size()
end

---Reads nothing until `resume`.
function Connection:hold()
  if self.closed or self.ending then return end
  self.is_held = true
  self.socket:read_stop()
end

---Reads again.
function Connection:resume()
  if not self.is_held or self.closed then return end
  self.is_held = false
  if not (self.ending or self.deaf) then self:listen() end
end

---Reads nothing for a time: what the client sends piles up at its side.
---@param ms integer
function Connection:pause_reading(ms)
  if self.closed or self.ending or self.deaf then return end
  self.socket:read_stop()
  self.deaf = assert(uv.new_timer())
  countdown(self.deaf, ms, function()
    self.deaf:close()
    self.deaf = nil
    if not (self.ending or self.is_held) then self:listen() end
  end)
  self.deaf:unref()
end

---Ends the connection now; what was put and not written is lost.
---@param reset boolean? with an RST
function Connection:close(reset)
  if self.closed then return end
  self.closed = true
  self:stop_pausing()
  if self.deaf then self.deaf:close() end
  if not self.socket:is_closing() then
    if not (reset and self.socket:close_reset()) then self.socket:close() end
  end
  self.events.closed(self)
end

return Connection
