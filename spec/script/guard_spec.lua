-- Selectors that do not come back: they are warned of, stopped, or end the process.
local child = require "spec.support.child"
local folder = require "spec.support.folder"
local task = require "rocketmq.task"
local uv = require "luv"
local wait = require "rocketmq.mock.wait"

-- Sends with the plugin's selector, then without any.
local SENDS = [[
  local rocketmq = require "rocketmq"
  local select = "p"
  local producer = rocketmq.producer { group = "g" }
  local function send(options)
    local result, err = producer:send({ topic = "Orders", body = "x" }, options)
    print(result and result.status or err.kind .. ": " .. err.message)
  end
  send { selector = select, timeout = 60000 }
  send { timeout = 60000 }
]]

local function arguments(files, options)
  local given = { "--mock=topics={Orders=4}", "--selector", "p.lua", cwd = folder(files) }
  for name, value in pairs(options) do given[#given + 1] = ("--%s=%s"):format(name, value) end
  given[#given + 1] = "s.lua"
  return given
end

-- A child with this text as its selector.
local function run(text, options, script)
  return child.run(arguments({ ["p.lua"] = text, ["s.lua"] = script or SENDS }, options))
end

local QUICK = { ["plugin-warn"] = 20, ["plugin-limit"] = 60 }

describe("a selector that takes long", function()
  local BUSY = [[
    return function(queues)
      local ends = os.clock() + 0.2
      while os.clock() < ends do end
      return queues[1]
    end]]

  it("is warned of once, with the line that it is at, and is obeyed", function()
    local ended = run(BUSY, { ["plugin-warn"] = 20, ["plugin-limit"] = 0 })
    assert.equal("SEND_OK\nSEND_OK\n", ended.stdout)
    assert.matches("warn  p.lua:3: the selector 'p' %(p.lua:1%) has not returned for 20 ms; "
      .. "until it does nothing is sent or received\n", ended.stderr)
    local _, count = ended.stderr:gsub("has not returned", "")
    assert.equal(1, count)
  end)

  it("is not spoken of when the warning is off", function()
    local ended = run(BUSY, { ["plugin-warn"] = 0, ["plugin-limit"] = 0, deadman = 0 })
    assert.equal("SEND_OK\nSEND_OK\n", ended.stdout)
    assert.is_nil(ended.stderr:find "has not returned")
  end)
end)

describe("a selector that never returns", function()
  local endless = {
    ["loops"] = "while true do end",
    ["loops over numbers"] = "for i = 1, math.huge do end",
    ["catches what stops it"] = "while true do pcall(function() while true do end end) end",
    ["catches it many times"] = "local function f() pcall(f) while true do end end f()",
    ["handles what stops it"] = "xpcall(function() while true do end end, print)",
    ["calls itself for ever"] = "local function f() return f() end f()",
    ["loops in a coroutine"] = "while true do coroutine.resume(coroutine.create(function() "
      .. "while true do end end)) end",
    ["loops in a wrapped coroutine"] = "coroutine.wrap(function() while true do end end)()",
    ["loops inside of a C function"] = "string.gsub('x', '.', function() while true do end end)",
    ["turns hooks off in its loop"] = "while true do debug.sethook() end",
    ["sets hooks in its loop"] = "while true do debug.sethook(print, '', 1000000) end",
    ["loops in a chunk that it loads"] = "loadstring 'jit.off() while true do end' ()",
    ["catches it and gives a queue"] = "pcall(function() while true do end end) return 1",
    ["calls a short C function for ever"] = "while true do os.clock() end",
  }
  for name, text in pairs(endless) do
    it(name .. ", fails its message and nothing else", function()
      local ended = run("return function()\n" .. text .. "\nend", QUICK)
      assert.equal(0, ended.code, ended.stderr)
      local said, rest = ended.stdout:match "^(.-)\n(SEND_OK\n)$"
      assert.equal("SEND_OK\n", rest, ended.stdout)
      assert.matches("selector: Sending to topic \"Orders\" failed: its selector: ", said)
      if name == "catches it many times" then return end
      assert.matches(":%d: the selector 'p' %(p.lua:1%) has not returned for 60 ms and was "
        .. "stopped; it has to answer at once\nstack traceback:.*p.lua:[23]: in", said)
    end)
  end

  it("is met in the same way the next time", function()
    local ended = run("local n = 0 return function() n = n + 1 if n % 2 == 1 then "
      .. "while true do end end return 1 end", QUICK, SENDS .. SENDS:gsub("local ", "") .. [[
      send { selector = select, timeout = 60000 }]])
    local _, stopped = ended.stdout:gsub("was stopped", "")
    assert.equal(2, stopped)
    assert.matches("SEND_OK\n.*SEND_OK\n", ended.stdout)
    assert.equal(0, ended.code)
  end)

  it("is stopped when it is the script's own, unless that is compiled", function()
    local ended = run("return { select = function() end }", QUICK, SENDS:gsub("select =.-\n",
      "select = function() jit.off(true, true) while true do end end\n", 1))
    assert.matches("s.lua:%d+: the selector at s.lua:2 has not returned for 60 ms", ended.stdout)
    assert.matches("\nSEND_OK\n$", ended.stdout)
  end)

  it("leaves the script's own hook as it was", function()
    local ended = run("return function() while true do end end", QUICK, [[
      local calls = 0
      debug.sethook(function() calls = calls + 1 end, "c")
      ]] .. SENDS .. [[
      local _, mask = debug.gethook()
      local before = calls
      print(mask, calls > before or (function() return calls > before end)())]])
    assert.matches("was stopped", ended.stdout)
    assert.matches("\nc\ttrue\n$", ended.stdout)
  end)

  it("is stopped inside of the one that sent with it", function()
    local ended = run("return function() while true do end end", QUICK, [[
      local rocketmq = require "rocketmq"
      local select = "p"
      local producer = rocketmq.producer { group = "g" }
      assert(producer:send { topic = "Orders", body = "x" })
      local result, err = producer:send({ topic = "Orders", body = "x" }, { selector = function()
        for _ = 1, 1000000 do
          producer:send_async({ topic = "Orders", body = "x" }, { selector = select },
            function() end)
        end
        return 1
      end, timeout = 60000 })
      print(result, err.kind, err.message)]])
    assert.matches("nil\tselector\t.*the selector at s.lua:5 has not returned for 60 ms",
      ended.stdout)
    assert.equal(0, ended.code)
  end)
end)

describe("the file of a plugin that never returns", function()
  it("ends the start, naming the line", function()
    local ended = run("local x = 1\nwhile true do x = x + 1 end", QUICK)
    assert.same({ 1, "" }, { ended.code, ended.stdout })
    assert.matches("p.lua:2: the plugin p.lua has not returned for 60 ms and was stopped",
      ended.stderr)
  end)
end)

describe("the deadman", function()
  local FAST = { ["plugin-warn"] = 0, ["plugin-limit"] = 40, deadman = 200 }

  local function ends(text, more)
    local files = { ["p.lua"] = text, ["s.lua"] = SENDS }
    for name, content in pairs(more or {}) do files[name] = content end
    local ended = child.run(arguments(files, FAST))
    assert.same({ 1, "" }, { ended.code, ended.stdout })
    return ended.stderr
  end

  it("ends the process when a C function does not return, with the line", function()
    for _, wait_long in ipairs { "os.execute 'exec sleep 3 >/dev/null 2>&1'",
      "io.popen('exec sleep 3 2>/dev/null'):read '*a'",
      "string.find(('a'):rep(200), ('.-'):rep(60) .. 'b')" } do
      local said = ends("return function()\nlocal x = 1\n" .. wait_long .. "\nend")
      assert.matches("rmqlua: the selector 'p' at p.lua:1, now in p.lua:3, has not returned for "
        .. "200 ms, and a C function or a compiled loop cannot be stopped; ending without "
        .. "flushing; messages undelivered: 1\n$", said)
    end
  end)

  it("says before, once, that nothing stops it, and goes on when it returns", function()
    local SAID = "rmqlua: a selector, a hook or a plugin's file has not returned for %d+ ms, and "
      .. "is in a C function or a compiled loop, which no error stops; until it returns nothing"
    local options = { ["plugin-warn"] = 10, ["plugin-limit"] = 0, deadman = 0 }
    local words = arguments({ ["s.lua"] = SENDS,
      ["p.lua"] = "return function() os.execute 'until [ -e go ]; do sleep 0.02; done' "
        .. "return 1 end",
    }, options)
    local one = child.start(words)
    local said = wait(function() return one.stderr:find(SAID) end, 20000)
    assert(io.open(words.cwd .. "/go", "w")):close()
    local ended = one:wait()
    assert.is_truthy(said, ended.stderr)
    assert.equal("SEND_OK\nSEND_OK\n", ended.stdout)
    assert.equal(1, select(2, ended.stderr:gsub(SAID, "")))
    options["log-level"] = "error"
    ended = run("return function() os.execute 'exec sleep 0.3 >/dev/null' return 1 end", options)
    assert.is_nil(ended.stderr:find "has not returned")
  end)

  it("ends it also when nobody reads its stderr, and so does SIGTERM", function()
    for _, case in ipairs { { deadman = 200, status = 1 }, { deadman = 0, status = 3 } } do
      local words = arguments({ ["s.lua"] = SENDS, ["p.lua"] = [[
        return function()
          io.open("begun", "w"):close()
          while true do io.stderr:write(("x"):rep(4096)) end
        end]] }, { ["plugin-warn"] = 0, ["plugin-limit"] = 0, deadman = case.deadman })
      local errors, code = uv.new_pipe(false), nil
      words.args, words.stdio = words, { nil, nil, errors }
      local handle = assert(uv.spawn(uv.exepath(), words, function(status) code = status end))
      if case.deadman == 0 then
        assert(wait(function() return uv.fs_stat(words.cwd .. "/begun") end, 10000))
        handle:kill "sigterm"
      end
      local ended = wait(function() return code end, 10000)
      if not ended then handle:kill "sigkill" end
      assert.is_truthy(ended)
      assert.equal(case.status, code)
      handle:close()
      errors:close()
    end
  end)

  it("ends it when another module's compiled loop does not return", function()
    local said = ends("local m = require 'm'\nreturn function()\nm()\nend",
      { ["m.lua"] = "return function() local x = 0 while true do x = x + 1 end end" })
    assert.matches("rmqlua: the selector 'p' at p.lua:2 has not returned for 200 ms, and", said)
  end)

  it("ends it where Lua knows no hooks", function()
    for _, text in ipairs {
      "xpcall(function() while true do end end, function() while true do end end)",
      "debug.sethook(function() while true do end end, 'l') local x = 1\nx = 2",
      "local p = newproxy(true) getmetatable(p).__gc = function() while true do end end p = nil "
        .. "collectgarbage()",
    } do
      local said = ends("return function()\n" .. text .. "\nend")
      assert.matches("rmqlua: the selector 'p' at p.lua:1.* has not returned for 200 ms, and",
        said)
    end
  end)

  it("ends it when the limit that would have stopped it is off", function()
    local ended = run("return function()\nwhile true do end\nend",
      { ["plugin-limit"] = 0, deadman = 200 })
    assert.equal(1, ended.code)
    assert.matches("rmqlua: p.lua:2: the selector 'p' %(p.lua:1%) has not returned for 200 ms; "
      .. "ending without flushing; messages undelivered: 1\n$", ended.stderr)
  end)

  it("flushes what was printed where it can", function()
    local ended = run("return function() io.write 'printed' while true do end end",
      { ["plugin-limit"] = 0, deadman = 200 })
    assert.equal("printed", ended.stdout)
  end)

  it("does not count the time for which the process is stopped", function()
    local given = arguments({ ["s.lua"] = SENDS, ["p.lua"] = [[
      return function(queues)
        io.write "in\n" io.flush()
        while not io.open "go" do end
        return 1
      end]] }, { ["plugin-warn"] = 0, ["plugin-limit"] = 0, deadman = 2000 })
    local started = child.start(given)
    assert(wait(function() return started.stdout:find "in\n" end, 20000))
    started:kill "sigstop"
    task.sleep(2500)
    assert(io.open(given.cwd .. "/go", "w")):close()
    started:kill "sigcont"
    assert.equal("in\nSEND_OK\nSEND_OK\n", started:wait().stdout)
  end)

  it("leaves calls alone that come and go, however many", function()
    local ended = run("return function() return 1 end",
      { ["plugin-warn"] = 0, ["plugin-limit"] = 400 }, [[
      local rocketmq = require "rocketmq"
      local select = "p"
      local producer = rocketmq.producer { group = "g" }
      local started = require("luv").hrtime()
      while require("luv").hrtime() - started < 9e8 do
        assert(producer:send({ topic = "Orders", body = "x" }, { selector = select }))
      end
      print "well"]])
    assert.equal("well\n", ended.stdout)
  end)
end)

describe("the limits", function()
  it("are milliseconds", function()
    for option, wrong in pairs { ["--plugin-warn"] = "x", ["--plugin-limit"] = "-1",
      ["--deadman"] = "86400001" } do
      local ended = child.run { option, wrong, "-e", "print 'never'" }
      assert.same({ 2, "" }, { ended.code, ended.stdout })
      assert.is_truthy(ended.stderr:find(("rmqlua: %s: '%s' is not a number of milliseconds from "
        .. "0 (for ever) to 86400000"):format(option, wrong), 1, true), ended.stderr)
    end
  end)
end)
