-- What RocketMQ's own client sends arrives at the mock equal, and what the mock answers the client
-- understands.

local new_mock = require "rocketmq.mock"
local support = require "spec.real.support"

-- Set it to the seed of a failure to see that failure again.
local seed = tonumber(os.getenv "RMQ_SEED") or os.time() % 1000000
local COUNT = 400

-- Properties that the client adds to those of the message; the last one in transactions.
local added = { UNIQ_KEY = true, WAIT = true, PGROUP = true }

local function text(field)
  if field == "-" then return nil end
  return support.base64_decode(field)
end

-- A line of the helper: what was sent, and what the client was told about it.
local function read_line(line)
  local fields = {}
  for field in (line .. "\t"):gmatch "([^\t]*)\t" do fields[#fields + 1] = field end
  local sent = { index = fields[1], status = fields[2], msg_id = fields[3],
    offset_msg_id = fields[4], broker = fields[5], queue_id = tonumber(fields[6]),
    queue_offset = tonumber(fields[7]),
    flag = tonumber(fields[8]), tags = text(fields[9]), keys = text(fields[10]),
    body = support.base64_decode(fields[11]), properties = {} }
  for name, value in fields[12]:gmatch "([^:,]*):([^,]*)" do
    sent.properties[support.base64_decode(name)] = support.base64_decode(value)
  end
  return sent
end

local function by_index(mock)
  local found = {}
  for _, message in ipairs(mock:messages "FromJava") do
    local index = message.properties.index
    assert.is_nil(found[index], "message " .. index .. " came twice")
    found[index] = message
  end
  return found
end

local function check_equal(expected, actual, sent, what)
  if expected ~= actual then
    error(("seed %d, message %s: %s is %q, not %q"):format(seed, sent.index, what, tostring(actual),
      tostring(expected)), 0)
  end
end

-- The member of a joined list that belongs to the message in this place of its batch.
local function own(list, number)
  local at = 0
  for one in list:gmatch "[^,]+" do
    at = at + 1
    if at == number then return one end
  end
end

local function check_content(sent, message)
  check_equal(sent.body, message.body, sent, "the body")
  check_equal(sent.tags, message.tags, sent, "tags")
  check_equal(sent.keys, message.properties.KEYS, sent, "keys")
  check_equal(sent.flag, message.flag, sent, "flag")
  for name, value in pairs(sent.properties) do
    check_equal(value, message.properties[name], sent, ("property %q"):format(name))
  end
  for name in pairs(message.properties) do
    check_equal(true, sent.properties[name] ~= nil or added[name] == true, sent,
      ("property %q was sent"):format(name))
  end
end

local function check_answer(sent, message, number)
  check_equal("SEND_OK", sent.status, sent, "status")
  check_equal(message.msg_id, own(sent.msg_id, number), sent, "msg_id")
  check_equal(message.offset_msg_id, own(sent.offset_msg_id, number), sent, "offset_msg_id")
  check_equal(message.broker, sent.broker, sent, "broker")
  check_equal(message.queue_id, sent.queue_id, sent, "queue_id")
  check_equal(message.queue_offset, sent.queue_offset + number - 1, sent, "queue_offset")
end

for _, client in ipairs { "5.4.0", "4.9.2" } do
  describe("the Java client of " .. client, function()
    for _, mode in ipairs { "sync", "async", "oneway", "batch" } do
      it("sends " .. mode .. " to the mock", function()
        local mock = new_mock { brokers = 2, topics = { FromJava = 4 } }
        finally(function() mock:close() end)
        local lines = support.java_beside(client, "SendRandom",
          { mock.namesrv, "FromJava", mode, COUNT, seed })
        assert.equal(COUNT, #lines)
        assert.equal(COUNT, (assert(mock:wait(COUNT))))
        local messages, compressed = by_index(mock), 0
        for position, line in ipairs(lines) do
          local sent = read_line(line)
          local message = messages[sent.index]
          assert.is_truthy(message, "message " .. sent.index .. " did not come")
          check_content(sent, message)
          assert.equal(mode == "batch", message.batch)
          assert.equal(mode == "oneway", message.oneway)
          if mode ~= "oneway" then
            check_answer(sent, message, mode == "batch" and (position - 1) % 10 + 1 or 1)
          end
          if message.compressed then compressed = compressed + 1 end
        end
        assert.equal(mode ~= "batch", compressed > 0)
        assert.same({}, mock:bad_input())
        assert.equal("java-" .. mode, mock:messages()[1].group)
      end)
    end

    it("commits, rolls back, and is asked about transactions at the mock", function()
      local mock = new_mock { brokers = 2, topics = { FromJava = 4 }, transaction_timeout = 50,
        transaction_check_interval = 200, transaction_check_max = 1000 }
      finally(function() mock:close() end)
      local lines = support.java_beside(client, "SendRandom",
        { mock.namesrv, "FromJava", "transaction", COUNT, seed })
      assert.equal(COUNT, #lines)
      assert(mock:wait(function() return #mock:transactions { state = "prepared" } == 0 end))
      local messages = by_index(mock)
      for position, line in ipairs(lines) do
        local sent = read_line(line)
        check_equal("SEND_OK", sent.status, sent, "status")
        local transaction = mock:transactions { msg_id = sent.msg_id }[1]
        local turn = (position - 1) % 3
        check_equal(turn == 1 and "rolled back" or "committed", transaction.state, sent, "state")
        -- About the others it may ask as well, when the client takes its time.
        local is_asked = transaction.checks > 0
        check_equal(true, is_asked or turn ~= 2, sent, "that the broker asked")
        -- Of the half message only; and what the client has put beside after the send.
        sent.properties.TRAN_MSG, sent.properties.__transactionId__ = nil, nil
        check_equal(turn ~= 1, messages[sent.index] ~= nil, sent, "that it is there")
        if turn ~= 1 then check_content(sent, messages[sent.index]) end
      end
      assert.same({}, mock:bad_input())
    end)
  end)
end
