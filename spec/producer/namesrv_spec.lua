-- Where the name servers come from, and what is said about those that do not answer.
local child = require "spec.support.child"
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"
local uv = require "luv"

-- An address where nobody listens, and what lets others have it.
local function dead_address()
  local socket = uv.new_tcp()
  socket:bind("127.0.0.1", 0)
  return "127.0.0.1:" .. socket:getsockname().port, function() socket:close() end
end

-- A server that accepts and never says a word.
local function black_hole()
  local server = uv.new_tcp()
  server:bind("127.0.0.1", 0)
  local clients = {}
  server:listen(16, function()
    local client = uv.new_tcp()
    server:accept(client)
    clients[#clients + 1] = client
  end)
  return "127.0.0.1:" .. server:getsockname().port, function()
    server:close()
    for _, client in ipairs(clients) do client:close() end
  end
end

describe("a name server", function()
  local c
  before_each(function() c = cluster.new { topics = { Orders = 4 } } end)
  after_each(function() c:finish() end)

  local function send(namesrv, settings)
    settings = settings or {}
    settings.namesrv = namesrv
    return c:add_producer(settings):send { topic = "Orders", body = "x" }
  end

  it("that cannot be reached is named with the reason", function()
    local dead, close = dead_address()
    local result, err = send(dead)
    close()
    assert.is_nil(result)
    assert.equal("route", err.kind)
    assert.truthy(err.message:find(dead, 1, true), err.message)
    assert.truthy(err.message:find "refused", err.message)
    assert.is_false(err.maybe_stored)
  end)

  it("that cannot be resolved is named with the reason", function()
    local result, err = send("no-such-host.invalid:9876", { send_msg_timeout = 2000 })
    assert.is_nil(result)
    assert.truthy(err.message:find("no-such-host.invalid:9876", 1, true), err.message)
  end)

  it("that never answers costs the budget and no more, and is named", function()
    local addr, close = black_hole()
    local result, err = send(addr, { send_msg_timeout = 100 })
    close()
    assert.is_nil(result)
    assert.truthy(err.message:find(addr, 1, true), err.message)
    assert.is_true(err.elapsed_ms >= 99)
  end)

  it("that is dead or silent does not keep the next one from answering", function()
    local addr, close = black_hole()
    local dead, close_dead = dead_address()
    for _, first in ipairs { dead, addr } do
      local result, err = send({ first, c.mock.namesrv }, { mq_client_api_timeout = 200 })
      assert.is_nil(err)
      assert.equal("SEND_OK", result.status)
    end
    close()
    close_dead()
  end)
end)

describe("the name server list", function()
  local c
  setup(function() c = cluster.new() end)
  teardown(function() c:finish() end)

  -- What a producer with these settings uses in a process of its own.
  local function used(given, settings)
    given[#given + 1] = "-e"
    given[#given + 1] = ([[
      local rocketmq = require "rocketmq"
      local ok, producer = pcall(rocketmq.producer, { group = "g", %s })
      io.stdout:write(ok and producer.namesrv or producer)]]):format(settings or "")
    local ended = child.run(given)
    assert.equal(0, ended.code, ended.stderr)
    return ended.stdout
  end

  it("of the script comes before --namesrv and NAMESRV_ADDR", function()
    assert.equal("a:1", used({ "--namesrv", "b:2", env = { "NAMESRV_ADDR=c:3" } },
      [[namesrv = "a:1"]]))
  end)
  it("of --namesrv comes before NAMESRV_ADDR", function()
    assert.equal("b:2", used { "--namesrv", "b:2", env = { "NAMESRV_ADDR=c:3" } })
  end)
  it("of NAMESRV_ADDR comes last", function()
    assert.equal("c:3", used { env = { "NAMESRV_ADDR=c:3" } })
  end)
  it("of the mock comes before all of them", function()
    local text = used({ "--mock", "--namesrv", "b:2", env = { "NAMESRV_ADDR=c:3" } },
      [[namesrv = "a:1"]])
    assert.truthy(text:find "^127%.0%.0%.1:%d+$", text)
  end)
  it("of --mock=default serves only producers that name none", function()
    assert.equal("a:1", used({ "--mock=default" }, [[namesrv = "a:1"]]))
    assert.truthy(used({ "--mock=default" }):find "^127%.0%.0%.1:%d+$")
  end)
  it("of --mock=default, where any is named, is not even started", function()
    assert.equal("b:2", used { "--mock=default", "--namesrv", "b:2" })
    local ended = child.run { "--mock=default", "-e", "", env = { "NAMESRV_ADDR=c:3" } }
    assert.same({ 0, "", "" }, { ended.code, ended.stdout, ended.stderr })
    assert.equal("c:3", used { "--mock=default", env = { "NAMESRV_ADDR=c:3" } })
  end)
  it("that is nowhere to be found is an error that says how to give one", function()
    local text = used {}
    for _, way in ipairs { "namesrv", "--namesrv", "--mock", "NAMESRV_ADDR" } do
      assert.truthy(text:find(way, 1, true), text)
    end
    assert.equal(text, used { env = { "NAMESRV_ADDR=" } })
  end)
  it("that is malformed in the environment is refused before the script runs", function()
    local ended = child.run { "-e", "print 'ran'", env = { "NAMESRV_ADDR=nonsense" } }
    assert.equal(2, ended.code)
    assert.equal("", ended.stdout)
    assert.truthy(ended.stderr:find("NAMESRV_ADDR: 'nonsense'", 1, true), ended.stderr)
  end)

  it("is what the producer says", function()
    local producer = rocketmq.producer { group = "g", namesrv = { "a:1", "b:2" } }
    assert.equal("a:1;b:2", producer.namesrv)
    producer:shutdown()
  end)
end)
