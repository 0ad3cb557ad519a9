local child = require "spec.support.child"
local cluster = require "spec.support.cluster"
local task = require "rocketmq.task"
local uv = require "luv"

describe("spawn", function()
  it("starts a function in the next turn, with its arguments", function()
    local got
    local one = task.spawn(function(...) got = { n = select("#", ...), ... } end, 1, nil, 3, nil)
    assert.is_nil(got)
    assert.equal("running", one:status())
    one:wait()
    assert.same({ n = 4, 1, nil, 3 }, got)
    assert.equal("done", one:status())
    assert.equal("task (done)", tostring(one))
  end)

  it("runs tasks in the order of their spawning", function()
    local order = {}
    local tasks = {}
    for i = 1, 5 do tasks[i] = task.spawn(function() order[#order + 1] = i end) end
    tasks[5]:wait()
    assert.same({ 1, 2, 3, 4, 5 }, order)
  end)

  it("refuses what is no function, naming the argument", function()
    local ok, err = pcall(task.spawn, 5)
    assert.is_false(ok)
    assert.matches("spawn: its first argument must be a function, not number", err)
  end)

  it("carries thousands of tasks that wait at once", function()
    local count, tasks = 0, {}
    for i = 1, 5000 do
      tasks[i] = task.spawn(function()
        task.sleep(i % 3)
        count = count + 1
      end)
    end
    for i = 1, 5000 do tasks[i]:wait() end
    assert.equal(5000, count)
  end)
end)

describe("wait", function()
  it("gives all results, to each who asks, also after the end", function()
    local one = task.spawn(function()
      task.sleep(2)
      return 1, nil, 3, nil
    end)
    local others = {}
    for i = 1, 3 do others[i] = task.spawn(function() return select("#", one:wait()) end) end
    for i = 1, 3 do assert.equal(4, (others[i]:wait())) end
    assert.same({ 1, nil, 3 }, { one:wait() })
  end)

  it("gives the error with its traceback when somebody waits", function()
    local failing = task.spawn(function()
      task.sleep(1)
      error "boom"
    end)
    local value, err, traceback = failing:wait()
    assert.is_nil(value)
    assert.matches("^[^\n]*task_spec.lua:%d+: boom\nstack traceback:.*task_spec.lua", err)
    assert.equal(err, traceback)
    assert.equal("failed", failing:status())
    assert.equal(err, (select(2, failing:wait())))
  end)

  it("gives an error that is a table as it is, with the traceback beside it", function()
    local object = { code = 7 }
    local value, err, traceback = task.spawn(function()
      task.sleep(1)
      error(object)
    end):wait()
    assert.is_nil(value)
    assert.equal(object, err)
    assert.matches("stack traceback", traceback)
  end)

  it("ends when its time is over, while the task goes on", function()
    local go
    local one = task.spawn(function()
      repeat task.sleep(1) until go
      return "went on"
    end)
    local value, err = one:wait(5)
    assert.is_nil(value)
    assert.matches("not ended within 5 ms", err)
    assert.equal("running", one:status())
    go = true
    assert.equal("went on", one:wait(60000))
  end)

  it("does not wake a task later whose wait is over", function()
    local go
    local slow = task.spawn(function() repeat task.sleep(1) until go end)
    slow:wait(1)
    local other = task.spawn(function()
      task.sleep(10)
      return "other"
    end)
    go = true
    assert.equal("other", other:wait())
    assert.equal("done", slow:status())
  end)

  it("refuses itself, a wrong call and a wrong time", function()
    local one
    one = task.spawn(function() return pcall(one.wait, one) end)
    local ok, err = one:wait()
    assert.is_false(ok)
    assert.matches("cannot wait for itself", err)
    assert.has_error(function() one.wait(5) end, "wait is called with a colon: task:wait()")
    local slow = task.spawn(function() task.sleep(5) end)
    for _, wrong in ipairs { -1, 0 / 0, "soon", 1 / 0 } do
      ok, err = pcall(slow.wait, slow, wrong)
      assert.is_false(ok)
      assert.matches("timeout must be a ", err)
    end
    slow:wait()
  end)
end)

describe("gather", function()
  it("runs side by side and gives the results in order", function()
    local turns = {}
    local results = task.gather {
      function()
        task.sleep(4)
        turns[#turns + 1] = "slow"
        return "a"
      end,
      function()
        turns[#turns + 1] = "quick"
        return nil
      end,
      function() return "c", "not this" end,
    }
    assert.same({ "a", nil, "c", n = 3 }, results)
    assert.same({ "quick", "slow" }, turns)
    assert.same({ n = 0 }, task.gather {})
  end)

  it("waits for all also when one fails, and tells every error", function()
    local ended
    local results, err, errors = task.gather {
      function()
        task.sleep(5)
        ended = true
        return 1
      end,
      function() error "second" end,
      function()
        task.sleep(1)
        error { "third" }
      end,
    }
    assert.is_nil(results)
    assert.is_true(ended)
    assert.matches("second\nstack traceback", err)
    assert.same({ [2] = err, [3] = { "third" } }, errors)
  end)

  it("refuses what is no list of functions before it starts any", function()
    local started
    local ok, err = pcall(task.gather, { function() started = true end, 5 })
    assert.is_false(ok)
    assert.matches("gather: item 2 must be a function, not number", err)
    task.sleep(1)
    assert.is_nil(started)
    assert.has_error(function() task.gather(print) end)
  end)
end)

describe("sleep", function()
  it("lasts at least its time", function()
    for _ = 1, 20 do
      local started = uv.hrtime()
      task.sleep(1.5)
      assert.is_true(uv.hrtime() - started >= 1.5e6)
    end
  end)

  it("lasts at least its time also when the loop's clock is behind", function()
    local lasted
    uv.fs_stat("/", function()
      local busy = uv.hrtime()
      repeat until uv.hrtime() - busy > 15e6
      local started = uv.hrtime()
      task.sleep(10)
      lasted = uv.hrtime() - started
    end)
    repeat task.sleep(0) until lasted
    assert.is_true(lasted >= 10e6, lasted)
  end)

  it("with 0 lets everybody else take a turn", function()
    local order = {}
    local function turns(name)
      return function()
        for i = 1, 3 do
          order[#order + 1] = name .. i
          task.sleep(0)
        end
      end
    end
    task.gather { turns "a", turns "b" }
    assert.same({ "a1", "b1", "a2", "b2", "a3", "b3" }, order)
  end)

  it("does not keep sockets and timers waiting when it is called again and again", function()
    local fired
    local timer = uv.new_timer()
    timer:start(1, 0, function() fired = true end)
    repeat task.sleep(0) until fired
    timer:close()
  end)

  it("refuses a time that is none", function()
    for _, wrong in ipairs { -1, 0 / 0, 1 / 0, "5" } do
      local ok, err = pcall(task.sleep, wrong)
      assert.is_false(ok)
      assert.matches("task_spec.lua:%d+: sleep: its argument must be", err)
    end
    assert.has_error(function() task.sleep() end)
  end)
end)

describe("a wait that a debug hook of the script's cuts off", function()
  it("does not end a later wait of the same task", function()
    local one = task.spawn(task.sleep, 20)
    local ok, err = pcall(function()
      -- The time of the wait is over, and the hook raises before the task has left the others that wait.
      debug.sethook(function()
        if debug.getinfo(2, "n").name == "forget_waiter" then
          debug.sethook()
          error("cut off", 0)
        end
      end, "c")
      one:wait(1)
    end)
    debug.sethook()
    assert.same({ false, "cut off" }, { ok, err })
    local other = task.spawn(function()
      task.sleep(40)
      return "its own"
    end)
    assert.equal("its own", other:wait())
  end)

  -- Waits inside a coroutine, and raises while that wait is passed on to the task.
  local function cut_off(wait_for)
    local armed
    local ok, err = pcall(function()
      local co = coroutine.wrap(function()
        armed = true
        wait_for()
      end)
      debug.sethook(function()
        if armed and debug.getinfo(2, "S").source == "@rocketmq/runtime/coroutine.lua" then
          debug.sethook()
          error("cut off", 0)
        end
      end, "l")
      co()
    end)
    debug.sethook()
    assert.same({ false, "cut off" }, { ok, err })
  end

  describe("for an answer", function()
    local c
    before_each(function()
      c = cluster.new { brokers = 1, topics = { First = 1, Second = 1 } }
      -- The routes are known, so that only the answers take time.
      assert(c.producer:send { topic = "First", body = "x" })
      assert(c.producer:send { topic = "Second", body = "x" })
      c.mock:rule { code = "SEND_MESSAGE_V2", topic = "First", delay = 30 }
      c.mock:rule { code = "SEND_MESSAGE_V2", topic = "Second", delay = 90 }
    end)
    after_each(function() c:finish() end)

    local function send(topic)
      return assert(c.producer:send({ topic = topic, body = "x" }, { timeout = 30000 }))
    end

    it("does not answer another one", function()
      cut_off(function() send "First" end)
      assert.equal("Second", send("Second").queue.topic)
      assert.equal("First", send("First").queue.topic)
    end)

    it("does not answer another one that comes first", function()
      cut_off(function() send "Second" end)
      for _ = 1, 5 do assert.equal("First", send("First").queue.topic) end
    end)

    it("does not cut a sleep or another task's end short", function()
      local started = uv.hrtime()
      cut_off(function() send "First" end)
      task.sleep(120)
      assert.is_true(uv.hrtime() - started >= 120e6)
      cut_off(function() send "First" end)
      assert.equal("its own", task.spawn(function()
        task.sleep(90)
        return "its own"
      end):wait())
    end)

    it("is nothing to the next task of the same coroutine", function()
      for _ = 1, 3 do
        task.spawn(function() cut_off(function() send "First" end) end):wait()
        assert.equal("Second", task.spawn(send, "Second"):wait().queue.topic)
      end
    end)

    it("does not keep the process", function()
      local ended = child.run { "--mock=topics={Orders=1}", "-e", [[
        local producer = require("rocketmq").producer { group = "g" }
        assert(producer:send { topic = "Orders", body = "x" })
        local co = coroutine.wrap(function()
          debug.sethook(function()
            if debug.getinfo(2, "S").source == "@rocketmq/runtime/coroutine.lua" then
              debug.sethook()
              error("cut off", 0)
            end
          end, "l")
          producer:send { topic = "Orders", body = "x" }
        end)
        print(pcall(co))
        require("rocketmq").sleep(1)
        print "end"]] }
      assert.same({ 0, "false\tcut off\nend\n" }, { ended.code, ended.stdout })
    end)
  end)

  it("for a time does not end another", function()
    cut_off(function() task.sleep(10) end)
    local c = cluster.new { brokers = 1, topics = { Orders = 1 } }
    c.mock:rule { code = "SEND_MESSAGE_V2", delay = 40 }
    assert(c.producer:send({ topic = "Orders", body = "x" }, { timeout = 30000 }))
    cut_off(function() task.sleep(10) end)
    assert.equal("its own", task.spawn(function()
      task.sleep(40)
      return "its own"
    end):wait())
    c:finish()
  end)

  it("is no wait when a script yields the runtime's token by itself", function()
    local native = require "rocketmq.native.task"
    local co
    local one = task.spawn(function()
      co = coroutine.running()
      return coroutine.yield(native.token)
    end)
    task.sleep(0)
    task.sleep(0)
    assert.equal("suspended", coroutine.status(co))
    assert.is_true(coroutine.resume(co, "by hand"))
    assert.equal("by hand", one:wait())
  end)
end)

describe("a module kept by nobody", function()
  it("shares its tasks with one loaded again", function()
    package.loaded["rocketmq.task"] = nil
    local again = require "rocketmq.task"
    assert.not_equal(task, again)
    local one = task.spawn(function()
      again.sleep(1)
      return "both"
    end)
    assert.equal("both", again.spawn(function() return one:wait() end):wait())
  end)
end)
