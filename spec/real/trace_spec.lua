-- The records of message trace stand in the trace topic of a real RocketMQ, and the Java client's own decoder
-- reads from them what the script was told.

local cjson = require "cjson"
local messages = require "spec.real.messages"
local readback = require "spec.real.readback"
local rocketmq = require "rocketmq"
local support = require "spec.real.support"
local wire = require "rocketmq.wire"

local seed = tonumber(os.getenv "RMQ_SEED") or os.time() % 1000000
local COUNT, TASKS = 1000, 16
local COMPRESSED_FROM = 4096

local function store_address(offset_msg_id)
  local where = wire.decode_offset_id(offset_msg_id)
  return ("%s:%d"):format(where.host, where.port)
end

local function check(holds, index, what)
  if not holds then error(("seed %d, message %s: %s"):format(seed, tostring(index), what), 0) end
end

local function check_equal(expected, actual, index, what)
  check(expected == actual, index, ("%s is %q, not %q"):format(what, tostring(actual),
    tostring(expected)))
end

-- Sends through a process of its own; gives what it was told, by msg_id.
local function send(server, topic, trace, how)
  local told, n, traced = {}, 0, nil
  support.rmqlua("spec/real/trace_many.lua", { server.namesrv, topic, seed, COUNT, trace, how },
    function(line)
      local index, msg_id, offset_msg_id, address, success, elapsed =
        line:match "^(%d+)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t(%a+)\t(%d+)$"
      if not index then
        traced = tonumber(line:match "^traced\t(%d+)$")
        check(traced, "?", "not a line of the script: " .. line)
        return
      end
      n = n + 1
      told[msg_id] = { index = tonumber(index), offset_msg_id = offset_msg_id, address = address,
        success = success == "true", elapsed = tonumber(elapsed) }
    end)
  check_equal(COUNT, n, "?", "the number of messages")
  check_equal(COUNT, traced, "?", "the number of records that were stored")
  return told
end

local function has_key(keys, key)
  return (" " .. keys .. " "):find(" " .. key .. " ", 1, true) ~= nil
end

local function check_record(record, expected, told, topic)
  local index = told.index
  local keys = expected.keys
  if type(keys) == "table" then keys = table.concat(keys, " ") end
  check_equal("Pub", record.kind, index, "kind")
  check_equal(topic, record.topic, index, "topic")
  check_equal("traced", record.group, index, "group")
  check_equal("DefaultRegion", record.region, index, "region")
  check_equal(expected.tags or "null", record.tags, index, "tags")
  check_equal(keys or "null", record.keys, index, "keys")
  check_equal(told.address, record.store_host, index, "store_host")
  check_equal(told.offset_msg_id, record.offset_msg_id, index, "offset_msg_id")
  check_equal(told.success, record.success, index, "success")
  check_equal(index % 50 == 1 and "Delay_Msg" or "Normal_Msg", record.msg_type, index, "msg_type")
  check(record.cost <= told.elapsed, index, "the cost is longer than the send took")
  if #expected.body < COMPRESSED_FROM then
    check_equal(#expected.body, record.body_length, index, "body_length")
  else
    check(record.body_length > 0 and record.body_length <= #expected.body, index, "body_length")
  end
  check(has_key(record.carrier_keys, record.msg_id), index, "the carrier lacks its id")
  for key in (keys or ""):gmatch "[^ ]+" do
    check(has_key(record.carrier_keys, key), index, "the carrier lacks its key " .. key)
  end
end

-- The ids of what was told to be stored are those that Java reads; a delayed message has another place
-- when it is delivered.
local function check_stored(server, topic, told)
  local expected, times = 0, {}
  for _, about in pairs(told) do
    if about.success then expected = expected + 1 end
  end
  readback.drain(server, { topic }, expected, function(read)
    local about = told[read.msgId]
    check(about and about.success, read.msgId, "is there and was not stored")
    check(not times[read.msgId], about.index, "is there twice")
    times[read.msgId] = true
    check_equal(tostring(about.index), read.properties[messages.INDEX], about.index, "index")
    if about.index % 50 ~= 1 then
      check_equal(about.offset_msg_id, read.offsetMsgId, about.index, "the stored offset id")
    end
  end)
end

-- Calls `work` with 1 to COUNT, from several tasks.
local function each_of_many(work)
  local tasks = {}
  for first = 1, TASKS do
    tasks[first] = function()
      for index = first, COUNT, TASKS do work(index) end
    end
  end
  assert(rocketmq.gather(tasks))
end

for _, server in ipairs(support.servers()) do
  local function trace_and_read(topic, trace, how)
    local began = os.time() * 1000
    local told = send(server, topic, trace, how)
    local ended = (os.time() + 1) * 1000
    local found, times = 0, {}
    support.java("TraceRead", { server.namesrv, trace, topic }, function(line)
      local record = cjson.decode(line)
      local about = told[record.msg_id]
      check(about, record.msg_id, "is traced but was never sent")
      check(not times[record.msg_id], about.index, "is traced twice")
      times[record.msg_id], found = true, found + 1
      check(record.timestamp >= began and record.timestamp <= ended, about.index, "the time is "
        .. record.timestamp)
      local expected = messages.make(seed, about.index)
      if how == "auto_batch" then expected.tags = "batched" end
      check_record(record, expected, about, topic)
    end, { expect = COUNT })
    check_equal(COUNT, found, "?", "the number of records")
    return told
  end

  describe("RocketMQ " .. server.version, function()
    setup(function()
      support.java("Admin", { server.namesrv, "createTopic", 4, "Traced", "TracedBatches",
        "TracedEnds", "TracedRecalls", "Traced2", "TracesOfMine" })
    end)

    it("keeps a record of each of 1,000 sends in its trace topic", function()
      trace_and_read("Traced", "RMQ_SYS_TRACE_TOPIC")
    end)

    it("keeps a record of each of 1,000 sends with auto_batch, with its own ids", function()
      local told = trace_and_read("TracedBatches", "RMQ_SYS_TRACE_TOPIC", "auto_batch")
      check_stored(server, "TracedBatches", told)
    end)

    it("keeps the ends of transactions", function()
      local producer = rocketmq.transaction_producer { group = "traced", trace = true,
        namesrv = server.namesrv, send_msg_timeout = 20000,
        check = function() return "unknown" end }
      local told = {}
      each_of_many(function(index)
        local state = index % 2 == 0 and "commit" or "rollback"
        local message = messages.make(seed, index)
        message.topic, message.body = "TracedEnds", "x"
        local result = assert(producer:send_in_transaction(message, function() return state end))
        told[result.msg_id] = { index = index, state = state,
          address = store_address(result.offset_msg_id) }
      end)
      assert(producer:shutdown())
      local ends, halves = 0, 0
      support.java("TraceRead", { server.namesrv, "RMQ_SYS_TRACE_TOPIC", "TracedEnds" },
        function(line)
          local record = cjson.decode(line)
          local about = assert(told[record.msg_id], "a record of an unknown message")
          local expected = messages.make(seed, about.index)
          local keys = expected.keys
          if type(keys) == "table" then keys = table.concat(keys, " ") end
          check(not about[record.kind], about.index, "has two records of a kind")
          about[record.kind] = true
          check_equal(expected.tags or "null", record.tags, about.index, "tags")
          check_equal(keys or "null", record.keys, about.index, "keys")
          check_equal(about.address, record.store_host, about.index, "store_host")
          if record.kind == "Pub" then
            check_equal("Trans_Msg_Half", record.msg_type, about.index, "msg_type")
            halves = halves + 1
          else
            check_equal("EndTransaction", record.kind, about.index, "kind")
            check_equal("Trans_msg_Commit", record.msg_type, about.index, "msg_type")
            check_equal(about.state == "commit" and "COMMIT_MESSAGE" or "ROLLBACK_MESSAGE",
              record.state, about.index, "state")
            check_equal(record.msg_id, record.transaction_id, about.index, "transaction_id")
            check_equal(false, record.from_check, about.index, "from_check")
            ends = ends + 1
          end
        end, { expect = 2 * COUNT })
      assert.same({ COUNT, COUNT }, { ends, halves })
    end)

    if server.version == "5.4.0" then
      it("keeps recalls", function()
        local producer = rocketmq.producer { group = "traced", trace = true,
          namesrv = server.namesrv, send_msg_timeout = 20000 }
        local told = {}
        each_of_many(function(index)
          local result = assert(producer:send { topic = "TracedRecalls", body = "x",
            delay_ms = 600000, keys = "k" .. index })
          told[result.msg_id] = {}
          assert(producer:recall("TracedRecalls", result.recall_handle))
        end)
        assert(producer:shutdown())
        support.java("TraceRead", { server.namesrv, "RMQ_SYS_TRACE_TOPIC", "TracedRecalls" },
          function(line)
            local record = cjson.decode(line)
            assert.same({ "DefaultRegion", "traced", true },
              { record.region, record.group, record.success })
            if record.kind == "Pub" then assert.equal("Delay_Msg", record.msg_type) end
            assert.is_nil(told[record.msg_id][record.kind])
            told[record.msg_id][record.kind] = true
          end, { expect = 2 * COUNT })
        for _, kinds in pairs(told) do assert.same({ Pub = true, Recall = true }, kinds) end
      end)
    end

    it("keeps them in a topic of one's own as well", function()
      trace_and_read("Traced2", "TracesOfMine")
    end)
  end)
end
