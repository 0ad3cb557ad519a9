--- A client for specs that speaks to a server by itself: socket, frames, nothing of the producer.
local uv = require "luv"
local wait = require "rocketmq.mock.wait"
local wire = require "rocketmq.wire"

local TIMEOUT = 5000

local Client = {}
Client.__index = Client

local function receive(client, chunk)
  client.bytes = client.bytes .. chunk
  while not client.raw do
    local command, why = wire.decode(client.bytes, 1)
    if command == nil then error("the server sent what is no frame: " .. tostring(why)) end
    if not command then return end
    client.bytes = client.bytes:sub(command.size + 1)
    client.replies[command.opaque] = command
    client.order[#client.order + 1] = command.opaque
  end
end

-- Fields: `replies` by opaque, `order` of their opaques as they came, `ended` once the server has
-- closed, `raw` (set by a spec) to leave what comes undecoded in `bytes`.

--- Connects; nil and the error's name when that fails.
function Client.connect(addr)
  local host, port = addr:match("^(.*):(%d+)$")
  local socket = assert(uv.new_tcp())
  local client = setmetatable({ socket = socket, bytes = "", replies = {}, order = {},
    opaque = 0 }, Client)
  local state
  socket:connect(host, tonumber(port), function(err) state = err or "connected" end)
  assert(wait(function() return state end, TIMEOUT), "connecting takes too long")
  if state ~= "connected" then
    socket:close()
    return nil, state
  end
  socket:read_start(function(err, chunk)
    if chunk then return receive(client, chunk) end
    client.ended = err or "end"
  end)
  return client
end

--- The bytes of a request; fields as wire.encode has them, over defaults.
function Client:encode(fields)
  self.opaque = self.opaque + 1
  local command = { serialize = "json", opaque = self.opaque, flag = 0, language = "OTHER",
    version = 479 }
  for name, value in pairs(fields) do command[name] = value end
  return wire.encode(command), command.opaque
end

function Client:write(bytes)
  self.socket:write(bytes)
end

--- Sends a request and gives its opaque.
function Client:send(fields)
  local bytes, opaque = self:encode(fields)
  self:write(bytes)
  return opaque
end

--- The reply with this opaque; nil when none comes before the connection or the time ends.
function Client:reply(opaque)
  wait(function() return self.replies[opaque] or self.ended end, TIMEOUT)
  return self.replies[opaque]
end

--- Sends a request and waits for its reply.
function Client:request(fields)
  return self:reply(self:send(fields))
end

--- Waits until the server has ended the connection; gives "end" or the error's name.
function Client:wait_end()
  return wait(function() return self.ended end, TIMEOUT)
end

function Client:close()
  if not self.socket:is_closing() then self.socket:close() end
end

return Client
