--- What the servers of a mock can do, one kind of request in a file of its own. A part is a table;
--- the servers look a request's code up in the `handlers` of all parts.

---What a handler gives back. Nil when there is nothing to answer.
---@class rocketmq.mock.Answer
---@field code integer
---@field remark string?
---@field ext table<string, string>?
---@field body string?

---A message that a broker accepted and has not stored yet.
---@class rocketmq.mock.Sent
---@field topic string
---@field queue_id integer
---@field asked_queue_id? integer that of the request, when `check` has changed it: the answer has this one
---@field header table the send header, as `rocketmq.wire.decode_send_header` gives it
---@field body string
---@field properties string as on the wire; what `keep` or `check` leaves here is stored
---@field entry table the journal's entry of the request
---@field connection rocketmq.mock.Connection

---All fields are optional.
---@class rocketmq.mock.Part
---@field handlers? table<integer, rocketmq.mock.BrokerHandler> what a broker does with a request code
---@field name_server? table<integer, rocketmq.mock.NameServerHandler> the same for a name server
---@field check? fun(broker: rocketmq.mock.Broker, sent: rocketmq.mock.Sent): rocketmq.mock.Answer?
--- refuses a message
---@field keep? fun(broker: rocketmq.mock.Broker, sent: rocketmq.mock.Sent): rocketmq.mock.Answer?
--- takes a message that is not to be stored now, and gives the answer; later it may call
--- `broker:store(sent)` itself
---@field start? fun(broker: rocketmq.mock.Broker) when a server has been made
---@field lost? fun(broker: rocketmq.mock.Broker, connection: rocketmq.mock.Connection) when one of its
--- connections has ended
---@field clear? fun(world: table) when what has come is forgotten
---@field broker? table<string, function> methods that brokers get
---@field mock? table<string, function> methods that the mock gets
---@field fields? rocketmq.mock.Field[] of the mock's description; `world.options` has what was given

---Gets the server, the command as `rocketmq.wire.decode` gives it, the connection on which it came,
---and the journal's entry of it.
---@alias rocketmq.mock.BrokerHandler
---| fun(broker: rocketmq.mock.Broker, command: table, connection: table, entry: table): table?
---@alias rocketmq.mock.NameServerHandler
---| fun(server: rocketmq.mock.NameServer, command: table, connection: table): table?

---@type rocketmq.mock.Part[]
local list = {
  require "rocketmq.mock.sends",
  require "rocketmq.mock.clients",
  require "rocketmq.mock.admin",
  require "rocketmq.mock.traces",
  require "rocketmq.mock.routes",
  require "rocketmq.mock.calls",
  require "rocketmq.mock.retries",
  require "rocketmq.mock.transactions",
  require "rocketmq.mock.timer",
  require "rocketmq.mock.replies",
}

local parts = { list = list }

-- The tables that all parts have under one name, as one table.
local function merged(name)
  local all = {}
  for _, part in ipairs(list) do
    for key, value in pairs(part[name] or {}) do
      assert(all[key] == nil, "two parts of the mock have the same " .. name)
      all[key] = value
    end
  end
  return all
end

parts.handlers = merged "handlers"
parts.name_server = merged "name_server"
parts.broker_methods = merged "broker"
parts.mock_methods = merged "mock"

---Calls what each part has under this name, in order, until one gives something.
---@param name "check"|"keep"|"start"|"lost"|"clear"
---@param ... any
---@return rocketmq.mock.Answer?
function parts.ask(name, ...)
  for _, part in ipairs(list) do
    local answer = part[name] and part[name](...)
    if answer then return answer end
  end
end

return parts
