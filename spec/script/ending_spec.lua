--- How a process ends: when, with which status, and what it says.
local child = require "spec.support.child"

local function run(text) return child.run { "-e", text } end

local IN_FLIGHT = [[
  local rocketmq = require "rocketmq"
  local mock = rocketmq.mock { topics = { Orders = 1 } }
  mock:rule { code = "SEND_MESSAGE_V2", %s }
  local producer = rocketmq.producer { group = "g", namesrv = mock.namesrv,
    timeout = 60000, flush_timeout = %d }
  rocketmq.spawn(function()
    producer:send { topic = "Orders", body = "x" }
    print "sent"
  end)
  mock:wait(function() return #mock:requests { code = "SEND_MESSAGE_V2" } == 1 end)
  io.stdout:write "ready\n" io.stdout:flush()
]]

describe("a process", function()
  it("ends when nothing is left to do, and not before", function()
    local ended = run [[
      local task = require "rocketmq.task"
      task.spawn(function() task.sleep(20) print "task" end)
      require("luv").new_timer():start(10, 0, function() print "timer" end)
      print "main"
    ]]
    assert.same({ 0, "main\ntimer\ntask\n", "" }, { ended.code, ended.stdout, ended.stderr })
  end)

  it("lists the tasks that nobody can wake, with where they wait", function()
    local ended, path = child.run_text [[
      local task = require "rocketmq.task"
      local a, b
      a = task.spawn(function() coroutine.wrap(function()
        b:wait()
      end)() end)
      b = task.spawn(function() a:wait() end)
      coroutine.yield()
    ]]
    assert.equal(1, ended.code)
    assert.matches("3 tasks still wait", ended.stderr)
    assert.matches("the main chunk%), in coroutine.yield:", ended.stderr)
    for _, line in ipairs { 4, 6, 7 } do
      assert.is_truthy(ended.stderr:find(("%s:%d:"):format(path, line), 1, true), ended.stderr)
    end
  end)

  it("flushes what was printed, whichever way it ends", function()
    assert.equal("text", run("io.write 'text'").stdout)
    assert.equal("text", run("io.write 'text' os.exit(4)").stdout)
    assert.equal("text", run("io.write 'text' error 'x'").stdout)
  end)

  it("runs finalizers at its end, which cannot wait", function()
    local text = [[
      local object = newproxy(true)
      getmetatable(object).__gc = function()
        print(select(2, pcall(require("rocketmq.task").sleep, 1)))
      end ]]
    for _, ending in ipairs { "", "os.exit(0, true)" } do
      local ended = run(text .. ending)
      assert.equal(0, ended.code)
      assert.matches("no task is running", ended.stdout)
    end
  end)

  it("does not wait for a broken pipe's signal", function()
    local ended = run [[
      local uv = require "luv"
      local server = uv.new_tcp()
      server:bind("127.0.0.1", 0)
      server:listen(1, function()
        local peer = uv.new_tcp()
        server:accept(peer)
        peer:close()
        server:close()
      end)
      local socket = uv.new_tcp()
      socket:connect("127.0.0.1", server:getsockname().port, function()
        local function again()
          socket:write("x", function(err)
            if not err then return again() end
            print "survived"
            socket:close()
          end)
        end
        again()
      end)
    ]]
    assert.same({ 0, "survived\n" }, { ended.code, ended.stdout })
  end)
end)

describe("an on_error handler", function()
  it("that fails ends the process with its own error", function()
    local ended = run [[
      local task = require "rocketmq.task"
      task.on_error(function(err) error("again: " .. err, 0) end)
      task.spawn(error, "boom")
      task.sleep(60000)
    ]]
    assert.equal(1, ended.code)
    assert.matches("rmqlua: again: boom\nstack traceback:", ended.stderr)
  end)

  it("that fails after it has waited ends the process too", function()
    local ended = run [[
      local task = require "rocketmq.task"
      task.on_error(function(err)
        task.sleep(1)
        error("again: " .. err, 0)
      end)
      task.spawn(error, "boom")
      task.sleep(60000)
    ]]
    assert.equal(1, ended.code)
    assert.matches("rmqlua: again: boom\nstack traceback:", ended.stderr)
  end)

  it("gets the traceback, and may take itself away", function()
    local ended = run [[
      local task = require "rocketmq.task"
      task.on_error(function(err, traceback)
        print(err, (traceback:gsub("\n.*", "")))
        task.on_error(nil)
      end)
      task.spawn(error, "first")
      task.sleep(1)
      task.spawn(error, "second")
      task.sleep(60000)
    ]]
    assert.same({ 1, "first\tfirst\n" }, { ended.code, ended.stdout })
    assert.matches("^rmqlua: second\nstack traceback:", ended.stderr)
  end)
end)

describe("os.exit", function()
  it("takes a number, a boolean, or nothing", function()
    assert.equal(0, run("os.exit()").code)
    assert.equal(7, run("os.exit(7)").code)
    assert.equal(0, run("os.exit(true)").code)
    assert.equal(1, run("os.exit(false)").code)
    assert.equal(9, run("os.exit(9, true)").code)
  end)

  it("ends at once from a callback, a coroutine and below pcall", function()
    local ended = run [[
      require("luv").new_timer():start(1, 0, function()
        pcall(coroutine.wrap(function() os.exit(5) end))
        print "never"
      end)]]
    assert.same({ 5, "" }, { ended.code, ended.stdout })
  end)

  it("says what is undelivered, and turns 0 into 3", function()
    local under_way = IN_FLIGHT:format("silent = true", 1000)
    local ended = run(under_way .. "os.exit(0)")
    assert.equal(3, ended.code)
    assert.matches("os.exit with 1 message undelivered", ended.stderr)
    assert.equal(6, run(under_way .. "os.exit(6)").code)
  end)
end)

describe("a signal", function()
  --- Starts a script that prints "ready", and then gets the signal.
  local function signalled(text, name)
    local process = child.start { "-e", text }
    local task = require "rocketmq.task"
    repeat task.sleep(1) until process.stdout:find "ready" or process.code
    process:kill(name)
    return process:wait()
  end

  local READY = [[io.stdout:write "ready\n" io.stdout:flush() ]]

  it("ends a script that waits, with the status that shells expect", function()
    local text = READY .. [[require("rocketmq.task").sleep(60000) print "never"]]
    assert.same({ 130, "ready\n", "" }, (function(ended)
      return { ended.code, ended.stdout, ended.stderr }
    end)(signalled(text, "sigint")))
    assert.equal(143, signalled(text, "sigterm").code)
  end)

  it("leaves what is in flight the time to be delivered, while the script stands still", function()
    local ended = signalled(IN_FLIGHT:format("delay = 150", 5000), "sigterm")
    assert.equal(143, ended.code)
    assert.equal("ready\n", ended.stdout)
    assert.equal("", ended.stderr)
  end)

  it("ends with 3 when something could not be delivered, and says what", function()
    local ended = signalled(IN_FLIGHT:format("silent = true", 100), "sigint")
    assert.equal(3, ended.code)
    assert.matches("'g': 1 message was not delivered", ended.stderr)
  end)

  it("stops tasks that send for ever", function()
    local ended = signalled([[
      local rocketmq = require "rocketmq"
      local mock = rocketmq.mock { topics = { Orders = 1 }, keep = 0 }
      local producer = rocketmq.producer { group = "g", namesrv = mock.namesrv }
      for _ = 1, 4 do
        rocketmq.spawn(function()
          while true do producer:send { topic = "Orders", body = "x" } end
        end)
      end
      rocketmq.sleep(50)]] .. READY, "sigterm")
    assert.equal(143, ended.code)
    assert.equal("", ended.stderr)
  end)

  it("given twice ends it at once", function()
    local process = child.start { "-e", IN_FLIGHT:format("silent = true", 60000) }
    local sleep = require("rocketmq.task").sleep
    repeat sleep(1) until process.stdout:find "ready" or process.code
    -- Two that come while the process does not run are one to it.
    repeat
      process:kill "sigint"
      sleep(20)
    until process.code
    local ended = process:wait()
    assert.equal(3, ended.code)
    assert.matches("a second signal.*messages undelivered: 1", ended.stderr)
  end)

  it("interrupts Lua that runs for ever, showing where", function()
    local ended = signalled(READY .. "jit.off() while true do end", "sigint")
    assert.equal(130, ended.code)
    assert.matches("interrupted by SIGINT\nstack traceback:\n%s+%(command line%):1:",
      ended.stderr)
  end)

  it("interrupts a loop that swallows every error, also in a coroutine and a task", function()
    local loop = [[
      jit.off()
      local function work() pcall(string.rep, "x", 10) coroutine.yield() end
      while true do pcall(coroutine.wrap(work)) end]]
    for _, around in ipairs { "%s", "coroutine.wrap(function() %s end)()",
      "require('rocketmq.task').spawn(function() %s end):wait()" } do
      assert.equal(143, signalled(READY .. around:format(loop), "sigterm").code, around)
    end
  end)

  it("ends a compiled loop, which nothing can interrupt, and says what is lost", function()
    local ended = signalled(IN_FLIGHT:format("silent = true", 60000) .. [[
      local function add(n) return n + 1 end
      local n = 0
      while true do n = add(n) end]], "sigint")
    assert.equal(3, ended.code)
    assert.matches("does not stop.*ending without flushing; messages undelivered: 1", ended.stderr)
  end)

  it("is the script's own when it watches for it", function()
    local ended = signalled([[
      local uv = require "luv"
      local watcher = uv.new_signal()
      watcher:start("sigterm", function()
        print "cleaning up"
        watcher:close()
      end)]] .. READY, "sigterm")
    assert.same({ 0, "ready\ncleaning up\n" }, { ended.code, ended.stdout })
  end)
end)

describe("a fork through the FFI", function()
  it("leaves the child a loop of its own and no producer, and the parent undisturbed", function()
    local ended = run([[
      local ffi = require "ffi"
      ffi.cdef "int fork(void); int waitpid(int, int *, int);"
    ]] .. IN_FLIGHT:format("delay = 1", 5000) .. [[
      local uv = require "luv"
      local server, accepted = uv.new_tcp(), false
      server:bind("127.0.0.1", 0)
      server:listen(1, function() accepted = true end)
      local port = server:getsockname().port
      rocketmq.sleep(1) -- from here on the loop waits for it
      local pid = ffi.C.fork()
      if pid == 0 then
        server:close() -- must not take it out of what the parent waits with
        rocketmq.sleep(5)
      else
        local status = ffi.new "int[1]"
        ffi.C.waitpid(pid, status, 0)
        print("child ended", status[0])
        uv.new_tcp():connect("127.0.0.1", port, function() end)
        repeat rocketmq.sleep(1) until accepted
      end
      local result, err = producer:send { topic = "Orders", body = "y" }
      if pid == 0 then
        print("child", result, err.kind)
        os.exit(0)
      end
      print("parent", result.status, result.attempts)
      os.exit(0)
    ]])
    assert.matches("child\tnil\tstate\n", ended.stdout)
    assert.matches("child ended\t0\n", ended.stdout)
    assert.matches("parent\tSEND_OK\t1\n", ended.stdout)
    assert.equal(0, ended.code)
  end)
end)
