-- The mock answers single requests as the real servers of the same version do: codes, and what stands beside
-- them. Remarks are its own.

local new_mock = require "rocketmq.mock"
local raw_client = require "spec.support.raw_client"
local support = require "spec.real.support"
local wait = require "rocketmq.mock.wait"
local wire = require "rocketmq.wire"

local VERSIONS = { ["5.4.0"] = 493, ["4.9.2"] = 397 }
local seed = tonumber(os.getenv "RMQ_SEED") or os.time() % 1000000
local topic = "Like" .. seed

-- Where it matters only that there is one.
local VARIES = { msgId = true, timestamp = true, transactionId = true }
-- What real servers put beside errors too, what is of consumers, and how far their index is.
local LEFT_OUT = { MSG_REGION = true, TRACE_ON = true, IS_SUB_CHANGE = true,
  indexLastUpdateTimestamp = true, indexLastUpdatePhyoffset = true }

local function shown(reply)
  if not reply then return "no answer" end
  local parts = {}
  for name, value in pairs(reply.ext) do
    if not LEFT_OUT[name] then
      parts[#parts + 1] = name .. (VARIES[name] and "" or "=" .. value)
    end
  end
  table.sort(parts)
  return reply.code .. " " .. table.concat(parts, " ")
end

-- What a cluster answers, by question.
local function ask_all(version, namesrv)
  local server = assert(raw_client.connect(namesrv))
  local route = assert(wire.decode_route(server:request({ code = 105, version = 479,
    ext = { topic = "TBW102" } }).body))
  local broker
  for _, one in ipairs(route.brokers) do
    if one.broker_name == "broker-a" then broker = assert(raw_client.connect(one.addrs[0])) end
  end
  local answers = {}
  local function ask(what, code, ext, body)
    local reply = broker:request { code = code, ext = ext, body = body }
    answers[#answers + 1] = what .. ": " .. shown(reply)
    return reply
  end

  local function create(changes)
    local ext = { topic = topic, defaultTopic = "TBW102", readQueueNums = "4",
      writeQueueNums = "4", perm = "6", topicFilterType = "SINGLE_TAG", topicSysFlag = "0",
      order = "false" }
    for name, value in pairs(changes or {}) do ext[name] = value end
    ask("make " .. ext.topic .. " " .. ext.perm, 17, ext)
  end
  create()
  for _, name in ipairs { "a b", "TBW102", "rmq_sys_x", "SELF_TEST_TOPIC", "CHECKPOINT_TOPIC", "",
    ("x"):rep(128), "broker-a", "%RETRY%g" } do
    create { topic = name }
  end

  local function send(what, changes, body)
    local ext = { a = "group", b = topic, c = "TBW102", d = "4", e = "1", f = "0",
      g = "1700000000000", h = "0", i = "UNIQ_KEY\1" .. what .. "\2KEYS\1k\2", j = "0", k = "false",
      m = "false" }
    for name, value in pairs(changes or {}) do ext[name] = value end
    return ask("send " .. what, 310, ext, body or "x")
  end
  for number = 1, 3 do send("message" .. number) end
  for _, queue in ipairs { "4", "99" } do send("to queue " .. queue, { e = queue }) end
  for _, name in ipairs { "a b", "", ("x"):rep(127), ("x"):rep(128), "TBW102", "BenchmarkTest",
    "SCHEDULE_TOPIC_XXXX", "TRANS_CHECK_MAX_TIME_TOPIC", "SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT",
    "rmq_sys_x", "broker-a", "DefaultCluster" } do
    send("to topic " .. name, { b = name, e = "0" })
  end
  -- 4.9.2 takes these, and would have them among the transactions of other specs.
  for _, name in ipairs { "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC" } do
    if version == "5.4.0" then send("to topic " .. name, { b = name, e = "0" }) end
  end
  send("to an unknown topic", { b = topic .. "No", c = "None" })
  send("to no queue", { b = topic .. "Zero", d = "0", e = "0" })
  send("long properties", { i = "P\1" .. ("y"):rep(33000) .. "\2" })
  send("no body", {}, "")
  send("a long body", {}, ("x"):rep(5 * 1048576))

  for _, queue in ipairs { "0", "1", "77", "-1", "x", false } do
    for _, code in ipairs { 30, 31, 32 } do
      ask(("%d of queue %s"):format(code, tostring(queue)), code,
        { topic = topic, queueId = queue or nil })
    end
    for _, time in ipairs { "0", "4102444800000", "-5", false } do
      ask(("29 of queue %s from %s"):format(tostring(queue), tostring(time)), 29,
        { topic = topic, queueId = queue or nil, timestamp = time or nil })
    end
  end
  for _, code in ipairs { 29, 30, 31, 32 } do
    ask(code .. " of an unknown topic", code, { topic = topic .. "None", queueId = "0",
      timestamp = "0" })
    ask(code .. " of no topic", code, { queueId = "0", timestamp = "0" })
  end

  local function query(changes)
    local ext = { topic = topic, key = "k", maxNum = "32", beginTimestamp = "0",
      endTimestamp = "9223372036854775807", _UNIQUE_KEY_QUERY = "false" }
    for name, value in pairs(changes or {}) do ext[name] = value or nil end
    return ext
  end
  -- The index of keys is written in the background.
  assert(wait(function()
    return broker:request({ code = 12, ext = query { key = "message3" } }).code == 0
  end, 20000))
  for number, changes in ipairs { {}, { key = "z" }, { topic = topic .. "N" }, { key = false },
    { maxNum = "1" }, { maxNum = "0" }, { endTimestamp = "5" } } do
    ask("query " .. number, 12, query(changes))
  end
  for _, offset in ipairs { "5", "-1", "999999999999", false } do
    ask("view " .. tostring(offset), 33, { offset = offset or nil })
  end
  ask("unknown", 9999, {})
  ask("recall", 370, { producerGroup = "g", topic = topic, recallHandle = "xx" })
  ask("heartbeat", 34, {}, '{"clientID":"c","producerDataSet":[{"groupName":"g"}],'
    .. '"consumerDataSet":[]}')
  ask("broken heartbeat", 34, {}, "{")
  ask("farewell", 35, { clientID = "c", producerGroup = "g" })
  ask("end of no transaction", 37, { producerGroup = "g", tranStateTableOffset = "0",
    commitLogOffset = "5", commitOrRollback = "8", fromTransactionCheck = "false", msgId = "x",
    transactionId = "x" })

  -- To what it does not know a name server may say nothing at all.
  server:send { code = 9999 }
  local before = #server.order
  answers[#answers + 1] = "route of none: "
    .. shown(server:request { code = 105, ext = { topic = topic .. "None" } })
  answers[#answers + 1] = "answers of the name server: " .. #server.order - before
  local body = server:request({ code = 105, version = 479, ext = { topic = topic } }).body
  answers[#answers + 1] = "an id in a route: " .. body:match '"brokerAddrs":{(.-):'
  server:close()
  broker:close()
  return answers
end

for _, server in ipairs(support.servers()) do
  it("the mock answers as RocketMQ " .. server.version, function()
    local real = ask_all(server.version, server.namesrv)
    local mock = new_mock { version = VERSIONS[server.version] }
    finally(function() mock:close() end)
    local ours = ask_all(server.version, mock.namesrv)
    assert.is_true(#real > 100)
    local differences = {}
    for number = 1, math.max(#real, #ours) do
      if real[number] ~= ours[number] then
        differences[#differences + 1] = ("real: %s; mock: %s"):format(tostring(real[number]),
          tostring(ours[number]))
      end
    end
    assert.equal("", table.concat(differences, "\n"))
  end)
end
