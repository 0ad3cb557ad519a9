--- What --mock does: a cluster in this process, and a line that says that it is one.
local new_mock = require "rocketmq.mock"
local read_table = require "rocketmq.command.table"

-- So many messages can be asked for by id and key; the mock forgets the ones before.
local KEPT = 1000

---Starts the mock and says so on stderr.
---@param spec string? the inside of a description for `rocketmq.mock`; default two brokers
---@param quiet boolean? says nothing
---@return string namesrv its name servers' addresses
return function(spec, quiet)
  local given = { brokers = 2, keep = KEPT, echo_requests = true }
  for name, value in pairs(spec and read_table("--mock", spec) or {}) do given[name] = value end
  if given.proxy then
    error("'proxy' would send to a real RocketMQ; rmqlua mock --proxy does that", 0)
  end
  local mock = new_mock(given)
  if quiet then return mock.namesrv end
  local brokers = 0
  for _ in pairs(mock.brokers) do brokers = brokers + 1 end
  io.stderr:write(("mock: name server at %s, %d broker%s; nothing is stored and nothing is sent "
    .. "to a real RocketMQ\n"):format(mock.namesrv, brokers, brokers == 1 and "" or "s"))
  return mock.namesrv
end
