--- A client's connection to a proxy, and the proxy's own to the server behind it. Frames pass in
--- both directions as they came; whoever reads too slowly holds up the other.
local uv = require "luv"
local bit = require "bit"
local Connection = require "rocketmq.mock.connection"

local RESPONSE = 1
local MOST_UNSENT = 1048576 -- bytes that may wait for one side before the other is no longer read

---@class rocketmq.mock.Link
---@field client rocketmq.mock.Connection
---@field upstream rocketmq.mock.Connection? once connected
local Link = {}
Link.__index = Link

local function split_address(addr)
  local host, port = addr:match "^%[(.+)%]:(%d+)$"
  if not host then host, port = addr:match "^(.*):(%d+)$" end
  return host, tonumber(port)
end

---Connects to the server behind a proxy.
---@param client rocketmq.mock.Connection
---@param addr string "host:port"
---@param trouble fun(why: string) called when there is no connection, or no frame on it
---@return rocketmq.mock.Link
function Link.new(client, addr, trouble)
  local self = setmetatable({ client = client, addr = addr, trouble = trouble, closed = false,
    early = {}, -- frames from before the connection stood; `early_bytes` of them
    early_bytes = 0,
    asked = {} }, Link) -- what is to be called with the answers, by opaque
  local host, port = split_address(addr)
  if not host then
    self:fail "not an address"
    return self
  end
  uv.getaddrinfo(host, nil, { socktype = "stream" }, function(err, found)
    if self.closed then return end
    if err or not found[1] then return self:fail(err or "no address found") end
    self:connect(found[1].addr, port)
  end)
  return self
end

---@private
function Link:fail(why)
  self.trouble(("%s: %s"):format(self.addr, why))
  self:close()
end

---@private
function Link:connect(ip, port)
  self.socket = assert(uv.new_tcp())
  self.socket:unref()
  self.socket:connect(ip, port, function(err)
    if self.closed then return end
    if err then return self:fail(err) end
    self:connected()
  end)
end

---@private
function Link:connected()
  self.upstream = Connection.new(self.socket, self.client.number, {
    request = function(_, command, frame) self:received(command, frame) end,
    begun = function() return false end,
    settled = function() self:settle(self.client, self.upstream) end,
    drained = function() self.client:resume() end,
    bad = function(_, why) self.trouble(("%s: %s"):format(self.addr, why)) end,
    closed = function() self:close() end,
  })
  for _, frame in ipairs(self.early) do self.upstream:put(frame) end
  self.early = {}
  self.client:resume()
  self:settle(self.upstream, self.client)
end

---@private
function Link:received(command, frame)
  local is_answer = bit.band(command.flag, RESPONSE) ~= 0
  local done = is_answer and self.asked[command.opaque]
  if not done then return self.client:put(frame) end
  self.asked[command.opaque] = nil
  done(command, frame)
end

---@private
-- Writes what was put for `to`; while too much of it is unsent, `from` is not read.
function Link:settle(to, from)
  if self.closed or not to then return end
  to:flush()
  if to:unsent() > MOST_UNSENT then from:hold() end
end

---Passes a frame of the client on.
---@param frame string
---@param opaque integer? of a request that has an answer, for which `done` is then called
---@param done fun(answer: table, frame: string)?
function Link:pass(frame, opaque, done)
  if self.closed then return end
  if done then self.asked[opaque] = done end
  if self.upstream then
    self.upstream:put(frame)
  else
    self.early[#self.early + 1] = frame
    self.early_bytes = self.early_bytes + #frame
  end
end

---What one read of the client brought has been passed.
function Link:settled()
  if not self.upstream and self.early_bytes > MOST_UNSENT then self.client:hold() end
  self:settle(self.upstream, self.client)
end

---The client has taken what was written for it.
function Link:drained()
  if self.upstream then self.upstream:resume() end
end

---Ends both sides.
function Link:close()
  if self.closed then return end
  self.closed = true
  if self.upstream then
    self.upstream:close()
  elseif self.socket and not self.socket:is_closing() then
    self.socket:close()
  end
  self.client:flush()
  self.client:close()
end

return Link
