-- The records of message trace stand in the trace topic of a real RocketMQ, and the Java client's own decoder
-- reads from them what the script was told.

local cjson = require "cjson"
local messages = require "spec.real.messages"
local support = require "spec.real.support"

local seed = tonumber(os.getenv "RMQ_SEED") or os.time() % 1000000
local COUNT = 1000
local COMPRESSED_FROM = 4096

local function check(holds, index, what)
  if not holds then error(("seed %d, message %s: %s"):format(seed, tostring(index), what), 0) end
end

local function check_equal(expected, actual, index, what)
  check(expected == actual, index, ("%s is %q, not %q"):format(what, tostring(actual),
    tostring(expected)))
end

-- Sends through a process of its own; gives what it was told, by msg_id.
local function send(server, topic, trace)
  local told, n, traced = {}, 0, nil
  support.rmqlua("spec/real/trace_many.lua", { server.namesrv, topic, seed, COUNT, trace },
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

for _, server in ipairs(support.servers()) do
  local function trace_and_read(topic, trace)
    local began = os.time() * 1000
    local told = send(server, topic, trace)
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
      check_record(record, messages.make(seed, about.index), about, topic)
    end, { expect = COUNT })
    check_equal(COUNT, found, "?", "the number of records")
  end

  describe("RocketMQ " .. server.version, function()
    it("keeps a record of each of 1,000 sends in its trace topic", function()
      support.java("Admin", { server.namesrv, "createTopic", 4, "Traced" })
      trace_and_read("Traced", "RMQ_SYS_TRACE_TOPIC")
    end)

    it("keeps them in a topic of one's own as well", function()
      support.java("Admin", { server.namesrv, "createTopic", 4, "Traced2", "TracesOfMine" })
      trace_and_read("Traced2", "TracesOfMine")
    end)
  end)
end
