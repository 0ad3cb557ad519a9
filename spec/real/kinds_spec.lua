-- Delays, recalls, compression and the fields of a message that few have, on real brokers, as the
-- Java client reads them.

local rocketmq = require "rocketmq"
local uv = require "luv"
local hex = require "spec.support.hex"
local messages = require "spec.real.messages"
local readback = require "spec.real.readback"
local support = require "spec.real.support"

local seed = tonumber(os.getenv "RMQ_SEED") or os.time() % 1000000
local COUNT, TASKS = 1000, 16

-- What a broker adds to messages that waited.
local of_delays = { REAL_TOPIC = true, REAL_QID = true, TIMER_OUT_MS = true, TIMER_DELAY_MS = true,
  TIMER_DELAY_SEC = true, TIMER_DELIVER_MS = true, TIMER_ENQUEUE_MS = true, DELAY = true,
  TIMER_DEQUEUE_MS = true, TIMER_ROLL_TIMES = true }
-- Timers go by slots of this many milliseconds (timerPrecisionMs); a slot may end that much early.
local PRECISION = 100
local LEVELS = { 1000, 2000, 3000 } -- messageDelayLevel; a level over the last is the last

local function at(index) return ("seed %d, message %s"):format(seed, tostring(index)) end

local function wall()
  local seconds, microseconds = uv.gettimeofday()
  return seconds * 1000 + math.floor(microseconds / 1000)
end

-- Sends the messages 1 to COUNT from several tasks; `make` changes each. Gives the messages and
-- their results.
local function send_all(producer, topic, make)
  local sent, results, tasks = {}, {}, {}
  for first = 1, TASKS do
    tasks[first] = rocketmq.spawn(function()
      for index = first, COUNT, TASKS do
        local message = messages.make(seed, index)
        message.topic = topic
        if make then make(message, index) end
        local result, err = producer:send(message)
        if not result then error(at(index) .. ": " .. tostring(err), 0) end
        sent[index], results[index] = message, result
      end
    end)
  end
  for _, task in ipairs(tasks) do task:wait() end
  return sent, results
end

-- What must be read of a stored message besides its content.
local function answer_of(result)
  return { msgId = result.msg_id, offsetMsgId = result.offset_msg_id,
    broker = result.queue.broker, queueId = result.queue.id, queueOffset = result.queue_offset }
end

-- The same of one that waited: its place is another one than the result's.
local function answer_of_delayed(result)
  return { msgId = result.msg_id, broker = result.queue.broker, queueId = result.queue.id }
end

-- Reads the topics and compares; `wanted` says which indexes must be there (default: all), `look`
-- checks more of each message.
local function read_all(server, topics, sent, results, how)
  local expected, found = 0, {}
  for index = 1, COUNT do
    if not how.wanted or how.wanted(index) then expected = expected + 1 end
  end
  readback.drain(server, topics, expected * (how.copies or 1), function(read)
    local index = tonumber(read.properties[messages.INDEX])
    local message = sent[index]
    readback.check(message, at(index), "was read but never sent")
    readback.check(not how.wanted or how.wanted(index), at(index), "was read")
    found[index] = (found[index] or 0) + 1
    readback.compare(read, message, how.answer(results[index]), at(index), how.more)
    if how.look then how.look(read, message, index) end
  end, how.properties)
  for index = 1, COUNT do
    if not how.wanted or how.wanted(index) then
      readback.equal(found[index], how.copies or 1, at(index), "how often it is there")
    end
  end
end

-- A text of that length in which no part is like another.
local function numbered(length)
  local parts = {}
  for i = 1, math.ceil(length / 8) do parts[i] = ("%08d"):format(i) end
  return table.concat(parts):sub(1, length)
end

local function check_due(read, due, index)
  readback.check(read.storeTimestamp >= due, at(index),
    ("delivered %d ms before its time"):format(due - read.storeTimestamp))
end

local function kinds_of(server, is_new)
  local producer

  setup(function()
    support.java("Admin", { server.namesrv, "createTopic", 2, "%RETRY%kinds_readers", "KindLevel",
      "KindTimer", "KindRecall", "KindOld", "KindZlib", "KindLz4", "KindZstd", "KindFields",
      "KindLight", "KindLong", "KindLargest" })
    producer = rocketmq.producer { group = "kinds", namesrv = server.namesrv, timeout = 60000 }
  end)
  teardown(function() producer:shutdown() end)

  it("delivers by delay levels, not before their time", function()
    local sent, results = send_all(producer, "KindLevel", function(message, index)
      message.delay_level = 1 + index % 18
    end)
    read_all(server, { "KindLevel" }, sent, results, { answer = answer_of_delayed,
      more = of_delays, look = function(read, message, index)
        local delay = LEVELS[math.min(message.delay_level, #LEVELS)]
        check_due(read, read.bornTimestamp + delay, index)
      end })
  end)

  for kind, flags in pairs { zlib = 0x301, lz4 = 0x101, zstd = 0x201 } do
    it("gives back bodies compressed with " .. kind, function()
      local topic = "Kind" .. kind:gsub("^%l", string.upper)
      local packing = rocketmq.producer { group = "kinds", namesrv = server.namesrv,
        timeout = 60000, compress_type = kind, compress_over = 64 }
      local sent, results = send_all(packing, topic, function(message, index)
        -- Every eighth stays random, and is not compressed.
        local part = hex.encode(message.body:sub(1, 2048))
        if index % 8 > 0 then message.body = part:rep(1 + index % 16) end
      end)
      packing:shutdown()
      local packed = 0
      read_all(server, { topic }, sent, results, { answer = answer_of,
        look = function(read, _, index)
          if read.sysFlag == 0 then return end
          packed = packed + 1
          -- Java clears the bit that says "compressed" when it has decompressed.
          readback.equal(read.sysFlag, flags - 1, at(index), "sysFlag")
        end })
      assert.is_true(packed > COUNT / 4)
    end)
  end

  it("gives back sharding keys and buyer ids", function()
    local sent, results = send_all(producer, "KindFields", function(message, index)
      message.sharding_key = message.tags or "订单-" .. index
      message.buyer_id = "buyer " .. index
    end)
    read_all(server, { "KindFields" }, sent, results, { answer = answer_of,
      more = { __SHARDINGKEY = true, BUYER_ID = true }, look = function(read, message, index)
        readback.equal(read.properties.__SHARDINGKEY, message.sharding_key, at(index), "key")
        readback.equal(read.properties.BUYER_ID, message.buyer_id, at(index), "buyer")
      end })
  end)

  it("counts how often a message of a %RETRY% topic was tried", function()
    local topic, dead = "%RETRY%kinds_readers", "%DLQ%kinds_readers"
    local sent, results = send_all(producer, topic, function(message, index)
      message.properties.RECONSUME_TIME = tostring(index % 20)
      message.properties.MAX_RECONSUME_TIMES = "15"
    end)
    for _, message in pairs(sent) do
      message.retries, message.properties.RECONSUME_TIME = message.properties.RECONSUME_TIME, nil
      message.properties.MAX_RECONSUME_TIMES = nil
    end
    local function look(read, message, index)
      readback.equal(read.reconsumeTimes, tonumber(message.retries), at(index), "reconsumeTimes")
    end
    -- How often it may be tried, and the limit itself: old brokers do not count that in.
    local most = is_new and 15 or 14
    read_all(server, { topic }, sent, results, { answer = answer_of, look = look,
      wanted = function(index) return index % 20 <= most end })
    if not is_new then return end -- nobody may read an old broker's dead letters
    read_all(server, { dead }, sent, results, { look = look,
      answer = function(result) return { msgId = result.msg_id } end,
      more = { DLQ_ORIGIN_TOPIC = true, DLQ_ORIGIN_MESSAGE_ID = true, DELAY = true },
      wanted = function(index) return index % 20 > 15 end })
  end)

  it("refuses properties that its own do not fit beside, with its words, or keeps all", function()
    local topic = "KindLong"
    local probe = assert(producer:send { topic = topic, body = "x" })
    local own = #("WAIT.true.UNIQ_KEY..") + #probe.msg_id + #("long..")
    local ids = { [probe.msg_id] = false }
    for _, length in ipairs { 32000, 32767 - own } do
      local message = { topic = topic, body = "x", properties = { long = ("x"):rep(length) } }
      local result, err = producer:send(message)
      if result then
        ids[result.msg_id] = length
      else
        assert.same({ true, 32767 - own }, { is_new, length })
        assert.same({ "broker", 13 }, { err.kind, err.code })
        assert.matches("msg properties length limit", err.message)
        assert.matches("look at.*properties", err.message)
      end
    end
    readback.drain(server, { topic }, is_new and 2 or 3, function(read)
      readback.equal(#(read.properties.long or ""), ids[read.msgId] or 0, read.msgId, "length")
    end)
  end)

  -- Old brokers count all that they store of a message against their limit of 4 MiB; newer ones its body.
  it("stores bodies up to the broker's limit, and says what the broker refused", function()
    local topic = "KindLargest"
    local plain = rocketmq.producer { group = "kinds", namesrv = server.namesrv, timeout = 60000,
      compress_over = 2 ^ 31 - 1 }
    finally(function() plain:shutdown() end)
    local bodies, stored = {}, 0
    for _, length in ipairs { 4194304, 4194303, 4194000 } do
      local body = numbered(length)
      local result, err = plain:send { topic = topic, body = body }
      if is_new or length == 4194000 then
        assert(result, tostring(err))
        bodies[result.msg_id], stored = body, stored + 1
      else
        assert.is_nil(result)
        assert.same({ "broker", 13, 1 }, { err.kind, err.code, err.attempts })
        local refused = "refused with code 13 MESSAGE_ILLEGAL: the message is illegal"
        assert.matches(refused, err.message, 1, true)
        assert.matches("look at maxMessageSize", err.message, 1, true)
      end
    end
    local found = 0
    readback.drain(server, { topic }, stored, function(read)
      found = found + 1
      local body = bodies[read.msgId]
      readback.check(body, read.msgId, "was read but not stored, or is there twice")
      bodies[read.msgId] = nil
      readback.check(support.base64_decode(read.body) == body, read.msgId, "the body differs")
    end)
    assert.equal(is_new and 3 or 1, found)
  end)

  return function() return producer end
end

local servers = {}
for _, server in ipairs(support.servers()) do servers[server.version] = server end

describe("RocketMQ 5.4.0", function()
  local server = servers["5.4.0"]
  local producer = kinds_of(server, true)

  it("delivers timer messages, not before their time", function()
    local sent, results = send_all(producer(), "KindTimer", function(message, index)
      local delay = index % 3001
      if index % 3 == 0 then
        message.delay_ms = delay
      elseif index % 3 == 1 then
        message.delay_seconds = index % 4
      else
        message.deliver_at = wall() + delay
      end
    end)
    read_all(server, { "KindTimer" }, sent, results, { answer = answer_of_delayed,
      more = of_delays, look = function(read, message, index)
        local due = message.deliver_at or read.bornTimestamp
          + (message.delay_ms or message.delay_seconds * 1000)
        check_due(read, due - PRECISION, index)
      end })
  end)

  it("never delivers what was recalled", function()
    local sent, results = send_all(producer(), "KindRecall", function(message)
      message.delay_ms = 8000
    end)
    for index = 1, COUNT, 2 do
      local id, err = producer():recall("KindRecall", results[index].recall_handle)
      readback.check(id == results[index].msg_id, at(index), tostring(err or id))
    end
    -- One that comes after all of them.
    local last = COUNT + 1
    local message = messages.make(seed, last)
    message.topic, message.delay_ms = "KindRecall", 9000
    results[last], sent[last] = assert(producer():send(message)), message
    local late
    read_all(server, { "KindRecall" }, sent, results, { answer = answer_of_delayed,
      more = of_delays, properties = { expect = COUNT / 2 + 1, seconds = 60 },
      wanted = function(index) return index % 2 == 0 or index == last end,
      look = function(_, _, index) late = late or index == last end })
    assert.is_true(late)
    local id, err = producer():recall("KindRecall", results[2].recall_handle)
    assert.is_nil(id)
    assert.same({ "broker", 604 }, { err.kind, err.code })
    assert.matches("recallMessageEnable", err.message)
  end)

  it("refuses a delay beyond its maximum, with its words", function()
    for _, field in ipairs { "delay_ms", "delay_seconds", "deliver_at" } do
      local value = ({ delay_ms = 3 * 24 * 3600e3 + 60e3, delay_seconds = 3 * 24 * 3600 + 60,
        deliver_at = wall() + 3 * 24 * 3600e3 + 60e3 })[field]
      local result, err = producer():send { topic = "KindTimer", body = "x", [field] = value }
      assert.is_nil(result)
      assert.same({ "broker", 13, 1 }, { err.kind, err.code, err.attempts })
      assert.matches("should not be bigger than the max delay 259200000ms", err.message, 1, true)
      assert.matches("timerMaxDelaySec", err.message)
    end
  end)

  it("puts messages into light queues", function()
    local sent, results = send_all(producer(), "KindLight", function(message, index)
      message.lmq = { "all", "%LMQ%of-" .. index % 3 }
    end)
    local how = { answer = function(result)
      return { msgId = result.msg_id, broker = result.queue.broker }
    end, more = { INNER_MULTI_DISPATCH = true, INNER_MULTI_QUEUE_OFFSET = true },
      properties = { parent = "KindLight" } }
    read_all(server, { "%LMQ%all" }, sent, results, how)
    for rest = 0, 2 do
      how.wanted = function(index) return index % 3 == rest end
      read_all(server, { "%LMQ%of-" .. rest }, sent, results, how)
    end
  end)
end)

describe("RocketMQ 4.9.2", function()
  local server = servers["4.9.2"]
  local producer = kinds_of(server, false)

  it("delivers timer messages at once, and gives no handle for a recall", function()
    local result = assert(producer():send { topic = "KindOld", body = "x", delay_seconds = 600 })
    assert.is_nil(result.recall_handle)
    readback.drain(server, { "KindOld" }, 1, function(read)
      assert.equal(result.msg_id, read.msgId)
    end)
  end)
end)
