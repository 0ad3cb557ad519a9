--- Waiting for the runtime inside the script's own coroutines, which must not notice it.
local task = require "rocketmq.task"
local uv = require "luv"

--- Something that waits for the loop and gives a value back, as a send does.
local function wait_for(value)
  task.sleep(1)
  return value
end

--- Calls a function later from a luv callback.
local function soon(fn)
  local timer = uv.new_timer()
  timer:start(1, 0, function()
    timer:close()
    fn()
  end)
end

describe("waiting inside a coroutine", function()
  it("does not end the resume, at any depth", function()
    local log = {}
    local function note(value) log[#log + 1] = value end
    local inner = function(a)
      note(wait_for(a))
      note(coroutine.yield "inner yields")
      note(wait_for "inner")
      return "inner ends"
    end
    local outer = coroutine.create(function(...)
      local co = coroutine.create(inner)
      note(select(2, coroutine.resume(co, ...)))
      wait_for()
      note(coroutine.yield "outer yields")
      return select(2, coroutine.resume(co, "to inner"))
    end)
    assert.same({ true, "outer yields" }, { coroutine.resume(outer, "first") })
    assert.same({ true, "inner ends" }, { coroutine.resume(outer, "to outer") })
    assert.same({ "first", "inner yields", "to outer", "to inner", "inner" }, log)
    assert.equal("dead", coroutine.status(outer))
  end)

  it("works in an iterator, a metamethod and below pcall and xpcall", function()
    local seen = {}
    for value in coroutine.wrap(function()
      for i = 1, 3 do coroutine.yield(wait_for(i)) end
    end) do
      seen[#seen + 1] = value
    end
    assert.same({ 1, 2, 3 }, seen)

    local object = setmetatable({}, {
      __index = function(_, key) return wait_for(key) end,
      __add = function(_, other) return wait_for(other) end,
      __call = function(_, ...) return wait_for(...) end,
    })
    for value in function(_, last) return last == nil and wait_for(7) or nil end do
      assert.equal(7, value)
    end
    local wrapped = coroutine.wrap(function()
      return object.name, object + 5, object(6), pcall(wait_for, 8)
    end)
    assert.same({ "name", 5, 6, true, 8 }, { wrapped() })

    local ok, err = pcall(coroutine.wrap(function()
      local good, text = xpcall(function() error(wait_for { "table" }) end, function(err)
        return err[1]
      end)
      wait_for()
      error({ good, text })
    end))
    assert.same({ false, { false, "table" } }, { ok, err })
  end)

  it("leaves other tasks running meanwhile", function()
    local order = {}
    local other = task.spawn(function() order[#order + 1] = "other" end)
    coroutine.wrap(function()
      wait_for()
      order[#order + 1] = "mine"
    end)()
    other:wait()
    assert.same({ "other", "mine" }, order)
  end)

  it("moves with a coroutine that another task resumes", function()
    local co = coroutine.create(function()
      local got = coroutine.yield()
      return wait_for(got)
    end)
    coroutine.resume(co)
    local other = task.spawn(function() return coroutine.resume(co, "handed over") end)
    assert.same({ true, "handed over" }, { other:wait() })
  end)

  it("is refused where a C function lies between, also further out", function()
    local calls = 0
    local function attempt()
      local started = uv.hrtime()
      local ok, err = pcall(task.sleep, 60000)
      calls = calls + 1
      assert.is_false(ok)
      assert.matches("sleep cannot wait here", err)
      assert.is_true(uv.hrtime() - started < 30e9)
    end
    table.sort({ 1, 2 }, function(a, b) attempt() return a < b end)
    string.gsub("x", "x", attempt)
    string.gsub("x", "x", function() coroutine.wrap(attempt)() end)
    string.gsub("x", "x", function()
      local co = coroutine.create(function()
        coroutine.wrap(attempt)()
        coroutine.yield()
        attempt()
      end)
      assert(coroutine.resume(co))
      assert(coroutine.resume(co))
    end)
    assert.is_true(calls >= 5)
    -- What was begun where it cannot wait may wait when it is resumed from where it can.
    local co = coroutine.create(function()
      attempt()
      coroutine.yield()
      return wait_for "waited"
    end)
    string.gsub("x", "x", function() assert(coroutine.resume(co)) end)
    assert.same({ true, "waited" }, { coroutine.resume(co) })
  end)

  it("names the script's line in the refusal", function()
    local line
    local _, err = pcall(string.gsub, "x", "x", function()
      line = debug.getinfo(1, "l").currentline + 1
      task.sleep(1)
    end)
    local place = ("coroutine_spec.lua:%d: sleep cannot wait"):format(line)
    assert.is_truthy(err:find(place, 1, true), err)
  end)
end)

describe("a coroutine that waits for the runtime", function()
  local co, other

  before_each(function()
    co = coroutine.create(function() return wait_for "waited" end)
    other = task.spawn(function() return coroutine.resume(co) end)
    task.sleep(0)
  end)

  it("cannot be resumed by the script, and goes on by itself", function()
    local ok, err = coroutine.resume(co, "wrong value")
    assert.is_false(ok)
    assert.matches("waits for the runtime", err)
    assert.same({ true, "waited" }, { other:wait() })
    assert.same({ false, "cannot resume dead coroutine" }, { coroutine.resume(co) })
  end)

  it("has status normal meanwhile", function()
    assert.equal("normal", coroutine.status(co))
    other:wait()
    assert.equal("dead", coroutine.status(co))
  end)

  it("refuses its wrap function too", function()
    local wrapped = coroutine.wrap(function() return wait_for "wrapped" end)
    local first = task.spawn(wrapped)
    task.sleep(0)
    local ok, err = pcall(wrapped)
    assert.is_false(ok)
    assert.matches("waits for the runtime", err)
    assert.equal("wrapped", first:wait())
    other:wait()
  end)
end)

describe("the coroutine library", function()
  it("passes ordinary values exactly, their number included", function()
    local co = coroutine.create(function(...)
      local n = select("#", ...)
      local back = select("#", coroutine.yield(nil, n, nil))
      return back, nil
    end)
    local function pack(...) return { n = select("#", ...), ... } end
    assert.same({ n = 4, true, nil, 3 }, pack(coroutine.resume(co, nil, nil, nil)))
    assert.same({ n = 3, true, 2 }, pack(coroutine.resume(co, nil, nil)))
    assert.same({ n = 1, true }, pack(coroutine.resume(coroutine.create(function() end))))
    assert.same({ n = 0 }, pack(coroutine.wrap(function() end)()))
  end)

  it("raises the errors of wrapped coroutines as LuaJIT does", function()
    local boom = coroutine.wrap(function() error "boom" end)
    local ok, err = pcall(function() boom() end)
    assert.is_false(ok)
    assert.matches("^[^\n]*coroutine_spec.lua:%d+: [^\n]*coroutine_spec.lua:%d+: boom$", err)
    local object = {}
    assert.same({ false, object }, { pcall(coroutine.wrap(function() error(object) end)) })
    assert.has_error(function() coroutine.resume "no coroutine" end)
    assert.has_error(function() coroutine.wrap "no function" end)
  end)

  it("knows statuses", function()
    local outer = coroutine.running()
    local co
    co = coroutine.create(function()
      assert.equal("running", coroutine.status(co))
      assert.equal("normal", coroutine.status(outer))
      assert.equal(co, coroutine.running())
      assert.is_true(coroutine.isyieldable())
    end)
    assert.equal("suspended", coroutine.status(co))
    assert(coroutine.resume(co))
    assert.equal("dead", coroutine.status(co))
    string.gsub("x", "x", function() assert.is_false(coroutine.isyieldable()) end)
  end)

  it("lets a callback resume a coroutine that has yielded, which may wait then", function()
    local result
    local first = coroutine.wrap(function()
      local me = coroutine.running()
      soon(function() assert(coroutine.resume(me, "called back")) end)
      local got = coroutine.yield "yielded"
      result = { got, wait_for "and waited" }
    end)()
    assert.equal("yielded", first)
    repeat task.sleep(1) until result
    assert.same({ "called back", "and waited" }, result)
  end)

  it("lets a callback resume a task that has yielded", function()
    local result = task.spawn(function()
      local me = coroutine.running()
      soon(function()
        assert.equal("suspended", coroutine.status(me))
        assert.same({ true }, { coroutine.resume(me, "called", "back") })
        assert.same({ false, "cannot resume dead coroutine" }, { coroutine.resume(me) })
      end)
      return coroutine.yield()
    end)
    assert.same({ "called", "back" }, { result:wait() })
  end)

  it("refuses to resume a task that waits or runs", function()
    local waiting
    local other = task.spawn(function()
      waiting = coroutine.running()
      return wait_for "undisturbed"
    end)
    task.sleep(0)
    assert.equal("normal", coroutine.status(waiting))
    local ok, err = coroutine.resume(waiting, "wrong value")
    assert.is_false(ok)
    assert.matches("waits for the runtime", err)
    assert.equal("undisturbed", other:wait())
    ok, err = coroutine.resume(coroutine.running())
    assert.is_false(ok)
    assert.matches("non%-suspended", err)
  end)
end)
