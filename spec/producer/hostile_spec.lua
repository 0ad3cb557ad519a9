-- Name servers and brokers that answer with what no real one would, and scripts that hold on to
-- what is gone.
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"
local task = require "rocketmq.task"
local uv = require "luv"
local wire = require "rocketmq.wire"

-- A name server that answers each route question with what `route` returns: JSON.
local function name_server(route)
  local server = { asked = 0, socket = uv.new_tcp(), clients = {} }
  local function answer(client, chunk)
    client.bytes = client.bytes .. chunk
    local command = wire.decode(client.bytes)
    while command do
      client.bytes = client.bytes:sub(command.size + 1)
      server.asked = server.asked + 1
      client.socket:write(wire.encode { opaque = command.opaque, flag = 1,
        body = route(server.asked) })
      command = wire.decode(client.bytes)
    end
  end
  assert(server.socket:bind("127.0.0.1", 0))
  server.socket:listen(16, function()
    local client = { socket = uv.new_tcp(), bytes = "" }
    server.clients[#server.clients + 1] = client.socket
    server.socket:accept(client.socket)
    client.socket:read_start(function(_, chunk)
      if chunk then answer(client, chunk) end
    end)
  end)
  server.addr = "127.0.0.1:" .. server.socket:getsockname().port
  function server:close()
    self.socket:close()
    for _, socket in ipairs(self.clients) do socket:close() end
  end
  return server
end

local function route(addr, broker)
  return wire.encode_route {
    queues = { { broker_name = broker or "a", read_queue_nums = 1, write_queue_nums = 1,
      perm = 6 } },
    brokers = { { broker_name = broker or "a", addrs = { [0] = addr } } },
  }
end

describe("a name server", function()
  local server, producer
  local function start(answer)
    server = name_server(answer)
    producer = rocketmq.producer { group = "spec", namesrv = server.addr, retries = 0 }
  end
  after_each(function()
    producer:shutdown()
    server:close()
  end)

  it("that moves a broker with each answer is not asked without end", function()
    start(function(n) return route("127.0.0.1:" .. n) end)
    producer:send { topic = "Orders", body = "x" }
    producer:send { topic = "Bills", body = "x" }
    task.sleep(300)
    assert.is_true(server.asked < 50, server.asked .. " questions")
  end)

  it("whose route has control characters does not get them to the terminal", function()
    start(function() return route("127.0.0.1:1\27[2J", "a\r\n\127b") end)
    local _, err = producer:send { topic = "Orders", body = "x" }
    assert.equal("connect", err.kind)
    assert.matches("a   b %(127.0.0.1:1 %[2J%)", tostring(err))
    assert.is_nil(tostring(err):find "%c")
  end)

  it("whose route has endless names does not make endless errors", function()
    start(function() return route(("x"):rep(20000) .. ":1", ("b"):rep(20000)) end)
    local _, err = producer:send { topic = "Orders", body = "x" }
    assert.equal(20000, #err.broker)
    assert.is_true(#tostring(err) < 2000)
  end)

  it("whose route has no queues is told so, with what to do", function()
    start(function() return '{"queueDatas":[],"brokerDatas":[]}' end)
    local _, err = producer:send { topic = "Orders", body = "x" }
    assert.matches("Its route has no queues%. Give it some, for example: mqadmin updateTopic",
      err.message)
  end)
end)

describe("a broker's refusal", function()
  it("is shown on one line", function()
    local c = cluster.new({ topics = { Orders = 1 } }, { retries = 0 })
    c.mock:rule { code = "SEND_MESSAGE_V2", answer = { code = 1, remark = "bad\n\27[31mred\n" } }
    local _, err = c.producer:send { topic = "Orders", body = "x" }
    assert.matches("SYSTEM_ERROR: bad  %[31mred ", err.message)
    c:finish()
  end)
end)

describe("a producer that the collector has taken", function()
  it("refuses to do anything when a __gc gives it to the script again", function()
    local c = cluster.new { topics = { Orders = 1 } }
    local back
    -- In a function of its own, so that nothing of it stays on the stack.
    local function lose()
      local lost = rocketmq.producer { group = "spec", namesrv = c.mock.namesrv }
      assert(lost:send { topic = "Orders", body = "x" })
      getmetatable(newproxy(true)).__gc = function() back = lost end
    end
    lose()
    for _ = 1, 100 do
      if back then break end
      collectgarbage()
      task.sleep(1)
    end
    task.sleep(5)
    for name, argument in pairs { send = { topic = "Orders", body = "x" }, queues = "Orders",
      flush = 10, shutdown = 10, stats = false, settings = false } do
      local ok, err = pcall(back[name], back, argument or nil)
      assert.is_false(ok)
      assert.matches("this producer has been collected already", err)
    end
    c:finish()
  end)
end)
