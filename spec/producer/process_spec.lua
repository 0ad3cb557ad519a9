-- Producers in processes of their own: what only their end, their start or a fork shows.
local child = require "spec.support.child"
local new_mock = require "rocketmq.mock"

describe("a process with a producer", function()
  local mock
  before_each(function() mock = new_mock { topics = { Orders = 4 } } end)
  after_each(function() mock:close() end)

  local function run(script, given)
    given = given or {}
    table.insert(given, "--namesrv=" .. mock.namesrv)
    table.insert(given, "-e")
    table.insert(given, [[
      local rocketmq = require "rocketmq"
      local message = { topic = "Orders", body = "x" }
    ]] .. script)
    return child.run(given)
  end

  local function unregistered() return #mock:requests { code = "UNREGISTER_CLIENT" } end

  it("takes its leave of the brokers at the end of the script", function()
    local ended = run [[
      local producer = rocketmq.producer { group = "g" }
      assert(producer:send(message))
    ]]
    assert.equal("", ended.stderr)
    assert.equal(0, ended.code)
    assert.equal(1, mock:count())
    assert.equal(1, unregistered())
  end)

  it("takes its leave when the collector was there first", function()
    local ended = run [[
      do
        local producer = rocketmq.producer { group = "g" }
        assert(producer:send(message))
      end
      collectgarbage()
      collectgarbage()
    ]]
    assert.equal("", ended.stderr)
    assert.equal(0, ended.code)
    assert.equal(1, unregistered())
  end)

  it("ends although its producer never sent anything", function()
    local ended = run [[ P = rocketmq.producer { group = "g" } ]]
    assert.equal("", ended.stderr)
    assert.equal(0, ended.code)
    assert.equal(0, #mock:requests())
  end)

  it("waits at its end for sends that are under way", function()
    mock:rule { code = "SEND_MESSAGE_V2", delay = 50 }
    local ended = run [[
      local producer = rocketmq.producer { group = "g" }
      for i = 1, 10 do
        rocketmq.spawn(function() print(assert(producer:send(message)).status) end)
      end
    ]]
    assert.equal(("SEND_OK\n"):rep(10), ended.stdout)
    assert.equal(0, ended.code)
    assert.equal(10, mock:count())
  end)

  it("that raises a send's error shows it with its traceback, and ends with 1", function()
    mock:rule { code = "SEND_MESSAGE_V2",
      answer = { code = "INVALID_PARAMETER", remark = "so not" } }
    local ended = run [[
      local producer = rocketmq.producer { group = "g" }
      local result, err = producer:send(message)
      error(err)
    ]]
    assert.equal(1, ended.code)
    assert.truthy(ended.stderr:find('broker error 29: .*"Orders".*so not'), ended.stderr)
    assert.truthy(ended.stderr:find "stack traceback", ended.stderr)
  end)

  it("that asserts a send shows what went wrong", function()
    local ended = run [[ assert(rocketmq.producer { group = "g" }:send { topic = "Orders" }) ]]
    assert.equal(1, ended.code)
    assert.truthy(ended.stderr:find "message error 13: body is empty", ended.stderr)
  end)

  it("with a wrong setting ends with its place", function()
    local ended = run [[ rocketmq.producer { group = "g", retris = 1 } ]]
    assert.equal(1, ended.code)
    assert.truthy(ended.stderr:find("rocketmq.producer: unknown setting 'retris': did you mean "
      .. "'retries'?", 1, true), ended.stderr)
  end)

  it("looks for unknown fields in its first messages and then in one of 64", function()
    local ended = run [[
      local producer = rocketmq.producer { group = "g" }
      local wrong = { topic = "Orders", body = "x", tag = "t" }
      local function raised(n)
        local count = 0
        for _ = 1, n do
          if not pcall(producer.send, producer, wrong) then count = count + 1 end
        end
        return count
      end
      print(raised(256), raised(640), #require "rocketmq".version > 0)
      print(package.loaded["rocketmq.mock"])
    ]]
    assert.equal("256\t10\ttrue\nnil\n", ended.stdout)
  end)

  it("that forks has a producer that belongs to the parent", function()
    local ended = run [[
      local ffi = require "ffi"
      ffi.cdef "int fork(void); int waitpid(int, int *, int); void _exit(int);"
      local producer = rocketmq.producer { group = "g" }
      assert(producer:send(message))
      io.stdout:setvbuf "no"
      local pid = ffi.C.fork()
      if pid == 0 then
        local result, err = producer:send(message)
        print(result, err.kind, err.message)
        for _, name in ipairs { "flush", "shutdown" } do
          result, err = producer[name](producer)
          print(result, err.kind, err.message)
        end
        ffi.C._exit(0)
      end
      ffi.C.waitpid(pid, nil, 0)
      print(assert(producer:send(message)).status)
    ]]
    assert.equal('nil\tstate\tproducer "g" belongs to the parent process; make a new one\n'
      .. ("nil\tstate\tproducer 'g' belongs to the parent process\n"):rep(2)
      .. "SEND_OK\n", ended.stdout)
    assert.equal(0, ended.code, ended.stderr)
    assert.equal(2, mock:count())
    assert.equal(1, unregistered())
  end)

  it("that forks can make a new producer in the child, with ids of its own", function()
    local ended = run [[
      local ffi = require "ffi"
      ffi.cdef "int fork(void); int waitpid(int, int *, int);"
      local first = rocketmq.producer { group = "g" }
      print(assert(first:send(message)).msg_id)
      io.stdout:setvbuf "no"
      local pid = ffi.C.fork()
      if pid == 0 then
        local second = rocketmq.producer { group = "g" }
        print(assert(second:send(message)).msg_id)
        return
      end
      ffi.C.waitpid(pid, nil, 0)
      print(assert(first:send(message)).msg_id)
    ]]
    local ids = {}
    for id in ended.stdout:gmatch "%x+" do ids[#ids + 1] = id end
    assert.equal(3, #ids, ended.stdout .. ended.stderr)
    -- Address and pid, then the tag that chance makes.
    assert.equal(ids[1]:sub(1, 20), ids[3]:sub(1, 20))
    assert.is_not.equal(ids[1]:sub(13, 20), ids[2]:sub(13, 20))
    assert.equal(3, mock:count())
  end)
end)
