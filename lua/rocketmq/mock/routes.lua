--- Questions about routes.
local wire = require "rocketmq.wire"
local answer = require "rocketmq.mock.answer"

-- From this version (4.9.4) on a client reads standard JSON; older ones are given bare integer keys. So
-- is everybody by a name server that is older.
local STANDARD_JSON_VERSION = 401

local function route_by_topic(server, command, connection)
  local topic = command.ext.topic or ""
  local route = server:route(topic, connection)
  if not route then
    return answer.refuse(wire.response.TOPIC_NOT_EXIST,
      "mock: no broker has told this name server of topic %s", topic)
  end
  if type(route) == "string" then return answer.ok(nil, route) end
  local reads_standard = command.version >= STANDARD_JSON_VERSION
    or (command.ext.acceptStandardJsonOnly or ""):lower() == "true"
  local writes_standard = server.world.version >= STANDARD_JSON_VERSION and not server.bare_keys
  return answer.ok(nil,
    wire.encode_route(route, not (reads_standard and writes_standard) and "bare" or nil))
end

---@type rocketmq.mock.Part
return { name_server = { [wire.request.GET_ROUTEINFO_BY_TOPIC] = route_by_topic } }
