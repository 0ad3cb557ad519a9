-- A broker in a container registers an address that only its neighbours can reach. Where the address is in
-- truth is said by address_map; an error of connecting names both.
local new_mock = require "rocketmq.mock"
local rocketmq = require "rocketmq"
require "rocketmq.mock.assert"

local ADVERTISED = "10.255.255.1" -- reaches nobody

describe("brokers that advertise what cannot be reached", function()
  local mock, producer

  -- Routes name the brokers by `name(broker)`.
  local function start(name, settings)
    mock = new_mock { brokers = { { name = "broker-a", slaves = 1 }, "broker-b" },
      topics = { Orders = 2 } }
    for _, topic in ipairs { "Orders", "TBW102" } do
      mock:name_server():set_route(topic, function(route)
        for _, broker in ipairs(route.brokers) do
          local advertised = name(mock:broker(broker.broker_name))
          for id in pairs(broker.addrs) do broker.addrs[id] = advertised end
        end
        return route
      end)
    end
    local given = { group = "spec", namesrv = mock.namesrv, send_msg_timeout = 20000 }
    for key, value in pairs(settings) do
      given[key] = type(value) == "function" and value() or value
    end
    producer = rocketmq.producer(given)
  end

  after_each(function()
    if producer then producer:shutdown() end
    if mock then mock:close() end
    producer, mock = nil, nil
  end)

  local function send_to_all()
    for _, broker in ipairs { "broker-a", "broker-b" } do
      local queue = { broker = broker, id = 1 }
      assert(producer:send({ topic = "Orders", body = "x" }, { queue = queue }))
      assert.requests(mock, { at = broker, code = "HEART_BEAT" })
    end
    assert.sent(mock, { topic = "Orders" }, 2)
  end

  it("are reached by a map of addresses", function()
    start(function(broker) return ADVERTISED .. ":" .. (broker.name == "broker-a" and 1 or 2) end, {
      address_map = function()
        return { [ADVERTISED .. ":1"] = mock:broker("broker-a").addr,
          [ADVERTISED .. ":2"] = mock:broker("broker-b").addr }
      end })
    send_to_all()
  end)

  it("are reached by a map of hosts, which leaves the port", function()
    start(function(broker) return ADVERTISED .. ":" .. broker.port end,
      { address_map = ADVERTISED .. "=127.0.0.1" })
    send_to_all()
    producer:shutdown()
    assert.requests(mock, { at = "broker-a", code = "UNREGISTER_CLIENT" })
  end)

  it("may be written as a text, with an address before its host, whatever is advertised", function()
    start(function(broker)
      return broker.name == "broker-a" and "8.130.1.1 #change your own:" .. broker.port
        or ADVERTISED .. ":7"
    end, { address_map = function()
      return (" %s = 127.0.0.9:1 ;8.130.1.1 #change your own=127.0.0.1; %s:7=%s;"):format(
        ADVERTISED, ADVERTISED, mock:broker("broker-b").addr)
    end })
    send_to_all()
  end)

  it("that nobody maps stay as they are", function()
    start(function(broker) return broker.addr end, { address_map = "elsewhere=127.0.0.1:1" })
    send_to_all()
  end)

  it("are named in the error as they advertise and as they are mapped", function()
    start(function() return "172.17.0.2:10911" end,
      { address_map = "172.17.0.2=127.0.0.1:1", retries = 0 })
    local _, err = producer:send({ topic = "Orders", body = "x" },
      { queue = { broker = "broker-a", id = 0 } })
    assert.equal("connect", err.kind)
    assert.equal("127.0.0.1:1", err.addr)
    assert.matches("broker-a (127.0.0.1:1): connection refused (127.0.0.1:1); "
      .. "the broker advertises 172.17.0.2:10911, which address_map changes", err.message, 1, true)
  end)

  it("are named with what to do about it when there is no map", function()
    start(function() return "127.0.0.1:1" end, { retries = 0 })
    local _, err = producer:send { topic = "Orders", body = "x" }
    assert.matches("can be reached from here; if it cannot, set address_map.", err.message, 1, true)
    assert.is_nil(err.message:find("advertises", 1, true))
  end)

  it("follow a broker that moves", function()
    local at = 1
    start(function(broker) return broker.name == "broker-a" and "a:" .. at or broker.addr end, {
      poll_name_server_interval = 10, retries = 0,
      address_map = function()
        return { ["a:1"] = mock:broker("broker-b").addr, ["a:2"] = mock:broker("broker-a").addr }
      end })
    local function send()
      return producer:send({ topic = "Orders", body = "x" },
        { queue = { broker = "broker-a", id = 0 } })
    end
    assert(send())
    assert.sent(mock, { broker = "broker-b" }, 1)
    at = 2
    assert(mock:wait(function()
      send()
      return mock:messages("Orders", "broker-a")[1]
    end))
  end)

  it("are found by admin calls too", function()
    start(function(broker) return ADVERTISED .. ":" .. broker.port end,
      { address_map = { [ADVERTISED] = "127.0.0.1" } })
    assert(producer:send { topic = "Orders", body = "x" })
    assert.equal("number", type((assert(producer:max_offset { topic = "Orders", broker = "broker-a",
      id = 0 }))))
  end)

  it("cannot be mapped by what makes no sense", function()
    local function refuses(pattern, map)
      local ok, err = pcall(rocketmq.producer, { group = "g", namesrv = "a:1", address_map = map })
      assert.is_false(ok)
      assert.matches(pattern, err)
    end
    refuses("address_map: 'a:1' has no '='; write advertised=reachable", "a:1")
    refuses("address_map: nothing stands before the '=' of '=b:1'", "=b:1")
    refuses("address_map: 'b:0' is no address %(", "a:1=b:0")
    refuses("address_map: 'b c' is no address %(", "a:1=b c")
    refuses("address_map must be a string or a table of strings, not number", 5)
    refuses("address_map must be a table of strings", { "a:1" })
    refuses("address_map must be a table of strings", { a = 1 })
    refuses("address_map.* has a ';' or '='", { ["a;b"] = "c:1" })
  end)
end)
