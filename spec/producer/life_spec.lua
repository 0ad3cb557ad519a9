-- A producer from its start to its end, and what holds while many sends are under way.
local child = require "spec.support.child"
local cluster = require "spec.support.cluster"
local ffi = require "ffi"
local rocketmq = require "rocketmq"
local uv = require "luv"
local wait = require "rocketmq.mock.wait"

local SEND = "SEND_MESSAGE_V2"

ffi.cdef [[
  struct rmq_spec_mallinfo2 {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
  };
  struct rmq_spec_mallinfo2 mallinfo2(void);
]]

-- What C has allocated and not freed, as glibc counts it. Lua has an allocator of its own.
local function allocated_kib()
  local info = ffi.C.mallinfo2()
  return tonumber(info.uordblks + info.hblkhd) / 1024
end

describe("a producer", function()
  local c, producer
  before_each(function()
    c = cluster.new { topics = { Orders = 4 } }
    producer = c.producer
  end)
  after_each(function() c:finish() end)

  local message = { topic = "Orders", body = "x" }

  it("says who it is", function()
    assert.equal("spec", producer.group)
    assert.equal(c.mock.namesrv, producer.namesrv)
    assert.truthy(tostring(producer):find("producer 'spec'", 1, true))
    assert.truthy(tostring(producer):find(producer.client_id, 1, true))
    assert.truthy(tostring(producer):find(c.mock.namesrv, 1, true))
  end)

  it("counts what it does", function()
    for _ = 1, 3 do assert(producer:send(message)) end
    c.mock:rule { code = SEND, times = 1, answer = { code = "INVALID_PARAMETER" } }
    assert.is_nil((producer:send(message)))
    local stats = producer:stats()
    assert.equal(4, stats.sent)
    assert.equal(3, stats.acknowledged)
    assert.equal(1, stats.failed)
    assert.equal(0, stats.inflight)
    assert.equal(0, stats.inflight_bytes)
    assert.equal(0, stats.waiting)
  end)

  it("says what is meant by a name that it does not have", function()
    local transactions = rocketmq.transaction_producer { group = "t", namesrv = c.mock.namesrv,
      check = function() return "commit" end }
    for _, one in ipairs { producer, transactions } do
      for name, hint in pairs {
        sendOneway = "did you mean 'send_oneway'%?",
        sendMessageInTransaction = "did you mean 'send_in_transaction'%?",
        fetchPublishMessageQueues = "did you mean 'queues'%?",
        recallMessage = "did you mean 'recall'%?",
        earliestMsgStoreTime = "did you mean 'earliest_time'%?",
        registerSendMessageHook = "did you mean 'add_hook'%?",
        close = "did you mean 'shutdown'%?",
        create_topics = "did you mean 'create_topic'%?",
        start = "a producer has started when it is made",
        setSendMsgTimeout = "settings are given to what makes the producer",
        getProducerGroup = "producer:settings%(%) shows them",
        addRetryResponseCode = "settings are given to what makes the producer",
        xyzzy = "known are .*send_batch",
      } do
        local ok, why = pcall(function() return one[name](one) end)
        assert.is_false(ok)
        assert.matches("^spec/producer/life_spec.lua:%d+: producer: unknown name '" .. name .. "'.*"
          .. hint, why)
      end
    end
    transactions:shutdown()
  end)

  it("has no metamethods that libraries may ask for, and says so with nil", function()
    assert.same({ producer }, { producer })
    assert.is_nil(getmetatable(producer).__call)
    assert.is_nil(getmetatable(producer)._name)
  end)

  it("is a producer only for its own methods", function()
    local Producer = getmetatable(producer).__index
    assert.error_matches(function() producer.send(message) end, "producer:send.* with a colon")
    assert.error_matches(function() Producer.send({}, message) end, "producer:send.* with a colon")
    for _, name in ipairs { "add_hook", "flush", "remove_hook", "set_namesrv", "settings",
      "shutdown", "stats" } do
      local ok, why = pcall(function() producer[name] {} end)
      assert.is_false(ok)
      assert.matches(("^spec/producer/life_spec.lua:%%d+: producer.%s: call it with a colon, as in "
        .. "producer:%s%%(...%%)"):format(name, name), why)
    end
    assert.error_matches(function() Producer.queues({ handle = io.stdout }, "Orders") end,
      "method of a producer")
  end)

  it("is named in the brokers' heartbeats, and takes its leave", function()
    assert(producer:send(message))
    local function client() return c.mock:clients()["broker-a"][producer.client_id] end
    assert(c.mock:wait(client))
    assert.is_true(producer:shutdown())
    assert(c.mock:wait(function() return not client() end))
    assert.equal(1, #c.mock:requests { code = "UNREGISTER_CLIENT" })
  end)

  describe("flush", function()
    it("gives true when nothing is under way", function() assert.is_true(producer:flush()) end)

    it("waits for what is under way", function()
      c.mock:rule { code = SEND, delay = 30 }
      local answered = 0
      for _ = 1, 5 do
        rocketmq.spawn(function()
          assert(producer:send(message))
          answered = answered + 1
        end)
      end
      assert(wait(function() return producer:stats().inflight == 5 end, 5000))
      assert.is_true(producer:flush())
      assert(wait(function() return answered == 5 end, 5000))
    end)

    it("says how many have no answer when its time is over", function()
      c.mock:rule { code = SEND, delay = 300 }
      local task = rocketmq.spawn(function() return producer:send(message) end)
      assert(wait(function() return producer:stats().inflight == 1 end, 5000))
      local ok, err = producer:flush(10)
      assert.is_nil(ok)
      assert.equal("timeout", err.kind)
      assert.truthy(err.message:find "^1 send had no answer")
      assert.equal("SEND_OK", task:wait().status)
    end)

    it("takes a time only", function()
      assert.error_matches(function() producer:flush "1" end, "timeout must be a number")
      local ok, err = producer:flush(-1)
      assert.is_nil(ok)
      assert.truthy(err.message:find "timeout is %-1")
    end)
  end)

  describe("shutdown", function()
    it("ends it, and may be called again", function()
      assert.is_true(producer:shutdown())
      assert.is_true(producer:shutdown())
      local result, err = producer:send(message)
      assert.is_nil(result)
      assert.equal("state", err.kind)
      assert.truthy(err.message:find("spec", 1, true), err.message)
      assert.truthy(err.message:find "shut down", err.message)
      local queues
      queues, err = producer:queues "Orders"
      assert.is_nil(queues)
      assert.equal("state", err.kind)
      assert.equal("spec", producer:settings().group)
      assert.equal(0, producer:stats().inflight)
    end)

    it("waits for what is under way", function()
      c.mock:rule { code = SEND, delay = 30 }
      local task = rocketmq.spawn(function() return producer:send(message) end)
      assert(wait(function() return producer:stats().inflight == 1 end, 5000))
      assert.is_true(producer:shutdown())
      assert.equal("SEND_OK", task:wait().status)
    end)

    it("fails what has no answer in its time", function()
      c.mock:rule { code = SEND, silent = true }
      local task = rocketmq.spawn(function() return producer:send(message) end)
      assert(c.mock:wait(function(mock) return #mock:requests { code = SEND } == 1 end))
      -- Exit status 3 of this process would show that it is told twice.
      local ok, err = producer:shutdown(20)
      assert.is_nil(ok)
      assert.truthy(err.message:find "^1 send had no answer")
      local result, why = task:wait()
      assert.is_nil(result)
      assert.equal("state", why.kind)
      assert.is_true(why.maybe_stored)
    end)

    it("waits for nothing when it is given no time", function()
      c.mock:rule { code = SEND, silent = true }
      local task = rocketmq.spawn(function() return producer:send(message) end)
      assert(c.mock:wait(function(mock) return #mock:requests { code = SEND } == 1 end))
      local ok, err = producer:flush(0)
      assert.is_nil(ok)
      assert.matches("^1 send had no answer", err.message)
      ok, err = producer:shutdown(0)
      assert.is_nil(ok)
      assert.matches("^1 send had no answer", err.message)
      assert.equal("state", select(2, task:wait()).kind)
    end)

    it("leaves another producer alone", function()
      local other = c:add_producer()
      assert.is_true(producer:shutdown())
      assert(other:send(message))
    end)
  end)

  it("sends inside coroutines, callbacks and timers", function()
    local generator = coroutine.wrap(function()
      for i = 1, 3 do
        assert(producer:send(message))
        coroutine.yield(i)
      end
    end)
    assert.equal(1, generator())
    assert.equal(2, generator())
    local status
    local timer = uv.new_timer()
    timer:start(0, 0, function()
      timer:close()
      status = assert(producer:send(message)).status
    end)
    assert(wait(function() return status end, 5000))
    assert.equal("SEND_OK", status)
    assert.equal(3, generator())
  end)

  it("refuses to send where it cannot wait, before anything is sent", function()
    assert(producer:send(message))
    local ok, why = pcall(table.sort, { 3, 1, 2 }, function(a, b)
      producer:send(message)
      return a < b
    end)
    assert.is_false(ok)
    assert.truthy(why:find "send cannot wait here", why)
    assert.is_true(producer:flush())
    assert.equal(1, c.mock:count())
    assert.equal(1, producer:stats().sent)
  end)

  it("sends what the message was when it was sent", function()
    c.mock:rule { at = "namesrv", delay = 20 }
    local changing = { topic = "Orders", body = "before", tags = "before", keys = { "before" },
      properties = { when = "before" } }
    local task = rocketmq.spawn(function() return producer:send(changing) end)
    assert(wait(function() return producer:stats().inflight == 1 end, 5000))
    changing.topic, changing.body, changing.tags = "Other", "after", "after"
    changing.keys[1], changing.properties.when, changing.properties.more = "after", "after", "x"
    collectgarbage()
    assert.equal("SEND_OK", task:wait().status)
    local got = c.mock:messages()[1]
    assert.equal("Orders", got.topic)
    assert.equal("before", got.body)
    assert.equal("before", got.properties.TAGS)
    assert.equal("before", got.properties.KEYS)
    assert.equal("before", got.properties.when)
    assert.is_nil(got.properties.more)
  end)

  it("keeps a body that nothing else refers to until it is sent", function()
    c.mock:rule { at = "namesrv", delay = 20 }
    local tasks, shared = {}, { topic = "Orders" }
    for i = 1, 20 do
      tasks[i] = rocketmq.spawn(function()
        shared.body = ("%d,"):format(i):rep(5000)
        return producer:send(shared)
      end)
    end
    assert(wait(function() return producer:stats().inflight == 20 end, 5000))
    shared.body = nil
    for _ = 1, 2 do collectgarbage() end
    local garbage = {}
    for i = 1, 1000 do garbage[i] = ("g"):rep(10000 + i) end
    assert.equal(1000, #garbage)
    for _, task in ipairs(tasks) do assert(task:wait()) end
    for _, got in ipairs(c.mock:messages()) do
      local number = got.body:match "^(%d+),"
      assert.equal((number .. ","):rep(5000), got.body)
    end
  end)

  it("sends 10,000 messages from many tasks, each once", function()
    local TASKS, EACH = 50, 200
    local seen, functions = {}, {}
    for task = 1, TASKS do
      functions[task] = function()
        for number = 1, EACH do
          local body = task .. ":" .. number
          local result = assert(producer:send { topic = "Orders", body = body, keys = body })
          assert(not seen[result.msg_id])
          seen[result.msg_id] = body
        end
      end
    end
    assert(rocketmq.gather(functions))
    assert.equal(TASKS * EACH, c.mock:count())
    for _, got in ipairs(c.mock:messages "Orders") do
      assert.equal(seen[got.properties.UNIQ_KEY], got.body)
      seen[got.properties.UNIQ_KEY] = nil
    end
    assert.is_nil(next(seen))
    local stats = producer:stats()
    assert.equal(0, stats.inflight)
    assert.equal(0, stats.inflight_bytes)
  end)

  it("without a reference still delivers what is under way", function()
    c.mock:rule { code = SEND, delay = 50 }
    local forgotten = rocketmq.producer { group = "forgotten", namesrv = c.mock.namesrv }
    local watch = setmetatable({ handle = forgotten.handle }, { __mode = "v" })
    local task = rocketmq.spawn(function(p) return p:send(message) end, forgotten)
    assert(c.mock:wait(function(mock) return #mock:requests { code = SEND } == 1 end))
    forgotten = nil -- luacheck: ignore 311
    for _ = 1, 3 do collectgarbage() end
    assert.equal("SEND_OK", task:wait().status)
    task = nil -- luacheck: ignore 311
    -- Nothing is under way any more: the collector takes it, and it takes its leave of the broker.
    assert(c.mock:wait(function(mock)
      collectgarbage()
      return #mock:requests { code = "UNREGISTER_CLIENT" } == 1
    end))
    assert.is_nil(watch.handle)
  end)

  it("that was shut down is collected soon, little as Lua sees of it", function()
    local ended = child.run { "-e", [[
      local rocketmq = require "rocketmq"
      local made, most = setmetatable({}, { __mode = "k" }), 0
      for _ = 1, 400 do
        local producer = rocketmq.producer { group = "short", namesrv = "127.0.0.1:1" }
        producer:shutdown()
        made[producer] = true
        local there = 0
        for _ in pairs(made) do there = there + 1 end
        most = math.max(most, there)
      end
      print(most)
    ]] }
    assert.equal("", ended.stderr)
    assert.is_true(tonumber(ended.stdout) <= 20)
  end)

  it("leaves a collector alone that the script has stopped", function()
    collectgarbage "stop"
    c:add_producer()
    local is_running = collectgarbage "isrunning"
    collectgarbage "restart"
    assert.is_false(is_running)
  end)

  it("that was shut down leaves nothing behind", function()
    local function use()
      local p = rocketmq.producer { group = "short", namesrv = c.mock.namesrv }
      assert(p:send(message))
      p:shutdown()
    end
    local function settle()
      jit.flush() -- machine code keeps the functions that it calls
      for _ = 1, 2 do collectgarbage() end
      rocketmq.sleep(1)
      return allocated_kib()
    end
    for _ = 1, 10 do use() end
    local before = settle()
    for _ = 1, 100 do use() end
    -- The last ones may take more than one turn of the loop to go.
    local more
    local gone = wait(function()
      more = settle() - before
      return more < 500
    end, 10000)
    assert.is_true(gone, ("%d KiB more"):format(more))
  end)
end)

describe("memory", function()
  it("of Lua stays flat however many are sent", function()
    local c = cluster.new { topics = { Orders = 4 }, keep = 0 }
    local message = { topic = "Orders", body = ("x"):rep(128), properties = { p = "v" } }
    local function send(n)
      for _ = 1, n do assert(c.producer:send(message)) end
      collectgarbage()
      collectgarbage()
      return collectgarbage "count"
    end
    local before = send(1000)
    local after = send(5000)
    assert.is_true(after - before < 64, ("%d KiB more"):format(after - before))
    c:finish()
  end)
end)
