--- Scripts ran more often than once, and their errors ended the process with a C abort, or were
--- printed without a place and forgotten, so that the exit status was 0.
local child = require "spec.support.child"

-- Each script fails in its line 3, in another place that C calls.
local PLACES = {
  ["while it loads"] = [[
print "once"
local t
t.x = 1]],
  ["in a function"] = [[
print "once"
local function deep()
  error "boom" end
deep()]],
  ["in a timer's callback"] = [[
print "once"
require("luv").new_timer():start(1, 0, function()
  error "boom" end)]],
  ["in a spawned task"] = [[
print "once"
require("rocketmq").spawn(function()
  error "boom" end)]],
  ["in a task that has waited"] = [[
print "once"
require("rocketmq").spawn(function() require("rocketmq").sleep(1)
  error "boom" end)]],
  ["in a coroutine of its own"] = [[
print "once"
coroutine.wrap(function()
  error "boom" end)()]],
  ["in a socket's callback"] = [[
print "once"
server = require("luv").new_tcp() server:bind("127.0.0.1", 0) server:listen(1, function()
  error "boom" end)
require("luv").new_tcp():connect("127.0.0.1", server:getsockname().port, function() end)]],
  ["with an error that is a table"] = [[
print "once"
local err = setmetatable({}, { __tostring = function() return "boom" end })
error(err)]],
  ["in a send's hands"] = [[
print "once"
local producer = require("rocketmq").producer { group = "g", namesrv = "127.0.0.1:1" }
producer:send(nil)]],
}

describe("a script's error", function()
  for place, text in pairs(PLACES) do
    it(place .. " ends the process with status 1, its line and a traceback", function()
      local ended, path = child.run_text(text)
      assert.equal(1, ended.code)
      assert.equal("once\n", ended.stdout)
      assert.is_truthy(ended.stderr:find(path .. ":3", 1, true), ended.stderr)
      assert.matches("traceback", ended.stderr)
      assert.is_nil(ended.stderr:find("PANIC", 1, true))
    end)
  end

  it("in its syntax is told with file and line", function()
    local ended, path = child.run_text("print 'never'\nlocal x = = 1\n")
    assert.equal(1, ended.code)
    assert.equal("", ended.stdout)
    assert.is_truthy(ended.stderr:find(path .. ":2", 1, true), ended.stderr)
  end)

  it("goes to on_error when there is one, and the script goes on", function()
    local ended = child.run_text [[
      local rocketmq = require "rocketmq"
      local caught = {}
      rocketmq.on_error(function(err)
        caught[#caught + 1] = tostring(err):gsub("^.*: ", "")
      end)
      rocketmq.spawn(function() error "one" end)
      require("luv").new_timer():start(1, 0, function() error "two" end)
      repeat rocketmq.sleep(1) until #caught == 2
      table.sort(caught)
      print(table.concat(caught, " "))
    ]]
    assert.equal("one two\n", ended.stdout)
    assert.equal(0, ended.code)
  end)

  it("that cannot be told still ends the process with status 1, saying why", function()
    local ended = child.run_text [[
      error(setmetatable({}, { __tostring = function() error "worse" end }))
    ]]
    assert.equal(1, ended.code)
    assert.matches("worse", ended.stderr)
  end)

  it("that is caught is no error", function()
    local ended = child.run_text [[
      print(pcall(error, "boom"))
      print(coroutine.resume(coroutine.create(function() error("boom", 0) end)))
    ]]
    assert.same({ 0, "false\tboom\nfalse\tboom\n", "" }, { ended.code, ended.stdout, ended.stderr })
  end)

  it("without a value ends the process with status 1 and no words", function()
    local ended = child.run_text "error()"
    assert.same({ 1, "", "" }, { ended.code, ended.stdout, ended.stderr })
  end)

  -- A script that fails while a send is under way; `rule` is what the mock makes of that send.
  local function failing_under_way(rule)
    return child.run_text(([[
      local rocketmq = require "rocketmq"
      local mock = rocketmq.mock { topics = { Orders = 1 } }
      mock:rule { code = "SEND_MESSAGE_V2", %s }
      local producer = rocketmq.producer { group = "g", namesrv = mock.namesrv,
        timeout = 60000, flush_timeout = 2000 }
      rocketmq.spawn(function() producer:send { topic = "Orders", body = "x" } end)
      mock:wait(function() return #mock:requests { code = "SEND_MESSAGE_V2" } == 1 end)
      error "boom"
    ]]):format(rule))
  end

  it("leaves what is under way the time to end", function()
    local ended = failing_under_way "delay = 50"
    assert.equal(1, ended.code)
    assert.matches("boom", ended.stderr)
    assert.is_nil(ended.stderr:find("not delivered", 1, true), ended.stderr)
  end)

  it("tells what could not be delivered in that time", function()
    local ended = failing_under_way "silent = true"
    assert.equal(1, ended.code)
    assert.matches("boom", ended.stderr)
    assert.matches("'g': 1 message was not delivered", ended.stderr)
  end)
end)
