-- Transactions on real brokers that ask soon (cluster.sh): what is committed stands in the topic, once
-- and byte for byte, as the Java client reads it, and what is rolled back does not; what is unknown is
-- asked about and then decided, by another producer of the group when the first is gone.

local child = require "spec.support.child"
local messages = require "spec.real.messages"
local readback = require "spec.real.readback"
local rocketmq = require "rocketmq"
local support = require "spec.real.support"
local wait = require "rocketmq.mock.wait"

local seed = tonumber(os.getenv "RMQ_SEED") or os.time() % 1000000
local COUNT, TASKS = 1000, 16
local PATIENCE = 120000

-- What the broker and the client note of a transaction.
local of_transactions = {
  TRAN_MSG = true, PGROUP = true, REAL_TOPIC = true, REAL_QID = true,
  TRANSACTION_CHECK_TIMES = true, ["__transactionId__"] = true, UNIQ_KEY = true,
  TRAN_PREPARED_QUEUE_OFFSET = true, TRANSACTION_PREPARED = true,
}

local function at(index) return ("seed %d, message %s"):format(seed, tostring(index)) end

-- What becomes of a message: at once, or, after "unknown", when the broker asks.
local first = { [0] = "commit", [1] = "rollback", [2] = "unknown", [3] = "unknown" }
local later = { [2] = "commit", [3] = "rollback" }

local function join(keys)
  return type(keys) == "table" and table.concat(keys, " ") or keys or ""
end

-- A broker's question shows the message as it was sent, but for its flag: what a broker asks about is a
-- copy that it makes without one, and so the flag is lost for those who read it later, too.
local function check_asked(asked, index)
  local sent = messages.make(seed, index)
  readback.check(asked.body == sent.body, at(index), "the body differs in the check")
  readback.equal(asked.tags, sent.tags, at(index), "tags in the check")
  readback.equal(join(asked.keys), join(sent.keys), at(index), "keys in the check")
  for name, value in pairs(sent.properties) do
    readback.equal(asked.properties[name], value, at(index), "property in the check " .. name)
  end
end

local function send_all(producer, topic)
  local ids, tasks, next_index = {}, {}, 0
  for i = 1, TASKS do
    tasks[i] = function()
      while next_index < COUNT do
        next_index = next_index + 1
        local index = next_index
        local message = messages.make(seed, index)
        message.topic = topic
        local state = first[index % 4]
        local result, err = producer:send_in_transaction(message, function() return state end)
        readback.check(result and not err, at(index), tostring(err))
        readback.equal(result.transaction_state, state, at(index), "state")
        ids[index] = result.msg_id
      end
    end
  end
  assert(rocketmq.gather(tasks))
  return ids
end

for _, server in ipairs(support.servers()) do
  describe("RocketMQ " .. server.version, function()
    it("delivers what is committed, once and byte for byte, and nothing else", function()
      local topic = "Transactions"
      support.java("Admin", { server.namesrv, "createTopic", 4, topic })
      local asked, n_asked, wrong = {}, 0, nil
      local producer = rocketmq.transaction_producer { group = "tx-" .. seed,
        namesrv = server.namesrv, send_msg_timeout = 20000,
        check = function(message)
          local index = tonumber(message.properties[messages.INDEX])
          local ok, why = pcall(check_asked, message, index)
          if not ok then wrong = wrong or why end
          if first[index % 4] ~= "unknown" then
            wrong = wrong or at(index) .. ": asked about though it was decided"
          end
          if not asked[index] then n_asked = n_asked + 1 end
          asked[index] = true
          if index % 3 == 0 then rocketmq.sleep(5) end
          return later[index % 4]
        end }
      local ids = send_all(producer, topic)
      wait(function() return n_asked == COUNT / 2 end, PATIENCE)
      assert.is_nil(wrong)
      assert.equal(COUNT / 2, n_asked)
      assert.is_true(producer:shutdown(20000))
      local found = {}
      readback.drain(server, { topic }, COUNT / 2, function(read)
        local index = tonumber(read.properties[messages.INDEX])
        readback.check(index and ids[index], at(index), "was read but never sent")
        readback.check(not found[index], at(index), "is there twice")
        readback.check((later[index % 4] or first[index % 4]) == "commit", at(index),
          "was rolled back and is there")
        found[index] = true
        local expected = messages.make(seed, index)
        if asked[index] then expected.flag = 0 end
        readback.compare(read, expected, { msgId = ids[index] }, at(index), of_transactions)
      end)
      for index = 1, COUNT do
        local committed = (later[index % 4] or first[index % 4]) == "commit"
        readback.equal(found[index] or false, committed, at(index), "whether it is there")
      end
    end)

    it("has the next producer decide for one that was killed", function()
      local topic, group = "Orphans", "orphans-" .. seed
      support.java("Admin", { server.namesrv, "createTopic", 4, topic })
      local killed = child.start { "--namesrv=" .. server.namesrv, "-e", ([[
        io.stdout:setvbuf "no"
        local rocketmq = require "rocketmq"
        local producer = rocketmq.transaction_producer { group = %q, send_msg_timeout = 20000,
          check = function() return "unknown" end }
        for i = 1, 20 do
          rocketmq.spawn(function()
            producer:send_in_transaction({ topic = %q, body = "orphan", keys = tostring(i) },
              function(message)
                print(i, message.msg_id)
                rocketmq.sleep(600000)
              end)
          end)
        end
      ]]):format(group, topic) }
      assert(wait(function() return select(2, killed.stdout:gsub("\n", "")) == 20 end, PATIENCE),
        killed.stderr)
      killed:kill "sigkill"
      killed:wait()
      local ids, asked, n_asked = {}, {}, 0
      for key, id in killed.stdout:gmatch "(%d+)\t(%x+)" do ids[key] = id end
      local second = rocketmq.transaction_producer { group = group, namesrv = server.namesrv,
        send_msg_timeout = 20000,
        check = function(message)
          local key = message.keys[1]
          if not asked[key] then n_asked = n_asked + 1 end
          asked[key] = message.msg_id
          return tonumber(key) % 2 == 0 and "commit" or "rollback"
        end }
      -- Brokers know it when it has spoken to each of them.
      local greetings = 0
      for _, queue in ipairs(assert(second:queues(topic))) do
        assert(second:send({ topic = topic, body = "hello" }, { queue = queue }))
        greetings = greetings + 1
      end
      wait(function() return n_asked == 20 end, PATIENCE)
      assert.same(ids, asked)
      second:shutdown(20000)
      local committed = {}
      readback.drain(server, { topic }, 10 + greetings, function(read)
        if support.base64_decode(read.body) ~= "orphan" then return end
        readback.check(not committed[read.keys], read.keys, "is there twice")
        committed[read.keys] = read.msgId
      end)
      for i = 1, 20 do
        local key = tostring(i)
        assert.equal(i % 2 == 0 and ids[key] or nil, committed[key])
      end
    end)
  end)
end
