--- luv's functions on the loop that the runtime runs.
local task = require "rocketmq.task"
local uv = require "luv"
local child = require "spec.support.child"

describe("a luv callback", function()
  it("is a task: it may wait, and others run meanwhile", function()
    local order = {}
    local done
    local timer = uv.new_timer()
    timer:start(1, 0, function()
      order[#order + 1] = "callback"
      task.sleep(3)
      order[#order + 1] = "callback goes on"
      done = true
    end)
    local other = uv.new_timer()
    other:start(2, 0, function() order[#order + 1] = "another" end)
    repeat task.sleep(1) until done
    assert.same({ "callback", "another", "callback goes on" }, order)
    timer:close()
    other:close()
  end)

  it("gets its arguments, on coroutines that are used again", function()
    local seen = {}
    for i = 1, 100 do
      uv.fs_stat(i % 2 == 0 and "/" or "/does/not/exist", function(err, stat)
        seen[#seen + 1] = err and "error" or stat.type
      end)
    end
    repeat task.sleep(1) until #seen == 100
    table.sort(seen)
    assert.same({ "directory", "error" }, { seen[1], seen[100] })
    assert.equal("error", seen[51])
  end)
end)

describe("uv.run", function()
  it("waits until nothing else is pending, and gives false", function()
    local ended = child.run { "-e", [[
      local uv = require "luv"
      local timer = uv.new_timer()
      timer:start(5, 0, function()
        timer:close()
        uv.fs_stat("/", function() print "stat" end)
      end)
      print(uv.run())
      print(uv.run "default", uv.run "nowait", uv.run "once", uv.loop_alive())
    ]] }
    assert.same({ 0, "stat\nfalse\nfalse\tfalse\tfalse\tfalse\n", "" },
      { ended.code, ended.stdout, ended.stderr })
  end)

  it("once waits for something to happen, nowait for one turn", function()
    local fired
    local timer = uv.new_timer()
    timer:start(10, 0, function() fired = true end)
    assert.is_true(uv.run "nowait")
    assert.is_nil(fired)
    repeat local alive = uv.run "once" until fired or not alive
    assert.is_true(fired)
    timer:close()
  end)

  it("ends with uv.stop, while the process goes on", function()
    local timer, long = uv.new_timer(), uv.new_timer()
    timer:start(1, 0, function() uv.stop() end)
    long:start(60000, 0, function() end)
    assert.is_true(uv.run())
    timer:close()
    long:close()
    uv.stop()
    task.sleep(1)
  end)

  it("is refused where it cannot wait, and for an unknown mode", function()
    local ok, err = pcall(string.gsub, "x", "x", function() uv.run() end)
    assert.is_false(ok)
    assert.matches("luv_spec.lua:%d+: uv.run cannot wait here", err)
    ok, err = pcall(uv.run, "twice")
    assert.is_false(ok)
    assert.matches("default, once or nowait, not twice", err)
  end)
end)

describe("the loop", function()
  it("cannot be closed by a script", function()
    assert.same({ nil, "EBUSY" }, { uv.loop_close(), (select(3, uv.loop_close())) })
  end)

  it("is walked without the runtime's own handles", function()
    local ended = child.run { "-e", [[
      local uv = require "luv"
      uv.new_timer():start(60000, 0, print)
      uv.new_tcp()
      local names = {}
      uv.walk(function(handle)
        names[#names + 1] = uv.handle_get_type(handle)
        handle:close()
      end)
      table.sort(names)
      print(table.concat(names, " "))
    ]] }
    assert.same({ 0, "tcp timer\n", "" }, { ended.code, ended.stdout, ended.stderr })
  end)

  it("has one luv, also after package.loaded was cleared", function()
    package.loaded.luv = nil
    assert.equal(uv, require "luv")
  end)
end)
