-- Plugins that are loaded again, by SIGHUP or by rocketmq.reload.
local child = require "spec.support.child"
local folder = require "spec.support.folder"
local wait = require "rocketmq.mock.wait"

local function write(path, text)
  -- As an editor does: a reader sees the whole old file or the whole new one.
  local file = assert(io.open(path .. ".new", "w"))
  file:write(text)
  file:close()
  assert(os.rename(path .. ".new", path))
end

-- Tells which queue messages go to, and what hooks have written into them, whenever that changes.
local SENDS = [[
  local rocketmq = require "rocketmq"
  local mock = rocketmq.mock { brokers = 1, topics = { Orders = 8 } }
  local producer = rocketmq.producer { group = "g", namesrv = mock.namesrv }
  local said
  while not io.open "stop" do
    local result, err = producer:send({ topic = "Orders", body = "x" },
      { selector = "p", timeout = 30000 })
    local messages = mock:messages "Orders"
    local says = result and "queue " .. result.queue.id .. " "
      .. tostring(messages[#messages].properties.by) or err.kind
    if says ~= said then
      said = says
      io.write(says, "\n")
      io.flush()
    end
    rocketmq.sleep(1)
  end
  print "end"]]

-- A child that runs until it is stopped.
local function start(files, ...)
  files["s.lua"] = files["s.lua"] or SENDS
  local given = { "--log-level", "info", ... }
  given[#given + 1] = "s.lua"
  given.cwd = folder(files)
  local one = child.start(given)
  one.cwd = given.cwd
  function one.says(text, name)
    local heard = wait(function()
      return one[name or "stdout"]:find(text, 1, true) or one.code
    end, 20000)
    assert.is_truthy(heard and one[name or "stdout"]:find(text, 1, true),
      one.stdout .. one.stderr)
  end
  function one.stop()
    write(one.cwd .. "/stop", "")
    local ended = one:wait()
    assert.same({ 0, 0 }, { ended.code, ended.signal }, ended.stdout .. ended.stderr)
    assert.matches("end\n$", ended.stdout)
    return ended
  end
  return one
end

local function selector(n) return ("return function() return %d end"):format(n) end
local function hook(by)
  return ("return { before = function(ctx) ctx.message.properties.by = %q end }"):format(by)
end

describe("SIGHUP", function()
  it("puts new selectors and hooks in the place of the old ones", function()
    local one = start({ ["p.lua"] = selector(1), ["h.lua"] = hook "first" },
      "--selector", "p.lua", "--hook", "h.lua")
    one.says "queue 0 first\n"
    write(one.cwd .. "/p.lua", selector(3))
    one:kill "sighup"
    one.says "queue 2 first\n"
    write(one.cwd .. "/h.lua", hook "second")
    one:kill "sighup"
    one.says "queue 2 second\n"
    assert.matches("info  SIGHUP: 2 plugins loaded again", one.stop().stderr)
  end)

  it("keeps everything when one file is wrong, and says which and why", function()
    local one = start({ ["p.lua"] = selector(1), ["h.lua"] = hook "first" },
      "--selector", "p.lua", "--hook", "h.lua")
    one.says "queue 0 first\n"
    for _, wrong in ipairs {
      { "return {", "h.lua:1:" }, { "\nreturn nosuch", "h.lua:2: there is no global variable" },
      { "while true do end", "h.lua:1: the plugin h.lua has not returned for 1000 ms" },
      { "return 1", "h.lua:1: the file must return a table, not a number" },
      { "require('rocketmq').sleep(1)", "h.lua:1: sleep cannot wait here" },
    } do
      write(one.cwd .. "/p.lua", selector(5))
      write(one.cwd .. "/h.lua", wrong[1])
      one:kill "sighup"
      one.says("SIGHUP: the plugins stay as they are: " .. wrong[2], "stderr")
    end
    os.remove(one.cwd .. "/h.lua")
    one:kill "sighup"
    one.says("cannot read the hook 'h.lua'", "stderr")
    assert.is_nil(one.stdout:find "queue 4")
    write(one.cwd .. "/h.lua", hook "mended")
    one:kill "sighup"
    one.says "queue 4 mended\n"
    one.stop()
  end)

  it("reads folders again: new files come, those that are gone go", function()
    local one = start({ ["d/p.lua"] = "return { select = function() return 1 end }" },
      "--plugins", "d")
    one.says "queue 0 nil\n"
    write(one.cwd .. "/d/h.lua", hook "new")
    one:kill "sighup"
    one.says "queue 0 new\n"
    os.remove(one.cwd .. "/d/h.lua")
    one:kill "sighup"
    one.says "queue 0 nil\n"
    one.stop()
  end)

  it("leaves an attempt the hooks that it has begun with", function()
    local one = start({
      ["h.lua"] = "return { before = function() print 'old before' end,"
        .. "after = function() print 'old after' end }",
      ["s.lua"] = [[
        local rocketmq = require "rocketmq"
        local mock = rocketmq.mock { brokers = 1, topics = { Orders = 1 } }
        local producer = rocketmq.producer { group = "g", namesrv = mock.namesrv }
        local function send()
          assert(producer:send({ topic = "Orders", body = "x" }, { timeout = 60000 }))
        end
        mock:rule { code = "SEND_MESSAGE_V2", times = 1, silent = true }
        local task = rocketmq.spawn(send)
        mock:wait(function() return #mock:requests { code = "SEND_MESSAGE_V2" } == 1 end)
        io.write "sent\n" io.flush()
        repeat rocketmq.sleep(1) until io.open "reloaded"
        mock:broker("broker-a"):disconnect()
        task:wait()
        send()
        print "end"]],
    }, "--hook", "h.lua")
    one.says "sent\n"
    write(one.cwd .. "/h.lua", "return { before = function() print 'new before' end,"
      .. "after = function() print 'new after' end }")
    one:kill "sighup"
    one.says("loaded again", "stderr")
    write(one.cwd .. "/reloaded", "")
    local ended = one.stop()
    assert.equal("old before\nsent\nold after\nnew before\nnew after\nnew before\nnew after\nend\n",
      ended.stdout)
  end)

  it("ends a process that has no plugins, as ever", function()
    local one = child.start { "-e", "io.write 'up' io.flush() require('rocketmq').sleep(60000)" }
    assert(wait(function() return one.stdout == "up" end, 20000))
    one:kill "sighup"
    local ended = one:wait()
    assert.equal(1, ended.signal)
  end)
end)

describe("reload", function()
  local function run(files, ...)
    -- What the mock keeps would look like memory that is lost.
    local given = { "--mock=topics={Orders=4}, keep=100", ... }
    given[#given + 1] = "s.lua"
    given.cwd = folder(files)
    local ended = child.run(given)
    assert.equal(0, ended.code, ended.stderr)
    return ended.stdout
  end

  it("gives true, or nil and why", function()
    local said = run({ ["p.lua"] = selector(1), ["s.lua"] = [[
      local rocketmq = require "rocketmq"
      print(rocketmq.reload())
      local file = io.open("p.lua", "w")
      file:write "\nreturn nosuch"
      file:close()
      local ok, err = rocketmq.reload()
      print(ok, err.kind, err.message)
      print(#require("rocketmq.plugins").list())]] }, "--selector", "p.lua")
    assert.matches("^true\nnil\tstate\tp.lua:2: there is no global variable 'nosuch'.*\n1\n$", said)
  end)

  it("follows a new name, and the old one is gone", function()
    local said = run({ ["p.lua"] = selector(1), ["s.lua"] = [[
      local rocketmq = require "rocketmq"
      local producer = rocketmq.producer { group = "g", selector = "p" }
      local message = { topic = "Orders", body = "x" }
      print(producer:send(message).status)
      local file = io.open("p.lua", "w")
      file:write "return { name = 'q', select = function() return 2 end }"
      file:close()
      assert(rocketmq.reload())
      print(pcall(producer.send, producer, message))
      print(pcall(producer.send, producer, message, { selector = "p" }))
      print(producer:send(message, { selector = "q" }).queue.id)]] }, "--selector", "p.lua")
    assert.matches("^SEND_OK\nfalse\t[^\n]*'p'[^\n]*\nfalse\t[^\n]*'p'[^\n]*\n1\n$", said)
  end)

  it("is refused inside of selectors, hooks and plugins' files", function()
    local said = run({
      ["p.lua"] = "local r = require 'rocketmq' if r.loaded_before then print(r.reload()) end "
        .. "return function() print(r.reload()) print(r.load_selector 'q.lua') return 1 end",
      ["q.lua"] = selector(2),
      ["h.lua"] = "return { before = function() print(require('rocketmq').reload()) end }",
      ["s.lua"] = [[
        local rocketmq = require "rocketmq"
        local producer = rocketmq.producer { group = "g" }
        rocketmq.loaded_before = true
        print(producer:send({ topic = "Orders", body = "x" }, { selector = "p" }).status)
        print(rocketmq.reload())]],
    }, "--selector", "p.lua", "--hook", "h.lua")
    local refused = "nil\tstate error: a selector, a hook or the file of a plugin cannot load "
      .. "plugins\n"
    assert.equal(refused:rep(3) .. "SEND_OK\n" .. refused .. "true\n", said)
  end)

  it("disturbs nothing, however often", function()
    local said = run({
      ["p.lua"] = "local n = 0 return function(queues) n = n + 1 return n % #queues + 1 end",
      ["h.lua"] = "local n = 0 return { before = function(ctx) n = n + 1 "
        .. "ctx.message.properties.n = tostring(n) end, after = function() end }",
      ["s.lua"] = [[
        local rocketmq = require "rocketmq"
        local producer = rocketmq.producer { group = "g", timeout = 60000 }
        local done, stored = false, 0
        local tasks = {}
        for i = 1, 8 do
          tasks[i] = rocketmq.spawn(function()
            repeat
              assert(producer:send({ topic = "Orders", body = "x" }, { selector = "p" }))
              stored = stored + 1
            until done
          end)
        end
        local function reload(times)
          for _ = 1, times do
            assert(rocketmq.reload())
            rocketmq.sleep(0)
          end
        end
        reload(500)
        collectgarbage() collectgarbage()
        local before = collectgarbage "count"
        reload(300)
        collectgarbage() collectgarbage()
        done = true
        for i = 1, 8 do assert(tasks[i]:wait() == nil) end
        local stats = producer:stats()
        print(stats.acknowledged == stored, stats.failed, stats.hook_errors,
          collectgarbage "count" - before < 300)]],
    }, "--selector", "p.lua", "--hook", "h.lua")
    assert.equal("true\t0\t0\ttrue\n", said)
  end)
end)
