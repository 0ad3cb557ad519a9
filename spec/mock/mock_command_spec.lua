-- `rmqlua mock`: a mock, or a proxy, in a process of its own.
local child = require "spec.support.child"
local new_mock = require "rocketmq.mock"
local raw_client = require "spec.support.raw_client"
local rocketmq = require "rocketmq"

describe("rmqlua mock", function()
  local running

  after_each(function()
    if running and not running.code then
      running:kill "sigterm"
      assert.equal(143, running:wait().code)
    end
    running = nil
  end)

  -- Starts one; gives the address of its name server once it has said it.
  local function start(...)
    running = child.start { "mock", "--listen", "127.0.0.1:0", ... }
    local addr = assert(require "rocketmq.mock.wait"(function()
      if running.code then error(running.stderr, 0) end
      return running.stderr:match "mock: name server at (%S+),"
    end, 20000))
    return addr
  end

  local function with_producer(addr, fn, settings)
    local given = { group = "spec", namesrv = addr, retries = 0 }
    for name, value in pairs(settings or {}) do given[name] = value end
    local producer = rocketmq.producer(given)
    fn(producer)
    producer:shutdown()
  end

  it("serves a cluster of the shape that it is told, with rules", function()
    local addr = start("--spec", "brokers={'x','y'},topics={Orders=2}", "--rule",
      'at="x", code="SEND_MESSAGE_V2", answer={code=2, remark="full"}')
    assert.matches("brokers x, y; nothing is stored", running.stderr)
    with_producer(addr, function(producer)
      local _, err = producer:send({ topic = "Orders", body = "b" }, { queue = { broker = "x",
        id = 1 } })
      assert.matches("full", err.message)
      assert(producer:send({ topic = "Orders", body = "b" }, { queue = { broker = "y", id = 1 } }))
    end)
  end)

  it("prints the requests that come", function()
    local addr = start("--print", "--spec", "topics={Orders=1}")
    with_producer(addr, function(producer)
      assert(producer:send { topic = "Orders", body = "b" })
    end)
    require "rocketmq.mock.wait"(function() return running.stdout:find "UNREGISTER" end, 5000)
    assert.matches("%d+%.%d%d%d  namesrv%-1 +#1 +127%.0%.0%.1:%d+ +GET_ROUTEINFO_BY_TOPIC "
      .. "%(105%)  Orders\n", running.stdout)
    assert.matches("broker%-[ab] .* SEND_MESSAGE_V2 %(310%)  Orders\n", running.stdout)
  end)

  it("stands in front of a real cluster", function()
    local real = new_mock { topics = { Orders = 1 } }
    finally(function() real:close() end)
    local addr = start("--proxy", real.namesrv, "--seed", "5",
      "--rule=code='SEND_MESSAGE_V2', nth=2, times=1, answer={code=14}")
    with_producer(addr, function(producer)
      assert(producer:send { topic = "Orders", body = "b" })
      local _, err = producer:send { topic = "Orders", body = "b" }
      assert.equal(14, err.code)
      assert(producer:send { topic = "Orders", body = "b" })
    end)
    assert.equal(2, real:count())
    assert.matches("name server at %S+, in front of " .. real.namesrv:gsub("%p", "%%%0"),
      running.stderr)
    assert.matches("mock: broker%-a at 127.0.0.1:%d+, in front of "
      .. real:broker("broker-a").addr:gsub("%p", "%%%0") .. "\n", running.stderr)
  end)

  it("says that what it stands in front of cannot be reached", function()
    local gone = new_mock()
    local addr = gone.namesrv
    gone:close()
    local own = start("--proxy", addr)
    with_producer(own, function(producer)
      assert.is_nil((producer:send { topic = "Orders", body = "b" }))
    end, { send_msg_timeout = 500 })
    assert.matches("mock: namesrv%-1 cannot pass on: " .. addr:gsub("%p", "%%%0")
      .. ": ECONNREFUSED", running.stderr)
  end)

  it("prints nothing that a terminal would act on, whatever clients say", function()
    local addr = start("--print")
    local client = assert(raw_client.connect(addr))
    assert(client:request { code = 105, ext = { topic = "a\27[2Jb\nc\127" } })
    client:close()
    require "rocketmq.mock.wait"(function() return running.stdout:find "\n" end, 5000)
    assert.matches("%(105%)  a\\x1b%[2Jb\\x0ac\\x7f\n$", running.stdout)
  end)

  it("prints what came that was no request, and goes on", function()
    local addr = start("--print")
    local client = assert(raw_client.connect(addr))
    client.socket:write "GET / HTTP/1.1\r\n\r\n"
    require "rocketmq.mock.wait"(function() return running.stdout:find "\n" end, 5000)
    assert.matches("^ +%d+%.%d%d%d  namesrv%-1 +#1 +127%.0%.0%.1:%d+ +no request: the other "
      .. "side asks in HTTP", running.stdout)
    client:close()
    with_producer(addr, function(producer)
      assert(producer:send { topic = "Orders", body = "b" })
    end)
  end)

  it("prints its help", function()
    local ended = child.run { "mock", "--help" }
    assert.equal(0, ended.code)
    for _, option in ipairs { "--listen", "--spec", "--proxy", "--rule", "--seed", "--print" } do
      assert.is_truthy(ended.stdout:find("\n  " .. option, 1, true), option)
    end
  end)

  it("ends with 2 when it is told what makes no sense", function()
    local wrong = {
      { "unknown name '%-%-prxy', did you mean '%-%-proxy'", "--prxy", "a:1" },
      { "unknown name 'start'; known are %-%-listen, .*, %-%-print, %-%-help %(", "start" },
      { "%-%-proxy needs a value: HOST:PORT", "--proxy" },
      { "%-%-print takes no value", "--print=yes" },
      { "rule: unknown name 'clos', did you mean 'close'", "--rule", "clos=true" },
      { "%-%-rule:1: ", "--rule", "close=" },
      { "rule: says nothing to do", "--rule", "" },
      { "^rmqlua: rule: says nothing to do", "--rule", "close=false" },
      { "%-%-rule: 'tru' is no value; as a text it is in quotes: \"tru\"", "--rule", "close=tru" },
      { "^rmqlua: %-%-spec: 'Orders' is no value", "--spec", "topics=Orders" },
      { "'proxy' excludes 'topics'", "--proxy", "a:1", "--spec", "topics={}" },
      { "^rmqlua: mock: 'proxy' excludes 'timer_scale', which .*; real brokers wait", "--proxy",
        "a:1", "--spec", "timer_scale=0" },
      { "'listen' must be an IPv4 address", "--listen", "here" },
      { "%-%-seed: 'x' is no number", "--seed", "x" },
      { "must be a whole number", "--seed", "1.5" },
    }
    for _, given in ipairs(wrong) do
      local pattern = table.remove(given, 1)
      -- Rules are looked at when the mock is up, which must not need a port that others may have.
      if given[1] == "--rule" then
        table.insert(given, "--listen")
        table.insert(given, "127.0.0.1:0")
      end
      table.insert(given, 1, "mock")
      local ended = child.run(given)
      assert.equal(2, ended.code, ended.stderr)
      assert.matches(pattern, ended.stderr)
      assert.equal("", ended.stdout)
    end
  end)

  it("leaves a script of its name alone", function()
    local ended = child.run { "--", "mock" }
    assert.equal(2, ended.code)
    assert.matches("cannot read the script 'mock'", ended.stderr)
  end)
end)
