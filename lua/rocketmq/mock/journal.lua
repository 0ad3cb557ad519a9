--- What the mock has seen, kept up to a bound: requests, messages, and bytes that were no
--- request.
local wire = require "rocketmq.wire"

---@class rocketmq.mock.Request
---@field code integer
---@field name string? the code's name
---@field at string which server got it: "namesrv-1", "broker-a", "broker-a#1"
---@field broker string? the broker's name
---@field topic string? what it names
---@field ext table<string, string> header fields
---@field body string
---@field opaque integer
---@field oneway boolean
---@field language string|integer
---@field version integer
---@field serialize string "json" or "rocketmq"
---@field connection integer the connection's number, counted over the whole mock
---@field peer string "ip:port" of the client
---@field time number milliseconds since the mock was made

---@class rocketmq.mock.Message
---@field topic string
---@field broker string
---@field queue_id integer
---@field queue_offset integer? nil while it waits for its time
---@field deliver_at integer? when its delay ends, milliseconds since 1970, as it asked for
---@field delivered boolean false while it waits
---@field recalled boolean it is not going to be delivered
---@field body string decompressed; as it came when that is impossible
---@field compressed "zlib"|"lz4"|"zstd"|nil how it came
---@field tags string?
---@field keys string[]
---@field properties table<string, string> all, also those of the system
---@field flag integer
---@field msg_id string? UNIQ_KEY
---@field offset_msg_id string
---@field group string of the producer
---@field born_timestamp integer milliseconds since 1970
---@field born_host string "ip:port"
---@field sys_flag integer
---@field reconsume_times integer how often it was consumed without success, as its sender says
---@field batch boolean it came in a batch
---@field oneway boolean
---@field request_broker string? the broker's name as the request gave it
---@field connection integer
---@field time number milliseconds since the mock was made
---@field store_timestamp integer when it was stored, milliseconds since 1970

local ONEWAY = 2
local OVERHEAD = 500 -- bytes that an entry takes besides its frame

-- A list of at most `keep` entries and about as many bytes: a new one takes the place of the oldest.
local List = {}
List.__index = List

local function new_list(keep, keep_bytes)
  return setmetatable({ keep = keep, keep_bytes = keep_bytes,
    bytes = 0, -- of all that are here
    sizes = {}, -- of each, by its place
    put_in_all = 0, -- so many have come
    forgotten = 0, -- the first so many of them are no longer here
  }, List)
end

function List:place(number) return number % self.keep + 1 end

function List:forget_oldest()
  local at = self:place(self.forgotten)
  self.bytes = self.bytes - self.sizes[at]
  self[at] = false
  self.forgotten = self.forgotten + 1
end

-- `bytes`: what it keeps in memory, more or less.
function List:put(entry, bytes)
  local number = self.put_in_all
  self.put_in_all = number + 1
  if self.keep == 0 then
    self.forgotten = self.put_in_all
    return
  end
  if number - self.forgotten == self.keep then self:forget_oldest() end
  local at = self:place(number)
  self[at], self.sizes[at] = entry, bytes
  self.bytes = self.bytes + bytes
  while self.bytes > self.keep_bytes and self.forgotten < number do self:forget_oldest() end
end

-- Those that `wanted` accepts, oldest first, each as `open` makes it.
function List:pick(wanted, open)
  local found = {}
  for number = self.forgotten, self.put_in_all - 1 do
    local entry = self[self:place(number)]
    if wanted(entry) then found[#found + 1] = open(entry) end
  end
  return found
end

---@class rocketmq.mock.Journal
---@field received integer messages received in all, forgotten ones included
local Journal = {}
Journal.__index = Journal

---@param keep integer how many messages, and how many requests, are kept
---@param keep_bytes integer how many bytes of each, about
---@param now fun(): number
---@param wall fun(): integer milliseconds since 1970
---@return rocketmq.mock.Journal
function Journal.new(keep, keep_bytes, now, wall)
  local journal = setmetatable({ now = now, wall = wall, keep = keep, keep_bytes = keep_bytes },
    Journal)
  journal:clear()
  return journal
end

---Forgets everything.
function Journal:clear()
  self.received = 0
  self.request_list = new_list(self.keep, self.keep_bytes)
  self.message_list = new_list(self.keep, self.keep_bytes)
  self.bad_list = new_list(self.keep, self.keep_bytes)
end

---Notes a request.
---@param server rocketmq.mock.Server
---@param connection rocketmq.mock.Connection
---@param command table what the frame decodes to
---@param frame string
---@param topic string? that it names
---@return table entry for `message`
function Journal:request(server, connection, command, frame, topic)
  local entry = { frame = frame, code = command.code, topic = topic, server = server,
    connection = connection.number, peer = connection.peer, time = self.now() }
  self.request_list:put(entry, #frame + OVERHEAD)
  return entry
end

---Notes a message that was stored.
---@param entry table `request` (what `request` gave), `topic`, `broker`, `queue_id`,
--- `queue_offset`, `offset_msg_id`, `member` (its number in a batch, from 1, or nil), `properties`
--- (when they are not those of the request), and of one that waits `deliver_at` and `delivered`
function Journal:message(entry)
  self.received = self.received + 1
  entry.store_timestamp = self.wall()
  -- The members of a batch share its frame.
  local is_first = (entry.member or 1) == 1
  self.message_list:put(entry, (is_first and #entry.request.frame or 0) + OVERHEAD)
end

---Changes what is noted of a message, also where somebody looks at it already.
---@param entry table what `message` got
---@param changes table
function Journal:change(entry, changes) -- luacheck: no self
  for name, value in pairs(changes) do
    entry[name] = value
    if entry.opened then entry.opened[name] = value end
  end
end

---Notes bytes that were no request.
---@param at string the server's name
---@param connection integer
---@param why string
function Journal:bad(at, connection, why)
  self.bad_list:put({ at = at, connection = connection, why = why, time = self.now() }, OVERHEAD)
end

local function is_oneway(command)
  return command.flag % (ONEWAY * 2) >= ONEWAY
end

local function request_name(code)
  local name = wire.request_name(code)
  return name ~= "UNKNOWN" and name or nil
end

local function open_request(entry)
  if entry.opened then return entry.opened end
  local command = wire.decode(entry.frame)
  entry.opened = {
    code = command.code,
    name = request_name(command.code),
    at = entry.server.name,
    broker = entry.server.broker,
    topic = entry.topic,
    ext = command.ext,
    body = command.body,
    opaque = command.opaque,
    oneway = is_oneway(command),
    language = command.language,
    version = command.version,
    serialize = command.serialize,
    connection = entry.connection,
    peer = entry.peer,
    time = entry.time,
  }
  return entry.opened
end

local function split_keys(text)
  local keys = {}
  for key in (text or ""):gmatch("[^ ]+") do keys[#keys + 1] = key end
  return keys
end

-- The message's own part of its request: the whole, or one member of a batch.
local function own_part(entry, request, header)
  if not entry.member then
    return { body = request.body, properties = header.properties, flag = header.message_flag }
  end
  local shared = entry.request
  shared.members = shared.members or wire.decode_batch(request.body)
  return shared.members[entry.member]
end

local function open_body(body, sys_flag)
  local opened, kind = wire.decompress(body, sys_flag)
  if opened then return opened, kind end
  return body
end

-- What a request says of a message in it.
local function content(request, header, part, properties)
  local body, compressed = open_body(part.body, header.sys_flag)
  properties = wire.decode_properties(properties or part.properties) or {}
  return {
    topic = header.topic,
    broker = request.broker,
    queue_id = header.queue_id,
    body = body,
    compressed = compressed,
    tags = properties.TAGS,
    keys = split_keys(properties.KEYS),
    properties = properties,
    flag = part.flag,
    msg_id = properties.UNIQ_KEY,
    group = header.group,
    born_timestamp = header.born_timestamp,
    born_host = request.peer,
    sys_flag = header.sys_flag,
    reconsume_times = header.reconsume_times,
    oneway = request.oneway,
    request_broker = header.broker_name,
    connection = request.connection,
    time = request.time,
  }
end

local function open_message(entry)
  if entry.opened then return entry.opened end
  local request = open_request(entry.request)
  local header = wire.decode_send_header(request)
  local message = content(request, header, own_part(entry, request, header), entry.properties)
  message.topic, message.broker = entry.topic, entry.broker
  message.queue_id, message.queue_offset = entry.queue_id, entry.queue_offset
  message.offset_msg_id = entry.offset_msg_id
  message.store_timestamp = entry.store_timestamp
  message.batch = entry.member ~= nil
  message.deliver_at, message.delivered = entry.deliver_at, entry.delivered ~= false
  message.recalled = entry.recalled == true
  entry.opened = message
  return message
end

local SENDS = { [wire.request.SEND_MESSAGE] = true, [wire.request.SEND_MESSAGE_V2] = true,
  [wire.request.SEND_BATCH_MESSAGE] = true }

-- The messages in one request, none when it cannot be read.
local function open_attempts(entry)
  local request = open_request(entry)
  local header = wire.decode_send_header(request)
  if not header then return {} end
  local batch = request.code == wire.request.SEND_BATCH_MESSAGE
  local parts = batch and wire.decode_batch(request.body)
    or { { body = request.body, properties = header.properties, flag = header.message_flag } }
  local messages = {}
  for number, part in ipairs(parts) do
    messages[number] = content(request, header, part)
    messages[number].batch = batch
  end
  return messages
end

---Every message of every send that came, whatever became of it, in the order in which they came.
---@return table[] messages as `messages` gives them, without `queue_offset` and `offset_msg_id`
function Journal:attempts()
  local all = {}
  local lists = self.request_list:pick(function(entry) return SENDS[entry.code] end, open_attempts)
  for _, messages in ipairs(lists) do
    for _, message in ipairs(messages) do all[#all + 1] = message end
  end
  return all
end

-- Whether a message is in a topic, or in the light queue of this name.
local function is_in(entry, topic)
  if entry.topic == topic then return true end
  if topic:sub(1, 5) ~= "%LMQ%" then return false end
  local queues = open_message(entry).properties.INNER_MULTI_DISPATCH
  return queues ~= nil and ("," .. queues .. ","):find("," .. topic .. ",", 1, true) ~= nil
end

---Messages in the order in which they came.
---@param topic string? or the name of a light queue, with its %LMQ%
---@param broker string?
---@param queue_id integer?
---@return rocketmq.mock.Message[]
function Journal:messages(topic, broker, queue_id)
  return self.message_list:pick(function(entry)
    return (topic == nil or is_in(entry, topic)) and (broker == nil or entry.broker == broker)
      and (queue_id == nil or entry.queue_id == queue_id)
  end, open_message)
end

---Requests in the order in which they came.
---@param filter table `code`, `at` (a label of the server), `broker`, `topic`, `connection`; each may
--- be nil
---@return rocketmq.mock.Request[]
function Journal:requests(filter)
  return self.request_list:pick(function(entry)
    return (filter.code == nil or entry.code == filter.code)
      and (filter.at == nil or entry.server.labels[filter.at] == true)
      and (filter.broker == nil or entry.server.broker == filter.broker)
      and (filter.topic == nil or entry.topic == filter.topic)
      and (filter.connection == nil or entry.connection == filter.connection)
  end, open_request)
end

---How many have come and are no longer kept.
---@param of "messages"|"requests"
---@return integer
function Journal:forgotten(of)
  return (of == "messages" and self.message_list or self.request_list).forgotten
end

---How many requests have come in all, forgotten ones included.
---@return integer
function Journal:request_count()
  return self.request_list.put_in_all
end

---What came that was no request: `at`, `connection`, `why`, `time`.
---@return table[]
function Journal:bad_input()
  return self.bad_list:pick(function() return true end, function(entry) return entry end)
end

return Journal
