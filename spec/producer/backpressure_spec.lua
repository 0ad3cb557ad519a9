-- Bounds on what is under way: who waits, who is refused, and that all counters come back to zero.
local cluster = require "spec.support.cluster"
local ffi = require "ffi"
local rocketmq = require "rocketmq"
local uv = require "luv"
local wait = require "rocketmq.mock.wait"

local SEND = "SEND_MESSAGE_V2"

pcall(ffi.cdef, [[
  struct rmq_spec_mallinfo2 {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
  };
  struct rmq_spec_mallinfo2 mallinfo2(void);
]])

-- What C has allocated and not freed, as glibc counts it. Lua has an allocator of its own.
local function allocated_kib()
  local info = ffi.C.mallinfo2()
  return tonumber(info.uordblks + info.hblkhd) / 1024
end

describe("back-pressure", function()
  local c, producer
  local message = { topic = "Orders", body = "x" }

  local function start(settings, description)
    c = cluster.new(description or { brokers = 2, topics = { Orders = 4 } }, settings)
    producer = c.producer
  end
  after_each(function() c:finish() end)

  local function assert_all_zero()
    local stats = producer:stats()
    assert.same({ 0, 0, 0 }, { stats.inflight, stats.waiting, stats.inflight_bytes })
  end

  it("lets a task wait for room, in every mode, and first come first served", function()
    start { max_inflight = 2 }
    assert(producer:send(message))
    c.mock:rule { code = SEND, delay = 10 }
    local queue = { broker = "broker-a", id = 0 }
    local tasks = {}
    for i = 1, 12 do
      tasks[i] = rocketmq.spawn(function()
        local m = { topic = "Orders", body = tostring(i) }
        local options = { queue = queue }
        if i % 2 == 0 then return assert(producer:send_async(m, options)) end
        return assert(producer:send(m, options))
      end)
    end
    -- Tasks begin in the order of their spawning, so this one looks when all of them have.
    local begun = rocketmq.spawn(function() return producer:stats() end):wait()
    assert.same({ 2, 10 }, { begun.inflight, begun.waiting })
    for _, task in ipairs(tasks) do assert(task:wait()) end
    assert.is_true(producer:flush())
    local order = {}
    for i, stored in ipairs(c.mock:messages("Orders", "broker-a", 0)) do
      order[i] = tonumber(stored.body)
    end
    if order[1] ~= 1 then table.remove(order, 1) end
    for i, n in ipairs(order) do assert.equal(i, n) end
    assert_all_zero()
  end)

  it("gives an error of its own where nobody can wait", function()
    start { max_inflight = 1 }
    c.mock:rule { code = SEND, times = 1, delay = 50 }
    assert(producer:send_async(message))
    local errs = {}
    table.sort({ 1, 2 }, function(a, b)
      for _, method in ipairs { "send_async", "send_oneway" } do
        local ok, err = producer[method](producer, message)
        assert(ok == nil)
        errs[#errs + 1] = err
      end
      return a < b
    end)
    assert.is_true(#errs >= 2)
    for _, err in ipairs(errs) do
      assert.equal("overload", err.kind)
      assert.equal("Orders", err.topic)
      assert.matches("1 sends with 1 bytes are under way %(max_inflight 1", err.message)
    end
    assert.is_true(producer:flush())
    assert_all_zero()
  end)

  it("gives it to a selector, too", function()
    start { max_inflight = 1 }
    local inner
    assert(producer:send(message, { selector = function()
      inner = { producer:send_oneway(message) }
      return 1
    end }))
    assert.is_nil(inner[1])
    assert.equal("overload", inner[2].kind)
    assert_all_zero()
  end)

  it("ends the wait for room with the send's time, and the callback does not run", function()
    start { max_inflight = 1 }
    c.mock:rule { code = SEND, times = 1, silent = true }
    local first
    assert(producer:send_async(message, { timeout = 60000, retries = 0 }, function(_, why)
      first = why
    end))
    local called = false
    local ok, err = producer:send_async(message, { timeout = 20 }, function() called = true end)
    assert.is_nil(ok)
    assert.equal("timeout", err.kind)
    assert.matches("waited 20 ms for room", err.message)
    ok, err = producer:send_oneway(message, { timeout = 20 })
    assert.is_nil(ok)
    assert.equal("timeout", err.kind)
    for _, name in ipairs { "broker-a", "broker-b" } do c.mock:broker(name):disconnect() end
    assert.is_true(producer:flush())
    assert.is_false(called)
    assert.equal("closed", first.kind)
    assert_all_zero()
  end)

  it("lets a luv callback wait, too, as it runs as a task", function()
    start { max_inflight = 1 }
    c.mock:rule { code = SEND, delay = 5 }
    local sent = 0
    local timer = uv.new_timer()
    timer:start(0, 0, function()
      for _ = 1, 3 do
        assert(producer:send_async(message, function() sent = sent + 1 end))
      end
      timer:close()
    end)
    assert(wait(function() return sent == 3 end, 5000))
    assert_all_zero()
  end)

  it("refuses at once what is longer than the bound on bytes", function()
    start { max_inflight_bytes = 2 ^ 20 }
    local big = { topic = "Orders", body = ("b"):rep(2 ^ 20 + 1) }
    for _, method in ipairs { "send", "send_async", "send_oneway" } do
      local ok, err = producer[method](producer, big)
      assert.is_nil(ok)
      assert.equal("overload", err.kind)
      assert.matches("1048576", err.message)
    end
    big.body = big.body:sub(2)
    assert(producer:send(big))
    assert_all_zero()
  end)

  it("bounds bytes as well as sends", function()
    start { max_inflight_bytes = 2 ^ 20 }
    c.mock:rule { code = SEND, delay = 2 }
    local most, done = 0, 0
    for _ = 1, 40 do
      assert(producer:send_async({ topic = "Orders", body = ("b"):rep(200000) },
        function(result) done = done + (result and 1 or 0) end))
      most = math.max(most, producer:stats().inflight_bytes)
    end
    assert(wait(function() return done == 40 end, 10000))
    assert.is_true(most <= 2 ^ 20 and most >= 800000, most)
    assert_all_zero()
  end)

  it("gives room back after every outcome", function()
    start({ max_inflight = 8, send_msg_timeout = 200, retries = 1, async_retries = 1 })
    local outcomes = { { answer = { code = 13 } }, { answer = { code = 2 } }, { close = true },
      { reset = true }, { silent = true }, { raw = "\0\0\0\1x" }, { answer = { code = 10 } } }
    for _, outcome in ipairs(outcomes) do
      outcome.code = SEND
      local rule = c.mock:rule(outcome)
      for _ = 1, 12 do
        producer:send_async(message, function() end)
      end
      producer:send(message)
      producer:flush()
      rule:remove()
      assert_all_zero()
    end
    for _ = 1, 20 do assert(producer:send(message, { timeout = 20000 })) end
  end)

  it("loses none of many oneways in a loop that never yields, with flat memory", function()
    local N = 200000
    start({ max_inflight = 1000 }, { brokers = 1, topics = { Orders = 4 }, keep = 10 })
    for _ = 1, 20000 do assert(producer:send_oneway(message)) end
    producer:flush()
    collectgarbage()
    local c_before, lua_before = allocated_kib(), collectgarbage "count"
    local most_c = c_before
    for i = 1, N do
      assert(producer:send_oneway(message))
      if i % 5000 == 0 then most_c = math.max(most_c, allocated_kib()) end
    end
    assert.is_true(producer:flush(20000))
    assert(c.mock:wait(N + 20000, 60000))
    collectgarbage()
    assert.is_true(most_c - c_before < 8192, ("C grew by %d KiB"):format(most_c - c_before))
    local lua_grown = collectgarbage "count" - lua_before
    assert.is_true(lua_grown < 4096, ("Lua grew by %d KiB"):format(lua_grown))
    assert.equal(N + 20000, c.mock:count())
    assert_all_zero()
  end)

  it("stays flat against a broker that reads nothing", function()
    -- A server that takes connections and never reads.
    local server, sockets = uv.new_tcp(), {}
    server:bind("127.0.0.1", 0)
    server:listen(16, function()
      local socket = uv.new_tcp()
      server:accept(socket)
      sockets[#sockets + 1] = socket
    end)
    start({ max_inflight_bytes = 4 * 2 ^ 20, send_msg_timeout = 150, retries = 0,
      async_retries = 0 }, { brokers = 1, topics = { Orders = 1 } })
    local wire = require "rocketmq.wire"
    c.mock:rule { code = "GET_ROUTEINFO_BY_TOPIC", answer = { code = 0, body = wire.encode_route {
      queues = { { broker_name = "deaf", read_queue_nums = 1, write_queue_nums = 1, perm = 6 } },
      brokers = { { cluster = "c", broker_name = "deaf",
        addrs = { [0] = "127.0.0.1:" .. server:getsockname().port } } },
    } } }
    local body = ("b"):rep(16384)
    local refused, failed, most = 0, 0, 0
    local before = allocated_kib()
    for i = 1, 3000 do
      local ok, err = producer:send_async({ topic = "Orders", body = body }, function(_, why)
        failed = failed + (why and 1 or 0)
      end)
      if not ok then
        refused = refused + 1
        assert.equal("timeout", err.kind)
      end
      if i % 50 == 0 then most = math.max(most, allocated_kib() - before) end
    end
    producer:flush()
    -- What is under way, its copy in the connection's buffer, and Lua's strings are not more.
    assert.is_true(most < 24 * 1024, ("C grew by %d KiB"):format(most))
    assert(wait(function() return failed + refused == 3000 end, 5000))
    assert_all_zero()
    producer:shutdown(10)
    for _, socket in ipairs(sockets) do socket:close() end
    server:close()
  end)
end)
