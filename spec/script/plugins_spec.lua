-- Selectors and hooks from files: what is loaded, under which name, and what is said when not.
local child = require "spec.support.child"
local folder = require "spec.support.folder"
local rocketmq = require "rocketmq"
local plugins = require "rocketmq.plugins"

local SELECTOR = "return function() return 1 end"
local HOOK = "return { before = function() end, after = function() end }"

describe("plugins", function()
  it("are loaded before anything else, in the order of the command line", function()
    local ended = child.run { "--hook", "two.lua", "-e", "print 'chunk'", "--selector=one.lua",
      "s.lua", "x", cwd = folder {
        ["one.lua"] = "print 'one' " .. SELECTOR,
        ["two.lua"] = "print 'two' " .. HOOK,
        ["s.lua"] = "print('script', ...)",
      } }
    assert.same({ 0, "two\none\nchunk\nscript\tx\n", "" },
      { ended.code, ended.stdout, ended.stderr })
  end)

  it("are called by their name, else by that of the file", function()
    local where = folder {
      ["by.region.lua"] = SELECTOR,
      ["b.lua"] = "return { name = 'by_weight', select = function() return 2 end }",
      ["c.lua"] = "return { name = 'audit', after = function() end }",
      ["d.lua"] = HOOK,
      ["s.lua"] = [[
        for _, plugin in ipairs(require("rocketmq.plugins").list()) do
          print(plugin.is, plugin.name, plugin.path, type(plugin.value))
        end
        print(require("rocketmq.plugins").list()[2].value())]],
    }
    local ended = child.run { "--selector", "by.region.lua", "--selector", "b.lua",
      "--hook", "c.lua", "--hook", "./d.lua", "s.lua", cwd = where }
    assert.equal("selector\tby.region\tby.region.lua\tfunction\n"
      .. "selector\tby_weight\tb.lua\tfunction\nhook\taudit\tc.lua\ttable\n"
      .. "hook\td\t./d.lua\ttable\n2\n", ended.stdout .. ended.stderr)
  end)

  it("come from a folder by the names of their files, and each says what it is", function()
    local where = folder {
      ["p/b.lua"] = "return { select = function() end }",
      ["p/a.lua"] = HOOK,
      ["p/.hidden.lua"] = "error 'hidden'",
      ["p/a.lua~"] = "error 'backup'",
      ["p/deeper/c.lua"] = "error 'deeper'",
    }
    for _, path in ipairs { "p", "p/" } do
      local ended = child.run { "--plugins", path, "--check", cwd = where }
      assert.equal("hook      a                 p/a.lua: after, before\n"
        .. "selector  b                 p/b.lua\n", ended.stdout .. ended.stderr)
      assert.equal(0, ended.code)
    end
  end)

  it("that are wrong end the start with the file and what is wrong", function()
    -- What the file is, what it says, the status, what is said.
    for _, wrong in ipairs {
      { "selector", "x = = 1", 1, "p%.lua:1: unexpected symbol near '='" },
      { "selector", "local a = 1\nerror 'boom'", 1, "p%.lua:2: boom\nstack traceback:" },
      { "hook", "error { }", 1, "p/p%.lua: %(error object is a table value%)" },
      { "hook", "error('boom', 0)", 1, "p/p%.lua: boom\nstack traceback:" },
      { "selector", "", 1,
        "p%.lua:1: the file must return a function or a table, not nothing" },
      { "hook", "return 'x'", 1, "p%.lua:1: the file must return a table, not a string" },
      { "plugins", "return 'x'", 1, "p%.lua:1: the file must return a table, not a string" },
      { "hook", SELECTOR, 1, "p%.lua:1: the hook must be a table of .*, not a function" },
      -- The line is that of the last return, where that ends.
      { "hook", "local x = 1\nif x == 2 then return print end\nreturn x\n\n", 1,
        "p%.lua:3: the file must return" },
      { "hook", "local function f()\n  return 1\nend\nf()\n", 1,
        "p%.lua:%d+: the file must return a table, not nothing" },
      { "hook", "local hook = {}\n\nhook.before = 1\n\nreturn hook\n", 1,
        "p%.lua:5: the hook: before must be a function, not number" },
      { "selector", "return {\n  select = function() end,\n  selct = 1,\n}\n", 1,
        "p%.lua:4: the table of the selector: unknown name 'selct', did you mean 'select'%?" },
      { "hook", "return {}", 1, "p%.lua:1: the hook .*check_forbidden, before, after," },
      { "hook", "return { befor = print }", 1,
        "p%.lua:1: the hook: unknown name 'befor', did you mean 'before'%?" },
      { "hook", "return { before = 1 }", 1,
        "p%.lua:1: the hook: before must be a function, not number" },
      { "hook", "return { before = print, strict = 1 }", 1,
        "p%.lua:1: the hook: strict must be a boolean" },
      { "selector", HOOK, 1,
        "p%.lua:1: the table has '[a-z]+', so it is a hook: load it with %-%-hook" },
      { "hook", "return { select = print, name = 'x' }", 1,
        "p%.lua:1: the table has 'select', so it is a selector: load it with %-%-selector" },
      { "selector", "return { befor = print }", 1,
        "p%.lua:1: the table of the selector: unknown name 'befor'" },
      { "selector", "return {}", 1,
        "p%.lua:1: the table of the selector must have the function select" },
      { "selector", "return { select = {} }", 1,
        "p%.lua:1: select of the selector must be a function, not table" },
      { "selector", "return { name = 1, select = print }", 1,
        "p%.lua:1: name of the selector must be a string" },
      { "selector", "return { name = '', select = print }", 1,
        "p%.lua:1: the name of the selector is empty" },
      { "plugins", SELECTOR, 1, "p%.lua:1: a file of %-%-plugins must say what it is" },
      { "plugins", "return { name = 'x' }", 1, "p%.lua:1: the hook " },
      { "selector", "return setmetatable({}, { __index = function() return 5 end })", 1,
        "p%.lua:1: the table of the selector must have the function select" },
      { "hook", "return setmetatable({}, { __index = function() return 5 end })", 1,
        "p%.lua:1: the hook has no function" },
      { "plugins", "return setmetatable({}, { __index = function() return 5 end })", 1,
        "p%.lua:1: the hook has no function" },
      { "selector", "coroutine.yield()", 1,
        "p%.lua:1: attempt to yield across C%-call boundary: the file of a plugin has to" },
      { "selector", "require('rocketmq').sleep(1)", 1, "p%.lua:1: sleep cannot wait here" },
      { "selector", "local function f() return f() + 1 end f()", 1, "stack overflow" },
      { "selector", "require('rocketmq').load_hook 'p/p.lua' error 'unreached'", 1, "unreached" },
    } do
      local kind, text, status, said = unpack(wrong)
      local where = folder { ["p/p.lua"] = text, ["s.lua"] = "print 'never'" }
      local path = kind == "plugins" and "p" or "p/p.lua"
      for _, more in ipairs { "s.lua", "--check" } do
        local ended = child.run { "--" .. kind, path, more, cwd = where }
        assert.same({ status, "" }, { ended.code, ended.stdout }, text)
        assert.matches("^rmqlua: .*" .. said, ended.stderr)
      end
    end
  end)

  it("that are not there end the start as a missing script does", function()
    local where = folder { ["s.lua"] = "print 'never'" }
    for given, said in pairs { selector = "cannot read the selector 'none%.lua': No such file",
      hook = "cannot read the hook 'none%.lua': No such file",
      plugins = "cannot read the folder of %-%-plugins: .*none%.lua" } do
      local ended = child.run { "--" .. given, "none.lua", "s.lua", cwd = where }
      assert.same({ 2, "" }, { ended.code, ended.stdout })
      assert.matches("^rmqlua: " .. said, ended.stderr)
    end
  end)

  it("of the same name are refused, naming both files", function()
    local where = folder { ["a.lua"] = SELECTOR, ["p/a.lua"] = SELECTOR,
      ["h.lua"] = "return { name = 'a', before = print }" }
    local ended = child.run { "--selector", "a.lua", "--selector", "p/a.lua", "--check",
      cwd = where }
    assert.equal(1, ended.code)
    assert.matches("two selectors are called 'a': a%.lua and p/a%.lua", ended.stderr)
    ended = child.run { "--selector", "a.lua", "--hook", "a.lua", "--check", cwd = where }
    assert.matches("a%.lua:1: .*not a function", ended.stderr)
    ended = child.run { "--hook", "h.lua", "--selector", "h.lua", "--check", cwd = where }
    assert.matches("the table has '%a+', so it is a hook", ended.stderr)
    local ready_made = folder { ["hash.lua"] = SELECTOR,
      ["s.lua"] = "return { name = 'weighted', select = function() return 1 end }" }
    for file, name in pairs { ["hash.lua"] = "hash", ["s.lua"] = "weighted" } do
      ended = child.run { "--selector", file, "--check", cwd = ready_made }
      assert.equal(1, ended.code)
      assert.matches(file .. ":1: there is a ready%-made selector '" .. name .. "'", ended.stderr)
    end
    -- A selector and a hook may share one.
    assert.equal(0, child.run({ "--selector", "a.lua", "--hook", "h.lua", "--check",
      cwd = where }).code)
  end)
end)

describe("--check", function()
  it("lists what is found and runs nothing", function()
    local where = folder { ["a.lua"] = SELECTOR, ["h.lua"] = HOOK, ["s.lua"] = "error 'runs'",
      ["m.lua"] = "error 'runs'" }
    local ended = child.run { "--check", "--mock", "-l", "m", "-e", "error 'runs'", "--hook",
      "h.lua", "--selector", "a.lua", "s.lua", "x", cwd = where }
    assert.same({ 0, "", "hook      h                 h.lua: after, before\n"
      .. "selector  a                 a.lua\nscript    s.lua\n" },
      { ended.code, ended.stderr, ended.stdout })
  end)

  it("ends as the start would have, when plugins make producers for --mock", function()
    local where = folder { ["h.lua"] = "require('rocketmq').producer { group = 'g' } " .. HOOK,
      ["s.lua"] = "" }
    assert.same({ 0, "hook      h                 h.lua: after, before\nscript    s.lua\n", "" },
      (function(ended) return { ended.code, ended.stdout, ended.stderr } end)(
        child.run { "--mock", "--check", "--hook", "h.lua", "s.lua", cwd = where }))
    local ended = child.run { "--mock=brokrs=2", "--check", "s.lua", cwd = where }
    assert.equal(2, ended.code)
    assert.matches("%-%-mock: .*unknown name 'brokrs'", ended.stderr)
  end)

  it("looks at every message that a plugin's file sends while it is loaded", function()
    local where = folder { ["h.lua"] = [[
      local producer = require("rocketmq").producer { group = "g", namesrv = "127.0.0.1:1" }
      local message = { topic = "Orders", body = "x" }
      for i = 1, 300 do
        if i == 300 then message.tag = "a typing error" end
        producer:send_async(message, function() end)
      end
      ]] .. HOOK, ["s.lua"] = "os.exit(0)" }
    local ended = child.run { "--hook", "h.lua", "--check", cwd = where }
    assert.equal(1, ended.code)
    assert.matches("h.lua:5: unknown field 'tag' in the message", ended.stderr)
    ended = child.run { "--hook", "h.lua", "s.lua", cwd = where }
    assert.is_nil(ended.stderr:find "unknown field", ended.stderr)
  end)

  it("finds what is wrong with the script", function()
    local where = folder { ["s.lua"] = "print 'runs'\nx = = 1" }
    local ended = child.run { "--check", "s.lua", cwd = where }
    assert.same({ 1, "" }, { ended.code, ended.stdout })
    assert.matches("s%.lua:2: unexpected symbol", ended.stderr)
    ended = child.run { "--check", "-e", "= 1" }
    assert.equal(1, ended.code)
    assert.equal(2, child.run({ "--check" }).code)
  end)
end)

describe("the globals of a plugin", function()
  -- What a child says whose selector has this text.
  local function load(text)
    return child.run { "--selector", "p.lua", "s.lua", cwd = folder {
      ["p.lua"] = text,
      ["s.lua"] = [[
        local select = require("rocketmq.plugins").list()[1].value
        print(select(5))
        print(rawget(_G, "leaked"), print ~= nil)]],
    } }
  end

  it("are the standard library, wherever it is asked for", function()
    local ended = load [[
      assert(_G.math == math and _G._G == _G and getfenv(1) == _G)
      return function(x) return math.max(x, 7), _VERSION, type(require "rocketmq") end]]
    assert.equal("7\tLua 5.1\ttable\nnil\ttrue\n", ended.stdout .. ended.stderr)
  end)

  it("raise when they are not there, with the variable and the line", function()
    for _, text in ipairs { "local x = 1\nreturn nosuch", "\nreturn _G.nosuch",
      "\nreturn _G['nosuch']" } do
      local ended = load(text)
      assert.equal(1, ended.code)
      assert.matches("p%.lua:2: there is no global variable 'nosuch'", ended.stderr)
    end
    local ended = load "return function(x)\n\nreturn _G.nosuch\nend"
    assert.matches("p%.lua:3: there is no global variable 'nosuch'", ended.stderr)
    assert.matches("\n\tp.lua:3: in function", ended.stderr)
  end)

  it("are found to be wrong before the file runs, in whatever function", function()
    for _, wrong in ipairs { "return nosuch", "nosuch = 1", "function nosuch() end",
      "if false then print(nosuch) end", "return function() return nosuch.x end" } do
      local ended = load("print 'runs'\nlocal function f() return function()\n" .. wrong
        .. "\nend end\nlocal y = also_wrong")
      assert.same({ 1, "" }, { ended.code, ended.stdout })
      assert.matches("^rmqlua: p%.lua:3: .* global variable 'nosuch'[^\n]*\n$",
        ended.stderr)
    end
  end)

  it("are the file's own business when it changes environments", function()
    local ended = load "setfenv(1, { y = 3 }) return function(x) return x, y end"
    assert.equal("5\t3\nnil\ttrue\n", ended.stdout .. ended.stderr)
  end)

  it("cannot be set, the standard ones neither", function()
    for _, text in ipairs { "\nleaked = 1", "\nfunction leaked() end", "\n_G.leaked = 1",
      "\nprint = nil", "\nlocal f = function() math = 1 end f()" } do
      local ended = load(text)
      assert.equal(1, ended.code)
      assert.matches("p%.lua:2: a plugin must not set the global variable '[a-z]+'", ended.stderr)
    end
    -- Not by way of the metatable either.
    assert.matches("cannot change a protected metatable",
      load("setmetatable(_G, nil)").stderr)
    local ended = load "rawset(_G, 'leaked', 1) return function() return _G.leaked end"
    assert.equal("1\nnil\ttrue\n", ended.stdout .. ended.stderr)
  end)

  it("have libraries to which nothing can be added", function()
    for _, name in ipairs { "string.foo", "table.foo", "math.foo", "os.foo", "io.foo", "debug.foo",
      "coroutine.foo", "bit.foo", "jit.foo", "_G.string.foo" } do
      local ended = load("\n" .. name .. " = 1")
      assert.equal(1, ended.code, name)
      assert.matches("p%.lua:2: a plugin must not set " .. name:gsub("^_G%.", ""):gsub("%.", "%%.")
        .. ": nothing can be added to a library", ended.stderr)
    end
    -- What is to be found by require is set for all.
    local ended = load [[
      package.path = "x/?.lua;" .. package.path
      return function() return package.path:sub(1, 8), package == require "package" end]]
    assert.equal("x/?.lua;\ttrue\nnil\ttrue\n", ended.stdout .. ended.stderr)
  end)

  it("have libraries that are changed for the file only", function()
    local where = folder {
      ["a.lua"] = [[
        string.format = function() return "changed" end
        table.insert, os.time = nil, nil
        return { name = "a", before = function(ctx)
          print(string.format "x", table.insert, os.time, ("y"):upper(), next(string) ~= nil,
            getmetatable "".__index == string)
        end }]],
      ["b.lua"] = [[
        return { name = "b", before = function(ctx)
          print(string.format "x", type(table.insert), type(os.time))
        end }]],
      ["s.lua"] = [[
        local rocketmq = require "rocketmq"
        local producer = rocketmq.producer { group = "g" }
        assert(producer:send { topic = "T", body = "x" })
        print(string.format "x", type(table.insert), type(os.time))]],
    }
    local ended = child.run { "--mock=default", "--hook", "a.lua", "--hook", "b.lua", "s.lua",
      cwd = where }
    assert.equal("changed\tnil\tnil\tY\ttrue\tfalse\nx\tfunction\tfunction\n"
      .. "x\tfunction\tfunction\n", ended.stdout, ended.stderr)
  end)

  it("are not those of the script, nor of another plugin", function()
    local where = folder {
      ["a.lua"] = "rawset(_G, 'x', 1) " .. SELECTOR,
      ["b.lua"] = "return x",
    }
    local ended = child.run { "--selector", "a.lua", "--selector", "b.lua", "--check", cwd = where }
    assert.matches("b%.lua:1: there is no global variable 'x'", ended.stderr)
    ended = child.run { "-e", [[
      x = 1
      print(require("rocketmq").load_selector "b.lua")]], cwd = where }
    assert.matches("b%.lua:1: there is no global variable 'x'", ended.stdout)
  end)
end)

describe("a selector's name", function()
  it("works wherever a selector does", function()
    local ended = child.run { "--mock=brokers=1,topics={Orders=4}", "--selector", "last.lua",
      "s.lua", cwd = folder {
        ["last.lua"] = "return function(queues, message, arg) return #queues - (arg or 0) end",
        ["s.lua"] = [[
          local rocketmq = require "rocketmq"
          local message = { topic = "Orders", body = "x" }
          local producer = rocketmq.producer { group = "g" }
          print(producer:send(message, { selector = "last" }).queue.id)
          print(producer:send(message, { selector = "last", arg = 1 }).queue.id)
          print(producer:send(message, { selector = rocketmq.selector.last, arg = 2 }).queue.id)
          local by = rocketmq.selector.by(function() return 3 end, "last")
          print(producer:send(message, { selector = by }).queue.id)
          assert(producer:send_async(message, { selector = "last" }, function(result)
            print(result.queue.id)
          end))
          producer:flush()
          print(rocketmq.producer { group = "h", selector = "last" }:send(message).queue.id)
          print(pcall(producer.send, producer, message, { selector = "lost" }))
          print(pcall(producer.send, producer, message, { selector = "zzzz" }))]],
      } }
    assert.equal("3\n2\n1\n0\n3\n3\n"
      .. "false\toption selector: no selector is called 'lost': did you mean 'last'?\n"
      .. "false\toption selector: no selector is called 'zzzz': there are best, hash, "
      .. "hash_fnv1a, random, last\n", ended.stdout)
    assert.equal(0, ended.code)
  end)
end)

describe("load_selector and load_hook", function()
  it("give the name", function()
    local where = folder { ["a.lua"] = SELECTOR,
      ["b.lua"] = "return { name = 'b!', before = function() end }" }
    local before = #plugins.list()
    assert.equal("a", rocketmq.load_selector(where .. "/a.lua"))
    assert.equal("b!", rocketmq.load_hook(where .. "/b.lua"))
    assert.equal(before + 2, #plugins.list())
  end)

  it("are no matter to a producer that is shut down", function()
    local where = folder { ["late.lua"] = HOOK }
    local producer = rocketmq.producer { group = "g", namesrv = "127.0.0.1:1" }
    producer:shutdown()
    assert.equal("late", rocketmq.load_hook(where .. "/late.lua"))
    assert.is_true(#rocketmq.producer { group = "g", namesrv = "127.0.0.1:1" }.hooks > 0)
  end)

  it("replace what the same file gave before", function()
    local where = folder { ["again.lua"] = "return function() return 1 end" }
    local path = where .. "/again.lua"
    assert(rocketmq.load_selector(path))
    local before = plugins.list()
    local file = assert(io.open(path, "w"))
    file:write "return { name = 'other', select = function() return 2 end }"
    file:close()
    assert.equal("other", rocketmq.load_selector(path))
    local now = plugins.list()
    assert.equal(#before, #now)
    assert.equal(2, now[#now].value())
  end)

  it("give nil and why when the file is wrong", function()
    local where = folder { ["a.lua"] = "\nreturn nosuch" }
    local before = #plugins.list()
    local name, err = rocketmq.load_selector(where .. "/a.lua")
    assert.is_nil(name)
    assert.matches("a%.lua:2: there is no global variable 'nosuch'", tostring(err))
    name, err = rocketmq.load_hook(where .. "/none.lua")
    assert.is_nil(name)
    assert.matches("cannot read the hook '.*none%.lua'", tostring(err))
    assert.equal(before, #plugins.list())
    local _, mistake = pcall(function() rocketmq.load_hook() end)
    assert.matches("plugins_spec.lua:%d+: load_hook: the file must be a string, not nil", mistake)
  end)
end)
