-- Brokers and name servers of the mock that come, go, move and disagree.
local new_mock = require "rocketmq.mock"
local raw_client = require "spec.support.raw_client"
local wire = require "rocketmq.wire"

describe("a broker of the mock", function()
  local mock, namesrv

  before_each(function()
    mock = new_mock { brokers = { { name = "broker-a", slaves = 1 }, "broker-b" }, namesrvs = 2,
      topics = { Orders = { queues = 4 } } }
    namesrv = assert(raw_client.connect(mock:name_server(1).addr))
  end)

  after_each(function()
    namesrv:close()
    mock:close()
  end)

  -- The route as a client is told it: addresses by broker and id.
  local function told(from, topic)
    local reply = (from or namesrv):request { code = 105, version = 401,
      ext = { topic = topic or "Orders" } }
    if reply.code ~= 0 then return reply.code end
    local addrs = {}
    for _, broker in ipairs(assert(wire.decode_route(reply.body)).brokers) do
      for id, addr in pairs(broker.addrs) do addrs[broker.broker_name .. "#" .. id] = addr end
    end
    return addrs
  end

  it("moves to another port and takes its route along", function()
    local broker = mock:broker("broker-a")
    local old = broker.addr
    local client = assert(raw_client.connect(old))
    finally(function() client:close() end)
    broker:move()
    assert.are_not.equal(old, broker.addr)
    assert.equal("end", client:wait_end())
    assert.is_nil((raw_client.connect(old)))
    assert.equal(broker.addr, told()["broker-a#0"])
    local again = assert(raw_client.connect(broker.addr))
    assert.equal(3, again:request({ code = 999 }).code)
    again:close()
  end)

  it("stays stopped when it moves while it is", function()
    local broker = mock:broker("broker-a")
    broker:stop()
    broker:move()
    assert.is_nil((raw_client.connect(broker.addr)))
    broker:start()
    assert(raw_client.connect(broker.addr)):close()
  end)

  it("leaves the routes while it is up, and comes back", function()
    local master, slave = mock:broker("broker-a"), mock:broker("broker-a", 1)
    local b = mock:broker("broker-b").addr
    master:leave_routes()
    assert.same({ ["broker-a#1"] = slave.addr, ["broker-b#0"] = b }, told())
    slave:leave_routes()
    assert.same({ ["broker-b#0"] = b }, told())
    mock:broker("broker-b"):leave_routes()
    assert.equal(17, told())
    local client = assert(raw_client.connect(master.addr))
    assert.equal(3, client:request({ code = 999 }).code)
    client:close()
    master:join_routes()
    assert.same({ ["broker-a#0"] = master.addr }, told())
  end)

  it("writes to its clients what nobody asked for", function()
    local client = assert(raw_client.connect(mock:broker("broker-b").addr))
    client.raw = true
    client:send { code = 999 }
    mock:wait(function() return #client.bytes > 0 end)
    client.bytes = ""
    mock:broker("broker-b"):write("anything")
    mock:wait(function() return #client.bytes > 7 end)
    assert.equal("anything", client.bytes)
    client:close()
  end)

  it("is told of as it was by a name server that hears nothing more", function()
    local other = assert(raw_client.connect(mock:name_server(2).addr))
    finally(function() other:close() end)
    local before = told()
    mock:name_server(1):freeze()
    mock:broker("broker-a"):move()
    mock:broker("broker-b"):set_topic("New", { queues = 1 })
    mock:broker("broker-b"):remove_topic("Orders")
    assert.same(before, told())
    assert.equal(17, told(nil, "New"))
    assert.same({ ["broker-a#0"] = mock:broker("broker-a").addr,
      ["broker-a#1"] = mock:broker("broker-a", 1).addr }, told(other))
    mock:name_server(1):thaw()
    assert.same(told(other), told())
  end)

  it("is told of differently by a name server that was made to", function()
    local other = assert(raw_client.connect(mock:name_server(2).addr))
    finally(function() other:close() end)
    local server, usual = mock:name_server(1), told()
    server:set_route("Orders", false)
    assert.equal(17, told())
    assert.same(usual, told(other))
    server:set_route("Orders", "{broken")
    assert.equal("{broken", namesrv:request({ code = 105, ext = { topic = "Orders" } }).body)
    server:set_route("Orders", function(route)
      table.remove(route.brokers, 1)
      return route
    end)
    assert.same({ ["broker-b#0"] = usual["broker-b#0"] }, told())
    server:set_route("Made", { queues = {}, brokers = { { broker_name = "x",
      addrs = { [0] = "1.2.3.4:5" } } } })
    assert.same({ ["x#0"] = "1.2.3.4:5" }, told(nil, "Made"))
    server:set_route("Orders", nil)
    assert.same(usual, told())
    assert.error_matches(function() server:set_route("Orders", 5) end, "must be a table, a body")
    assert.error_matches(function() server:set_route("Orders", true) end, "not true")
  end)

  it("has topics with an order configuration that can change", function()
    local function conf()
      local reply = namesrv:request { code = 105, version = 401, ext = { topic = "Orders" } }
      return wire.decode_route(reply.body).order_topic_conf
    end
    assert.is_nil(conf())
    mock:set_order_conf("Orders", "broker-b:4")
    assert.equal("broker-b:4", conf())
    mock:set_order_conf("Orders", nil)
    assert.is_nil(conf())
  end)
end)
