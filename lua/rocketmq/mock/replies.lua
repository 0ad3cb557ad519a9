--- Requests and replies: the mock pushes a reply to who asked, and can reply by itself.
---
---     mock:reply("Questions", function(message) return "re: " .. message.body end)
local uv = require "luv"
local answer = require "rocketmq.mock.answer"
local perm = require "rocketmq.mock.perm"
local task = require "rocketmq.task"
local faults = require "rocketmq.mock.faults"
local wire = require "rocketmq.wire"

local request, response = wire.request, wire.response

local function property(properties, name)
  return ("\2" .. properties):match("\2" .. name .. "\1([^\2]+)")
end

-- The server and the connection over which a client can be reached: of this broker first.
local function find_client(broker, id)
  local connection = broker:connection_of_client(id)
  if connection then return broker, connection end
  for _, group in ipairs(broker.group.world.groups) do
    for _, other in pairs(group.servers) do
      connection = other:connection_of_client(id)
      if connection then return other, connection end
    end
  end
end

local function now_ms()
  local seconds, microseconds = uv.gettimeofday()
  return seconds * 1000 + math.floor(microseconds / 1000)
end

-- Pushes a reply. `reply` has what its send header has.
local function push(broker, connection, reply, body)
  local now = now_ms()
  broker.server:request(connection, {
    code = request.PUSH_REPLY_MESSAGE_TO_CLIENT,
    ext = {
      producerGroup = reply.group,
      topic = reply.topic,
      defaultTopic = reply.default_topic or "TBW102",
      defaultTopicQueueNums = "4",
      queueId = ("%d"):format(reply.queue_id or 0),
      sysFlag = ("%d"):format(reply.sys_flag or 0),
      bornTimestamp = ("%d"):format(reply.born_timestamp or now),
      flag = ("%d"):format(reply.message_flag or 0),
      properties = ("%sPUSH_REPLY_TIME\1%d\2"):format(reply.properties, now),
      reconsumeTimes = "0",
      unitMode = "false",
      bornHost = reply.born_host or broker.addr,
      storeHost = broker.addr,
      storeTimestamp = ("%d"):format(now),
    },
    body = body,
  }, function() end)
end

-- A reply that somebody sends. A broker can reach only who is connected to it.
local function reply_came(broker, command, connection, entry)
  local header, why = wire.decode_send_header(command)
  if not header then
    return answer.refuse(response.SYSTEM_ERROR, "mock: this reply cannot be read: %s",
      tostring(why))
  end
  local client = property(header.properties, "REPLY_TO_CLIENT")
  local asked = client and broker:connection_of_client(client)
  if not asked then
    return answer.refuse(response.SYSTEM_ERROR, "mock: client %s is not connected to %s",
      tostring(client), broker.name)
  end
  header.born_host = connection.peer
  push(broker, asked, header, command.body)
  local sent = { topic = header.topic, queue_id = math.max(0, header.queue_id), header = header,
    body = command.body, properties = header.properties, entry = entry, connection = connection }
  return broker:stored_answer(sent, broker:store(sent))
end

-- The message as a consumer would get it.
local function shown(broker, sent)
  local properties = wire.decode_properties(sent.properties)
  local keys = {}
  for key in (properties.KEYS or ""):gmatch "[^ ]+" do keys[#keys + 1] = key end
  local body = wire.decompress(sent.body, sent.header.sys_flag) or sent.body
  return { topic = sent.topic, broker = broker.name, queue_id = sent.queue_id, body = body,
    tags = properties.TAGS, keys = keys, properties = properties,
    flag = sent.header.message_flag, msg_id = properties.UNIQ_KEY,
    born_timestamp = sent.header.born_timestamp, group = sent.header.group }
end

local function reply_to(broker, message, replier)
  local what = ("reply: the function for topic '%s'"):format(message.topic)
  local body = faults.call(what, replier, message)
  if body == nil then return end
  if type(body) ~= "string" then
    error(("%s must give the body of its reply, or nil, not a %s"):format(what, type(body)), 0)
  end
  local asked = message.properties
  local server, connection = find_client(broker, asked.REPLY_TO_CLIENT)
  if not server then return end
  push(server, connection, {
    group = "mock",
    topic = broker.group.cluster .. "_REPLY_TOPIC",
    properties = ("MSG_TYPE\1reply\2CORRELATION_ID\1%s\2REPLY_TO_CLIENT\1%s\2"):format(
      asked.CORRELATION_ID, asked.REPLY_TO_CLIENT),
  }, body)
end

local function echo(message) return message.body end

-- What a broker adds to every request, for who replies to it; then the mock's own repliers have a look.
local function note_request(broker, sent)
  if not property(sent.properties, "REPLY_TO_CLIENT") then return nil end
  local world = broker.group.world
  sent.properties = ("%sCLUSTER\1%s\2"):format(sent.properties, broker.group.cluster)
  local replier = (world.repliers or {})[sent.topic] or world.options.echo_requests and echo
  if replier and property(sent.properties, "CORRELATION_ID") then
    local message = shown(broker, sent)
    task.spawn(function()
      local ok, why = pcall(reply_to, broker, message, replier)
      if not ok then faults.report(broker.name, why) end
    end)
  end
end

---@class rocketmq.Mock
local mock_methods = {}

---Replies to the requests of a topic: `fn` gets each message, in a task of its own, so it may wait, and
---gives the body of the reply, or nil for none. A function set before is replaced; nil: no replies.
---@param topic string
---@param fn (fun(message: table): string?)?
function mock_methods:reply(topic, fn)
  if type(topic) ~= "string" then
    error("reply: the topic must be a string, not " .. type(topic), 2)
  end
  if fn ~= nil and type(fn) ~= "function" then
    error("reply: needs a function that gives the body, not " .. type(fn), 2)
  end
  self.world.repliers = self.world.repliers or {}
  self.world.repliers[topic] = fn
end

---@type rocketmq.mock.Part
return {
  handlers = {
    [request.SEND_REPLY_MESSAGE] = reply_came,
    [request.SEND_REPLY_MESSAGE_V2] = reply_came,
  },
  check = note_request,
  clear = function(world) world.repliers = nil end,
  start = function(broker)
    local topics = broker.group.topics
    local name = broker.group.cluster .. "_REPLY_TOPIC"
    topics[name] = topics[name] or { write = 1, read = 1, perm = perm.READ_WRITE }
  end,
  mock = mock_methods,
  fields = {
    { name = "echo_requests", type = "boolean",
      help = "each request that no function replies to gets its own body as the reply; default "
        .. "false, and true for --mock" },
  },
}
