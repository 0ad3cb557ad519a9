--- Requests that a broker makes to its clients.
local fields = require "rocketmq.mock.fields"
local rules = require "rocketmq.mock.rules"
local wait = require "rocketmq.mock.wait"
local wire = require "rocketmq.wire"

local DEFAULT_TIMEOUT = 5000

---@type rocketmq.mock.Field[]
local request_fields = {
  { name = "code", type = "code|string",
    help = "the request's code, as a number or a name: 39 or 'CHECK_TRANSACTION_STATE'" },
  { name = "ext", type = "table", help = "its ext fields" },
  { name = "body", type = "bytes", help = "its body" },
  { name = "remark", type = "string", help = "its remark" },
  { name = "oneway", type = "boolean", help = "no answer is asked for" },
  { name = "client", type = "string", help = "to the client with this id" },
  { name = "group", type = "string", help = "to the first client that has this producer group" },
  { name = "connection", type = "count", help = "to this connection, by its number" },
  { name = "timeout", type = "count", help = "milliseconds to wait for the answer; default 5000" },
}

-- The oldest connection that `wanted` accepts.
local function oldest(server, wanted)
  local found
  for connection in pairs(server.connections) do
    if wanted(connection) and not (found and found.number < connection.number) then
      found = connection
    end
  end
  return found
end

local function choose(broker, given)
  if given.client then return broker:connection_of_client(given.client) end
  if given.group then return broker:connections_of_group(given.group)[1] end
  return oldest(broker.server, function(connection)
    return given.connection == nil or connection.number == given.connection
  end)
end

local function check(given)
  if type(given) ~= "table" then error("request: must be given a table, not " .. type(given), 0) end
  fields.check("request", given, request_fields)
  local code = rules.code("request", given.code, wire.request)
  if not code then error("request: needs a code", 0) end
  local ext = fields.ext("request ext", given.ext)
  local command = { code = code, ext = ext, body = given.body, remark = given.remark }
  fields.check_command("request", command)
  command.oneway = given.oneway
  return command
end

---@class rocketmq.mock.Broker
local methods = {}

---Sends a request to a client that is connected to this server, and waits in this task for its
---answer. Without `client`, `group` and `connection` it goes to the oldest connection.
---@param given table `code`, `ext`, `body`, `remark`, `oneway`; `client`, `group` or `connection`;
--- `timeout` in milliseconds (5000)
---@return table? answer `code`, `remark`, `ext`, `body`; true for a oneway request
---@return string? err
function methods:request(given)
  local ok, request = pcall(check, given)
  if not ok then error(request, 2) end
  local connection = choose(self, given)
  if not connection then
    return nil, ("mock: no such client is connected to %s"):format(self.server.name)
  end
  local answer, why
  self.server:request(connection, request, function(...) answer, why = ... end)
  if given.oneway then return true end
  local timeout = given.timeout or DEFAULT_TIMEOUT
  wait(function() return answer or why end, timeout)
  if answer then return answer end
  return nil, "mock: " .. (why or ("no answer within %d ms"):format(timeout))
end

---@type rocketmq.mock.Part
return { broker = methods }
