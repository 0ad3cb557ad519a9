-- Loops over tables give all of a table, also after LuaJIT has compiled what is around them.
local child = require "spec.support.child"
local ffi = require "ffi"

describe("a loop over a table", function()
  -- In a process of its own, where nothing else is compiled: LuaJIT gives up the outer loop after some forty
  -- thousand rounds, when its inner loop has long been machine code.
  local function rounds_that_lose(head)
    local text = ([[
      local inner = { 1, 2, 3, 4, 5 }
      local outer = { a = inner, b = inner, c = inner, d = inner, e = inner }
      local function interpreted(...) for _ = 1, 100 do end end
      local lost = 0
      for _ = 1, 100000 do
        interpreted()
        local count = 0
        for _, value in HEAD(outer) do
          for _ in HEAD(value) do end
          count = count + 1
        end
        if count ~= 5 then lost = lost + 1 end
      end
      print(lost)
    ]]):gsub("HEAD", head)
    local ended = child.run { "-e", text }
    return ended.stdout .. ended.stderr
  end

  it("gives every element, however often it runs", function()
    assert.equal("0\n", rounds_that_lose "pairs")
  end)

  it("does so with next, too", function()
    assert.equal("0\n", rounds_that_lose "next, ")
  end)

  it("is never compiled, nor is what it calls", function()
    local ended = child.run { "-e", [[
      local util = require "jit.util"
      local t, count = { 1, 2, a = 3, b = 4 }, 0
      for _ = 1, 1000 do
        for _ in pairs(t) do count = count + 1 end
        for _ in next, t do count = count + 1 end
        if next(t) then count = count + 1 end
      end
      print(count, util.traceinfo(1) ~= nil)
      for _ = 1, 1000 do count = count + 1 end
      print(count, util.traceinfo(1) ~= nil)
    ]] }
    assert.equal("9000\tfalse\n10000\ttrue\n", ended.stdout .. ended.stderr)
  end)

  it("may change and take away what it is at", function()
    local t = { 1, 2, 3, a = 4, b = 5 }
    for key, value in pairs(t) do t[key] = value > 2 and value * 2 or nil end
    assert.same({ [3] = 6, a = 8, b = 10 }, t)
    for key in pairs(t) do t[key] = nil end
    assert.is_nil(next(t))
  end)
end)

describe("pairs and next", function()
  it("belong together, as Lua says", function()
    local t = { "x" }
    local iterator, state, control, more = pairs(t)
    assert.equal(next, iterator)
    assert.equal(t, state)
    assert.is_nil(control)
    assert.is_nil(more)
    assert.same({ 1, "x" }, { next(t) })
    assert.is_nil((next(t, 1)))
  end)

  it("tell who called what is wrong, by their names", function()
    local line = debug.getinfo(1, "l").currentline + 1
    for offset, call in ipairs {
      function() return (pairs(nil)) end,
      function() return (pairs()) end,
      function() return (next(5)) end,
    } do
      local _, why = pcall(call)
      assert.matches(("traversal_spec.lua:%d: bad argument #1 to '%%l+' %%(table expected, got")
        :format(line + offset), why)
    end
    assert.error_matches(function() pairs(nil) end, "to 'pairs'")
    assert.error_matches(function() return (next(nil)) end, "to 'next'")
    assert.error_matches(function() return (next({}, "no key of it")) end, "to 'next'")
  end)

  it("ask a cdata what there is in it", function()
    ffi.cdef "struct rmq_spec_pairs { int n; };"
    local new = ffi.metatype("struct rmq_spec_pairs", { __pairs = function(self)
      return function(_, at) if at < self.n then return at + 1 end end, self, 0
    end })
    local seen = {}
    for at in pairs(new(3)) do seen[#seen + 1] = at end
    assert.same({ 1, 2, 3 }, seen)
  end)
end)
