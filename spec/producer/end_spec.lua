-- Ends: flush, shutdown, the end of the script, signals. What is under way gets its time, what is not
-- delivered is told.
local child = require "spec.support.child"
local new_mock = require "rocketmq.mock"
local wait = require "rocketmq.mock.wait"

local SEND = "SEND_MESSAGE_V2"

describe("at the end", function()
  local mock
  before_each(function() mock = new_mock { brokers = 2, topics = { Orders = 4 } } end)
  after_each(function() mock:close() end)

  local HEAD = [[
    io.stdout:setvbuf "no"
    local rocketmq = require "rocketmq"
    local message = { topic = "Orders", body = "x" }
    local producer = rocketmq.producer { group = "g", flush_timeout = 60 }
  ]]
  -- For what is to be delivered, however busy the machine is.
  local PATIENT = [[
    producer = rocketmq.producer { group = "g", flush_timeout = 60000, timeout = 60000 }
  ]]

  local function start(script)
    return child.start { "--namesrv=" .. mock.namesrv, "-e", HEAD .. script }
  end
  local function run(script) return start(script):wait() end
  local function unregistered() return #mock:requests { code = "UNREGISTER_CLIENT" } end
  local function silence() return mock:rule { code = SEND, silent = true } end

  it("of a script its async and oneway sends are delivered, and it takes its leave", function()
    mock:rule { code = SEND, delay = 20 }
    local ended = run(PATIENT .. [[
      for i = 1, 200 do
        assert(producer:send_async(message, function(result) assert(result) end))
        assert(producer:send_async(message))
        assert(producer:send_oneway(message))
      end
    ]])
    assert.equal("", ended.stderr)
    assert.equal(0, ended.code)
    assert.equal(600, mock:count())
    assert.equal(2, unregistered())
  end)

  it("what has no answer within flush_timeout is told in a line, with status 3", function()
    silence()
    local ended = run [[
      for i = 1, 3 do
        assert(producer:send_async(message))
        assert(producer:send_oneway(message))
      end
      while producer:stats().inflight > 3 do rocketmq.sleep(1) end
    ]]
    assert.equal("", ended.stdout)
    assert.equal("rmqlua: producer 'g': 3 messages were not delivered\n", ended.stderr)
    assert.equal(3, ended.code)
    assert.equal(2, unregistered())
  end)

  it("a script has not ended while a callback is to come, which may send again", function()
    local ended = run [[
      local function step(n)
        assert(producer:send_async(message, function(result)
          print(n, result.status)
          if n < 3 then step(n + 1) end
        end))
      end
      step(1)
    ]]
    assert.equal("1\tSEND_OK\n2\tSEND_OK\n3\tSEND_OK\n", ended.stdout)
    assert.equal(0, ended.code)
  end)

  it("callbacks may not send any more once a signal has come", function()
    silence()
    local running = start [[
      assert(producer:send_async(message, function()
        for _, method in ipairs { "send", "send_async", "send_oneway" } do
          local ok, err = producer[method](producer, message)
          print(ok, err.kind)
        end
      end))
      print "ready"
    ]]
    assert(wait(function() return running.stdout:find "ready" end, 10000))
    running:kill "sigterm"
    local ended = running:wait()
    assert.equal("ready\n" .. ("nil\tstate\n"):rep(3), ended.stdout)
    assert.equal(3, ended.code)
  end)

  it("an error of the script is 1, and what is under way is still flushed", function()
    local rule = mock:rule { code = SEND, delay = 20 }
    local ended = run(PATIENT .. [[
      for i = 1, 5 do assert(producer:send_async(message)) end
      error "the script's"
    ]])
    assert.equal(1, ended.code)
    assert.matches("the script's", ended.stderr)
    assert.equal(5, mock:count())
    rule:remove()
    silence()
    ended = run [[
      assert(producer:send_oneway(message))
      assert(producer:send_async(message))
      while producer:stats().inflight > 1 do rocketmq.sleep(1) end
      error "again"
    ]]
    assert.equal(1, ended.code) -- 1 beats 3
    assert.matches("was not delivered", ended.stderr)
  end)

  for signal, status in pairs { sigterm = 143, sigint = 130 } do
    it(signal .. " flushes and ends with " .. status, function()
      mock:rule { code = SEND, delay = 20 }
      local running = start(PATIENT .. [[
        rocketmq.spawn(function()
          for i = 1, 50 do assert(producer:send_async(message)) end
          print "sent"
        end)
        rocketmq.sleep(60000)
      ]])
      assert(wait(function() return running.stdout == "sent\n" end, 10000))
      running:kill(signal)
      running:wait()
      assert.equal(status, running.code)
      assert.equal(50, mock:count())
      assert.equal(2, unregistered())
    end)

    it(signal .. " with something undelivered ends with 3", function()
      silence()
      local running = start [[
        assert(producer:send_async(message))
        print "sent"
        rocketmq.sleep(60000)
      ]]
      assert(wait(function() return running.stdout == "sent\n" end, 10000))
      assert(mock:wait(function() return #mock:requests { code = SEND } == 1 end))
      running:kill(signal)
      running:wait()
      assert.equal(3, running.code)
      assert.matches("producer 'g': 1 message was not delivered", running.stderr)
    end)

    it(signal .. " a second time ends at once", function()
      mock:rule { at = "broker-a", code = SEND, silent = true }
      local running = start [[
        assert(producer:send(message, { queue = { broker = "broker-b", id = 0 } }))
        local slow = rocketmq.producer { group = "slow", flush_timeout = 60000 }
        local options = { timeout = 60000, queue = { broker = "broker-a", id = 0 } }
        assert(slow:send_async(message, options))
        print "sent"
        rocketmq.sleep(60000)
      ]]
      assert(wait(function() return running.stdout == "sent\n" end, 10000))
      assert(mock:wait(function() return #mock:requests { code = SEND } == 2 end))
      running:kill(signal)
      -- The idle producer has taken its leave, so the first signal is being followed.
      assert(mock:wait(function() return unregistered() == 1 end))
      running:kill(signal)
      running:wait()
      assert.equal(3, running.code)
      assert.matches("a second signal, ending without flushing; messages undelivered: 1",
        running.stderr)
    end)
  end

  it("a loop that sends for ever is stopped by a signal, with all it has sent", function()
    local running = start [[
      producer = rocketmq.producer { group = "g", max_inflight = 500,
        send_msg_timeout = 60000, flush_timeout = 60000 }
      while true do assert(producer:send_oneway(message)) end
    ]]
    assert(mock:wait(1000))
    running:kill "sigterm"
    running:wait()
    assert.equal(143, running.code, running.stderr)
  end)

  it("a task that waits for room ends with it", function()
    silence()
    local running = start [[
      local small = rocketmq.producer { group = "small", max_inflight = 1, flush_timeout = 60 }
      rocketmq.spawn(function()
        for i = 1, 2 do print(small:send_async(message, { timeout = 60000 })) end
      end)
      while small:stats().waiting == 0 do rocketmq.sleep(1) end
      print "full"
      rocketmq.sleep(60000)
    ]]
    assert(wait(function() return running.stdout:find "full" end, 10000))
    running:kill "sigterm"
    running:wait()
    assert.equal("true\nfull\n", running.stdout)
    assert.matches("producer 'small': 2 messages were not delivered", running.stderr)
    assert.equal(3, running.code)
  end)

  it("os.exit does not wait, says what is undelivered, and ends with 3", function()
    silence()
    local ended = run [[
      assert(producer:send_async(message))
      os.exit(0)
    ]]
    assert.equal(3, ended.code)
    assert.matches("os.exit with 1 message undelivered", ended.stderr)
  end)

  it("shutdown tells the script, and every callback; the end adds nothing", function()
    silence()
    local ended = run [[
      for i = 1, 4 do
        assert(producer:send_async(message, function(_, err) print(err.kind) end))
      end
      local ok, err = producer:shutdown(20)
      print(ok, err.kind, err.message:match "^%d+ sends")
      print(select(2, producer:shutdown()).kind, select(2, producer:send_async(message)).kind)
    ]]
    assert.equal(("state\n"):rep(4) .. "nil\ttimeout\t4 sends\ntimeout\tstate\n", ended.stdout)
    assert.equal(0, ended.code, ended.stderr)
    assert.equal("", ended.stderr)
  end)

  it("two producers of one group end each for itself", function()
    local ended = run(PATIENT .. [[
      local other = rocketmq.producer { group = "g" }
      assert(producer.client_id ~= other.client_id)
      for i = 1, 10 do
        assert(producer:send_async(message))
        assert(other:send_async(message))
      end
      assert(producer:shutdown())
      print(other:send(message).status)
      print(select(2, producer:send_async(message)).kind)
      for i = 1, 10 do assert(other:send_oneway(message)) end
    ]])
    assert.equal("SEND_OK\nstate\n", ended.stdout)
    assert.equal(0, ended.code, ended.stderr)
    assert.equal(31, mock:count())
    assert.equal(4, unregistered())
  end)

  it("a forked child neither sends nor tells what is the parent's", function()
    mock:rule { code = SEND, delay = 30 }
    local ended = run [[
      local ffi = require "ffi"
      ffi.cdef "int fork(void); int waitpid(int, int *, int);"
      for i = 1, 5 do
        assert(producer:send_async(message, function(result) print(result.status) end))
      end
      local pid = ffi.C.fork()
      if pid == 0 then
        for _, method in ipairs { "send", "send_async", "send_oneway" } do
          local ok, err = producer[method](producer, message)
          print(ok, err.kind)
        end
        return
      end
      ffi.C.waitpid(pid, nil, 0)
    ]]
    assert.equal(("nil\tstate\n"):rep(3) .. ("SEND_OK\n"):rep(5), ended.stdout)
    assert.equal("", ended.stderr)
    assert.equal(0, ended.code)
    assert.equal(5, mock:count())
  end)
end)
