--- Transactions: half messages, which are stored where nobody sees them, what becomes of them, and the
--- questions that a broker asks about them.
---
---     local mock = require "rocketmq.mock" { transaction_timeout = 100, transaction_check_interval = 100 }
---     ...
---     for _, transaction in ipairs(mock:transactions()) do print(transaction.state) end
local uv = require "luv"
local countdown = require "rocketmq.mock.countdown"
local fields = require "rocketmq.mock.fields"
local wire = require "rocketmq.wire"
local answer = require "rocketmq.mock.answer"

local HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
local PREPARED, COMMITTED = 4, 8
local MOST = 100000 -- transactions that are remembered

---@type rocketmq.mock.Field[]
local options = {
  { name = "transaction_timeout", type = "count",
    help = "milliseconds until a broker asks about a half message for the first time; default 1000 "
      .. "(a real broker: 6000)" },
  { name = "transaction_check_interval", type = "count",
    help = "milliseconds between two questions about the same one; default 1000 (30000)" },
  { name = "transaction_check_max", type = "integer",
    help = "how often a broker asks before it gives a half message up; default 15" },
}

---What a mock shows of a transaction.
---@class rocketmq.mock.Transaction
---@field state "prepared"|"committed"|"rolled back"|"given up"
---@field topic string
---@field group string of the producer
---@field broker string
---@field msg_id string
---@field checks integer how often the broker has asked
---@field answers string[] what it was told, in turn: "commit", "rollback", "unknown"; each with
--- " (check)" behind it when it answered a question
---@field remarks string[] what came with the answers; "" for none

local function has(flags, bit) return flags % (bit * 2) >= bit end

-- The undecided half messages of one broker, by their place in its log.
local function half_messages(broker)
  local group = broker.group
  group.half = group.half or { by_log_offset = {}, next_offset = 0 }
  return group.half
end

-- Gives a half message a place. A question about it moves it to another one, as in a real broker,
-- which still finds it at the old one.
local function place(broker, one)
  local half, group = half_messages(broker), broker.group
  one.queue_offset, one.log_offset = half.next_offset, group.log_offset
  half.next_offset = half.next_offset + 1
  group.log_offset = group.log_offset + 91 + #one.sent.body + #one.sent.properties
  half.by_log_offset[one.log_offset] = { one = one, queue_offset = one.queue_offset }
  table.insert(one.places, one.log_offset)
end

local function finish(one, state)
  local timers = one.broker.group.world.timers
  one.state, one.sent = state, nil -- bodies of what is over need no memory
  local by_log_offset = half_messages(one.broker).by_log_offset
  for _, log_offset in ipairs(one.places) do by_log_offset[log_offset] = nil end
  if not timers[one.timer] then return end
  timers[one.timer] = nil
  one.timer:close()
end

local function without(properties, name)
  return (("\2" .. properties):gsub("\2" .. name .. "\1[^\2]*", ""):sub(2))
end

-- A half message as the broker hands it out with a question.
local function stored(broker, one)
  local sent = one.sent
  local host, port = sent.entry.peer:match("^(.*):(%d+)$")
  local properties = wire.decode_properties(sent.properties)
  properties.TRANSACTION_CHECK_TIMES = tostring(one.checks)
  properties.REAL_TOPIC, properties.REAL_QID = sent.topic, tostring(sent.queue_id)
  return wire.encode_stored {
    topic = sent.topic,
    body = sent.body,
    properties = wire.encode_properties(properties),
    queue_id = sent.queue_id,
    queue_offset = one.queue_offset,
    log_offset = one.log_offset,
    message_flag = sent.header.message_flag,
    sys_flag = sent.header.sys_flag,
    born_ms = sent.header.born_timestamp,
    born_host = host,
    born_port = tonumber(port),
    stored_ms = sent.header.born_timestamp,
    store_host = broker.server.host,
    store_port = broker.port,
  }
end

-- Asks the producer of the group that comes next; asks nobody when none is connected.
local function ask(broker, one)
  local connections = broker:connections_of_group(one.group)
  if #connections == 0 then return end
  place(broker, one)
  one.checks = one.checks + 1
  local connection = connections[(one.checks - 1) % #connections + 1]
  broker.server:request(connection, {
    code = wire.request.CHECK_TRANSACTION_STATE,
    oneway = true,
    ext = {
      topic = HALF_TOPIC,
      tranStateTableOffset = ("%d"):format(one.queue_offset),
      commitLogOffset = ("%d"):format(one.log_offset),
      msgId = one.msg_id,
      transactionId = one.msg_id,
      offsetMsgId = wire.encode_offset_id { host = broker.server.host, port = broker.port,
        offset = one.log_offset },
      bname = broker.name,
    },
    body = stored(broker, one),
  })
end

local function check(broker, one)
  local world = broker.group.world
  if one.checks >= (world.options.transaction_check_max or 15) then
    return finish(one, "given up")
  end
  if broker.server.running then ask(broker, one) end
end

local function check_in(broker, one, ms)
  local world = broker.group.world
  countdown(one.timer, ms, function()
    check(broker, one)
    if not world.timers[one.timer] then return end
    check_in(broker, one, world.options.transaction_check_interval or 1000)
  end)
end

local function start_asking(broker, one)
  local world = broker.group.world
  one.timer = assert(uv.new_timer())
  one.timer:unref()
  world.timers[one.timer] = true
  check_in(broker, one, world.options.transaction_timeout or 1000)
end

-- Notes it among all of the mock, of which the oldest is forgotten in time.
local function remember(world, one)
  world.transactions = world.transactions or {}
  table.insert(world.transactions, one)
  if #world.transactions > MOST then table.remove(world.transactions, 1) end
end

---@param broker rocketmq.mock.Broker
---@param sent rocketmq.mock.Sent
local function keep_half(broker, sent)
  if not has(sent.header.sys_flag, PREPARED) or has(sent.header.sys_flag, COMMITTED) then
    return nil
  end
  local one = { sent = sent, topic = sent.topic, broker = broker, group = sent.header.group,
    state = "prepared", checks = 0, answers = {}, remarks = {}, places = {},
    msg_id = sent.properties:match("UNIQ_KEY\1([^\2]+)") or "" }
  place(broker, one)
  remember(broker.group.world, one)
  start_asking(broker, one)
  return broker:stored_answer(sent, one.queue_offset, wire.encode_offset_id {
    host = broker.server.host, port = broker.port, offset = one.log_offset })
end

local function commit(broker, one)
  local sent = one.sent
  finish(one, "committed")
  sent.properties = without(sent.properties, "TRAN_MSG")
  broker:store(sent)
end

local verdicts = { ["8"] = "commit", ["12"] = "rollback", ["0"] = "unknown" }

-- What a producer says has become of a transaction. Nothing is answered to a oneway request, so
-- what is wrong with it shows only in what does not happen, as with a real broker.
local function end_transaction(broker, command)
  local ext = command.ext
  local found = half_messages(broker).by_log_offset[tonumber(ext.commitLogOffset)]
  local verdict = verdicts[ext.commitOrRollback]
  if not verdict then
    return answer.refuse(wire.response.SYSTEM_ERROR, "mock: commitOrRollback is wrong: %s",
      tostring(ext.commitOrRollback))
  end
  if not found or tonumber(ext.tranStateTableOffset) ~= found.queue_offset
    or ext.producerGroup ~= found.one.group then
    return answer.refuse(wire.response.SYSTEM_ERROR,
      "mock: there is no half message of this group at this place")
  end
  local one = found.one
  local checked = ext.fromTransactionCheck == "true"
  one.answers[#one.answers + 1] = verdict .. (checked and " (check)" or "")
  one.remarks[#one.remarks + 1] = command.remark or ""
  if verdict == "commit" then
    commit(broker, one)
  elseif verdict == "rollback" then
    finish(one, "rolled back")
  end
  return answer.ok()
end

local function show(one)
  local shown = { state = one.state, topic = one.topic, group = one.group,
    broker = one.broker.name, msg_id = one.msg_id, checks = one.checks, answers = {}, remarks = {} }
  for i, verdict in ipairs(one.answers) do
    shown.answers[i], shown.remarks[i] = verdict, one.remarks[i]
  end
  return shown
end

---@type rocketmq.mock.Field[]
local filter_fields = {
  { name = "topic", type = "string", help = "the topic of its message" },
  { name = "state", type = "string",
    choices = { "prepared", "committed", "rolled back", "given up" },
    help = "'prepared', 'committed', 'rolled back' or 'given up'" },
  { name = "group", type = "string", help = "the producer group" },
  { name = "msg_id", type = "string", help = "its message's id" },
}

---@class rocketmq.Mock
local mock_methods = {}

---The transactions whose half message came, in the order in which they came.
---@param filter { topic: string?, state: string?, group: string?, msg_id: string? }?
---@return rocketmq.mock.Transaction[]
function mock_methods:transactions(filter)
  filter = filter or {}
  local ok, why = pcall(fields.check, "transactions", filter, filter_fields)
  if not ok then error(why, 2) end
  local found = {}
  for _, one in ipairs(self.world.transactions or {}) do
    local shown = show(one)
    local wanted = true
    for name, value in pairs(filter) do wanted = wanted and shown[name] == value end
    if wanted then found[#found + 1] = shown end
  end
  return found
end

---@type rocketmq.mock.Part
return {
  handlers = { [wire.request.END_TRANSACTION] = end_transaction },
  keep = keep_half,
  clear = function(world)
    for _, one in ipairs(world.transactions or {}) do
      if one.state == "prepared" then finish(one, "given up") end
    end
    world.transactions = nil
  end,
  mock = mock_methods,
  fields = options,
}
