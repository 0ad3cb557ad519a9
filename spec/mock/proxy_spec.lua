-- The mock as a proxy. What stands behind it here is another mock.
local child = require "spec.support.child"
local new_mock = require "rocketmq.mock"
local raw_client = require "spec.support.raw_client"
local rocketmq = require "rocketmq"
local uv = require "luv"
local wire = require "rocketmq.wire"

describe("a proxy", function()
  local real, mock, producer

  before_each(function()
    real = new_mock { brokers = { { name = "broker-a", slaves = 1 }, "broker-b" },
      topics = { Orders = 2 }, namesrvs = 2 }
    mock = new_mock { proxy = real.namesrv }
  end)

  after_each(function()
    if producer then producer:shutdown() end
    producer = nil
    mock:close()
    real:close()
  end)

  local function new_producer(settings)
    local given = { group = "spec", namesrv = mock.namesrv }
    for name, value in pairs(settings or {}) do given[name] = value end
    producer = rocketmq.producer(given)
    return producer
  end

  local function queue(broker) return { queue = { broker = broker, id = 0 } } end

  it("passes sends through, and knows what was stored where", function()
    new_producer()
    for index = 1, 40 do
      local result = assert(producer:send { topic = "Orders", body = "body " .. index,
        tags = "t", properties = { n = index .. "" } })
      assert.equal(index, real:count())
      local stored, seen = real:messages()[index], mock:messages()[index]
      assert.equal(stored.offset_msg_id, result.offset_msg_id)
      for _, name in ipairs { "topic", "broker", "queue_id", "queue_offset", "body", "tags",
        "msg_id", "offset_msg_id", "group" } do
        assert.equal(stored[name], seen[name])
      end
      assert.same(stored.properties, seen.properties)
    end
    assert.equal(40, #mock:requests { code = 310 })
    assert.is_true(#mock:requests { at = "broker-b", code = "HEART_BEAT" } > 0)
  end)

  it("lets clients know brokers by its own addresses only", function()
    local client = assert(raw_client.connect(mock:name_server(1).addr))
    finally(function() client:close() end)
    for version, spelling in pairs { [401] = '"0":', [300] = "0:" } do
      local body = client:request({ code = 105, version = version,
        ext = { topic = "Orders" } }).body
      assert.is_truthy(body:find("{" .. spelling, 1, true), body)
      local addrs = {}
      for _, broker in ipairs(wire.decode_route(body).brokers) do
        for id, addr in pairs(broker.addrs) do addrs[broker.broker_name .. id] = addr end
      end
      assert.same({ ["broker-a0"] = mock:broker("broker-a").addr,
        ["broker-a1"] = mock:broker("broker-a", 1).addr,
        ["broker-b0"] = mock:broker("broker-b").addr }, addrs)
    end
    assert.equal(real:broker("broker-a", 1).addr, mock:broker("broker-a", 1).upstream)
    assert.equal(17, client:request({ code = 105, ext = { topic = "None" } }).code)
  end)

  it("keeps all else in a name server's answer as it came", function()
    local addr = real:broker("broker-a").addr
    local route = '{ "brokerDatas" : [ {"zone":"z","brokerAddrs" : { "0" : "' .. addr
      .. '" },"brokerName":"broker-a","enableActingMaster":false}],"queueDatas":[{"brokerName":'
      .. '"broker-a","perm":6,"readQueueNums":1,"writeQueueNums":1}],"new":"' .. addr .. '"}'
    for index = 1, 2 do real:name_server(index):set_route("Orders", route) end
    local client = assert(raw_client.connect(mock:name_server(2).addr))
    finally(function() client:close() end)
    local body = client:request({ code = 105, ext = { topic = "Orders" } }).body
    local own = mock:broker("broker-a").addr
    assert.equal(route:gsub('("0" : ")' .. addr:gsub("%.", "%%."), "%1" .. own), body)
  end)

  it("rewrites what a name server says of the whole cluster", function()
    local addr = real:broker("broker-b").addr
    real:rule { at = "namesrv", code = 106, store = false, answer = { code = 0, body =
      '{"brokerAddrTable":{"broker-b":{"brokerAddrs":{0:"' .. addr .. '",1:"10.1.1.1:1"},'
      .. '"brokerName":"broker-b","cluster":"C"}},"clusterAddrTable":{"C":["broker-b"]}}' } }
    local client = assert(raw_client.connect(mock:name_server(1).addr))
    finally(function() client:close() end)
    local body = client:request({ code = 106 }).body
    assert.equal('{"brokerAddrTable":{"broker-b":{"brokerAddrs":{0:"'
      .. mock:broker("broker-b").addr .. '",1:"' .. mock:broker("broker-b", 1).addr
      .. '"},"brokerName":"broker-b",'
      .. '"cluster":"C"}},"clusterAddrTable":{"C":["broker-b"]}}', body)
    assert.equal("10.1.1.1:1", mock:broker("broker-b", 1).upstream)
  end)

  it("applies rules instead of passing a request on", function()
    new_producer { retries = 1 }
    mock:rule { at = "broker-a", code = "SEND_MESSAGE_V2", answer = { code = "SYSTEM_BUSY" } }
    for _ = 1, 6 do
      assert.equal("broker-b", assert(producer:send { topic = "Orders", body = "x" }).queue.broker)
    end
    local _, err = producer:send({ topic = "Orders", body = "x" }, queue "broker-a")
    assert.equal(2, err.code)
    assert.equal(0, #real:messages("Orders", "broker-a"))
    assert.equal(0, #real:requests { at = "broker-a", code = 310 })
    assert.equal(6, mock:count())
  end)

  it("applies rules to the answers of what it passed on", function()
    new_producer { retries = 0, send_msg_timeout = 20000 }
    assert(producer:send({ topic = "Orders", body = "x" }, queue "broker-a"))
    mock:rule { at = "broker-a", code = 310, times = 1, answer = { code = "FLUSH_DISK_TIMEOUT" } }
    local result = assert(producer:send({ topic = "Orders", body = "x" }, queue "broker-a"))
    assert.equal("FLUSH_DISK_TIMEOUT", result.status)
    assert.equal(1, result.queue_offset)
    mock:rule { code = 310, times = 1, split = 9, delay = 3, duplicate = true }
    assert(producer:send({ topic = "Orders", body = "x" }, queue "broker-a"))
    mock:rule { code = 310, times = 1, cut = 30, close = true }
    local _, err = producer:send({ topic = "Orders", body = "x" }, queue "broker-a")
    assert.equal("closed", err.kind)
    assert.is_true(err.maybe_stored)
    assert.equal(4, real:count())
    assert.equal(4, mock:count())
    assert(producer:send({ topic = "Orders", body = "x" }, queue "broker-a"))
  end)

  it("gives wrong opaques and lengths to real answers", function()
    local client = assert(raw_client.connect(mock:name_server(1).addr))
    finally(function() client:close() end)
    mock:rule { times = 1, wrong_opaque = true }
    local opaque = client:send { code = 105, ext = { topic = "Orders" } }
    assert.equal(0, client:request({ code = 105, ext = { topic = "Orders" } }).code)
    assert.is_nil(client.replies[opaque])
    assert.equal(2, #client.order)
    mock:rule { times = 1, length = "huge", close = true }
    client.raw = true
    client:send { code = 105, ext = { topic = "Orders" } }
    client:wait_end()
    assert.equal("\255\255\255\255", client.bytes:sub(1, 4))
  end)

  it("passes what a broker asks its clients, and their answers", function()
    new_producer()
    assert(producer:send({ topic = "Orders", body = "x" }, queue "broker-a"))
    local answer = assert(real:broker("broker-a"):request { code = 4711, body = "b" })
    assert.same({ 3, " request type 4711 not supported" }, { answer.code, answer.remark })
    local clients = real:clients()["broker-a"]
    assert.equal(1, select("#", next(clients)) - 1)
  end)

  it("passes large frames both ways, and many of them", function()
    local client = assert(raw_client.connect(mock:name_server(1).addr))
    finally(function() client:close() end)
    client:request { code = 105, ext = { topic = "Orders" } }
    local sender = assert(raw_client.connect(mock:broker("broker-a").addr))
    finally(function() sender:close() end)
    local body, last = ("0123456789abcdef"):rep(2 ^ 16), nil -- 1 MiB
    for index = 1, 12 do
      last = sender:send { code = 310, body = body, ext = { a = "g", b = "Orders", c = "TBW102",
        d = "4", e = "0", f = "0", g = "1", h = "0", i = "K\1" .. index .. "\2" } }
    end
    assert.equal(0, sender:reply(last).code)
    assert.equal(12, real:count())
    for _, message in ipairs(real:messages()) do assert.is_true(message.body == body) end
    local big = ("x"):rep(8 * 2 ^ 20)
    for index = 1, 2 do real:name_server(index):set_route("Big", big) end
    assert.is_true(client:request({ code = 105, ext = { topic = "Big" } }).body == big)
  end)

  it("is not read faster than the server behind it reads", function()
    local asker = assert(raw_client.connect(mock:name_server(1).addr))
    asker:request { code = 105, ext = { topic = "Orders" } }
    asker:close()
    local broker = mock:broker "broker-a"
    local client = assert(raw_client.connect(broker.addr))
    finally(function() client:close() end)
    local body, last, most = ("x"):rep(2 ^ 20), nil, 0
    client:request { code = 999 }
    local reading = real:broker("broker-a").server:open_connections()[1]
    reading:hold()
    for _ = 1, 48 do last = client:send { code = 998, body = body } end
    local _, link = next(broker.links)
    local same = 0 -- for so many looks nothing more has been read
    mock:wait(function()
      local unsent = link.upstream:unsent()
      same = unsent > 0 and unsent == most and same + 1 or 0
      most = math.max(most, unsent)
      return same == 20
    end, 20000)
    reading:resume()
    mock:wait(function()
      most = math.max(most, link.upstream:unsent())
      return client.replies[last]
    end, 20000)
    assert.equal(3, client.replies[last].code)
    assert.is_true(most > 2 ^ 20 and most < 4 * 2 ^ 20, most)
  end)

  it("is not read without end while the server behind it is not reached", function()
    local closing = {}
    local function tcp()
      local socket = assert(uv.new_tcp())
      closing[#closing + 1] = socket
      return socket
    end
    finally(function()
      for _, socket in ipairs(closing) do socket:close() end
    end)
    -- One whose queue of connections is full: whoever connects waits.
    local server, may_accept, received = tcp(), false, 0
    assert(server:bind("127.0.0.1", 0))
    local function accept()
      local socket = tcp()
      if not server:accept(socket) then return end
      socket:read_start(function(_, chunk) received = received + #(chunk or "") end)
    end
    assert(server:listen(1, function() if may_accept then accept() end end))
    local port, connected, fillers = server:getsockname().port, 0, 0
    repeat
      fillers = fillers + 1
      tcp():connect("127.0.0.1", port, function() connected = connected + 1 end)
      local looks = 0 -- between which the loop has seen what is connected
      mock:wait(function()
        looks = looks + 1
        return connected == fillers or looks > 200
      end)
    until connected < fillers
    local front = new_mock { proxy = "127.0.0.1:" .. port }
    local client = assert(raw_client.connect(front.namesrv))
    finally(function()
      client:close()
      front:close()
      for _, socket in ipairs(closing) do socket:close() end
    end)
    for _ = 1, 32 do client:send { code = 998, body = ("x"):rep(2 ^ 20) } end
    local same, before = 0, 0 -- for so many looks nothing more has been read
    front:wait(function()
      local count = #front:requests()
      same, before = count > 0 and count == before and same + 1 or 0, count
      return same == 20
    end, 20000)
    assert.is_true(before < 8)
    may_accept = true
    accept()
    assert.is_truthy(front:wait(function() return received > 32 * 2 ^ 20 end, 20000))
  end)

  it("ends a client's connection with the server's, and the other way round", function()
    local client = assert(raw_client.connect(mock:name_server(1).addr))
    client:request { code = 105, ext = { topic = "Orders" } }
    real:name_server(1):disconnect()
    assert.equal("end", client:wait_end())
    client:close()
    client = assert(raw_client.connect(mock:name_server(1).addr))
    client:request { code = 105, ext = { topic = "Orders" } }
    local server = real:name_server(1).server
    assert.equal(1, #server:open_connections())
    client:close()
    assert.is_truthy(real:wait(function() return #server:open_connections() == 0 end))
  end)

  it("ends connections when the server behind it cannot be reached, and notes it", function()
    local told
    mock.world.trouble = function(name, why) told = { name, why } end
    local addr = real:name_server(1).addr
    real:name_server(1):stop()
    local client = assert(raw_client.connect(mock:name_server(1).addr))
    client:send { code = 105, ext = { topic = "Orders" } }
    assert.is_truthy(client:wait_end())
    client:close()
    assert.same({ "namesrv-1", addr .. ": ECONNREFUSED" }, told)
    assert.equal(told[2], mock:bad_input()[1].why)
  end)

  it("says when what is behind it speaks something else", function()
    real:rule { at = "namesrv-1", speak = "http" }
    local client = assert(raw_client.connect(mock:name_server(1).addr))
    client:send { code = 105, ext = { topic = "Orders" } }
    assert.is_truthy(client:wait_end())
    client:close()
    assert.matches("the other side speaks HTTP", mock:bad_input()[1].why)
  end)

  it("follows a broker that moves, and moves itself", function()
    new_producer { poll_name_server_interval = 10 }
    assert(producer:send({ topic = "Orders", body = "x" }, queue "broker-a"))
    local own = mock:broker("broker-a").addr
    real:broker("broker-a"):move()
    assert.is_truthy(mock:wait(function()
      producer:queues "Orders" -- what nobody uses for ten intervals is not asked for any more
      return mock:broker("broker-a").upstream == real:broker("broker-a").addr
    end))
    assert.equal(own, mock:broker("broker-a").addr)
    assert(producer:send({ topic = "Orders", body = "x" }, queue "broker-a"))
    mock:broker("broker-a"):move()
    assert.are_not.equal(own, mock:broker("broker-a").addr)
    assert.is_truthy(mock:wait(function()
      return producer:send({ topic = "Orders", body = "x" }, queue "broker-a")
    end))
  end)

  it("can be down while the broker is not", function()
    new_producer { retries = 2 }
    assert(producer:queues "Orders")
    mock:broker("broker-a"):stop()
    for _ = 1, 4 do
      assert.equal("broker-b", assert(producer:send { topic = "Orders", body = "x" }).queue.broker)
    end
  end)

  it("refuses what the servers behind it decide", function()
    local function refuses(pattern, fn)
      local ok, err = pcall(fn)
      assert.is_false(ok)
      assert.matches(pattern, err)
    end
    refuses("'proxy' excludes 'topics'", function() new_mock { proxy = "a:1", topics = {} } end)
    refuses("'proxy': 'nowhere' is not host:port", function() new_mock { proxy = "nowhere" } end)
    refuses("no route has named a broker yet", function() mock:broker "broker-a" end)
  end)

  -- Names of the functions that `object`'s class has.
  local function methods_of(object)
    local names = {}
    for name, value in pairs(getmetatable(object)) do
      if type(value) == "function" and not name:find "^_" then names[#names + 1] = name end
    end
    return names
  end

  local function set(text)
    local names = {}
    for name in text:gmatch "%S+" do names[name] = true end
    return names
  end

  -- Raises at this file's line, and says what to do.
  local function is_refused(name, fn)
    local ok, why = pcall(fn)
    assert.is_false(ok, name)
    assert.matches("^%S*proxy_spec.lua:%d+: " .. name
      .. ": a proxy neither decides nor knows this, the servers behind it do; %S+", why)
  end

  it("refuses whatever else the mock does, and says what does it there", function()
    local own = set "keep keep_bytes listen proxy seed"
    for _, row in ipairs(require("rocketmq.mock.description").fields) do
      local examples = { boolean = true, table = {}, fraction = 0, times = "1s", string = "x" }
      local example = examples[row.type:match "%w+$"]
      if not own[row.name] then
        assert.error_matches(function()
          new_mock { proxy = "127.0.0.1:1", [row.name] = example == nil and 1 or example }
        end, "^mock: 'proxy' excludes '" .. row.name
          .. "', which the servers behind it decide; %S+")
      end
    end
    new_producer()
    assert(producer:send({ topic = "Orders", body = "x" }, queue "broker-a"))
    own = set("attempts bad_input broker clear close count messages name_server requests rule "
      .. "traces wait")
    for _, name in ipairs(methods_of(mock)) do
      if not own[name] then is_refused(name, function() mock[name](mock, "Orders") end) end
    end
    local inside = set "handle note place store stored_answer"
    local known = set(table.concat(methods_of(mock:broker "broker-a"), " "))
    for _, server in ipairs { real:broker "broker-a", real:name_server() } do
      for _, name in ipairs(methods_of(server)) do
        local proxy = server.group and mock:broker "broker-a" or mock:name_server()
        assert.is_true(known[name] or inside[name] or false, name)
        if known[name] and not set("stop start move disconnect write")[name] then
          is_refused(name, function() proxy[name](proxy, "Orders") end)
        end
      end
    end
    assert.is_function(mock:broker("broker-a").request)
    assert.is_function(mock:name_server().set_route)
    assert(producer:send({ topic = "Orders", body = "x" }, queue "broker-a"))
  end)

  it("refuses places where no server of it can be", function()
    local function refuses(pattern, at)
      assert.error_matches(function() mock:rule { at = at, silent = true } end, pattern)
      assert.error_matches(function() mock:requests { at = at } end,
        (pattern:gsub("^rule", "requests")))
    end
    refuses("rule at: unknown name 'namesrv%-3', did you mean 'namesrv%-%d'%?", "namesrv-3")
    refuses("rule at: unknown name 'namesrvs', did you mean 'namesrv'%?", "namesrvs")
    refuses("rule at: unknown name 'broker#1', did you mean 'broker'%?", "broker#1")
    refuses("rule at: unknown name 'broker%-a#x'", "broker-a#x")
    refuses("rule at: unknown name 'broker%-a#1#2'", "broker-a#1#2")
    for _, at in ipairs { "namesrv", "namesrv-2", "broker", "broker-z", "broker-z#1" } do
      mock:rule({ at = at, silent = true }):remove()
    end
  end)

  it("warns once of a rule for a broker that no route has named", function()
    local ended = child.run { "-e", ([[
      local rocketmq = require "rocketmq"
      local mock = rocketmq.mock { proxy = %q }
      mock:rule { at = "brokr-a", silent = true }
      mock:rule { at = "broker-a#1", silent = true }
      mock:rule { at = "brokr-z", silent = true }:remove()
      local producer = rocketmq.producer { group = "g", namesrv = mock.namesrv }
      assert(producer:send { topic = "Orders", body = "x" })
      assert(producer:send { topic = "Another", body = "x" })
    ]]):format(real.namesrv) }
    assert.equal(0, ended.code, ended.stderr)
    local _, warnings = ended.stderr:gsub("a rule is for", "")
    assert.equal(1, warnings, ended.stderr)
    assert.matches("warn  mock: a rule is for 'brokr%-a', and no route has named such a broker "
      .. "yet; they have named broker%-a, broker%-b\n", ended.stderr)
  end)
end)

describe("the address where the mock listens", function()
  it("is what it was told, and no other program's", function()
    local probe = new_mock()
    local port = probe:name_server().port
    probe:close()
    local mock = new_mock { listen = "127.0.0.1:" .. port }
    assert.equal("127.0.0.1:" .. port, mock.namesrv)
    for _, host in ipairs { "127.0.0.1", "0.0.0.0" } do
      for _, proxy in ipairs { false, "127.0.0.1:1" } do
        assert.error_matches(function()
          new_mock { listen = host .. ":" .. port, proxy = proxy or nil }
        end, ("mock: cannot listen on %s:%d: EADDRINUSE: address already in use; end the program, "
          .. "or .*, or listen on another port %%(0 is any%%)$"):format(host, port))
      end
    end
    mock:close()
    assert.error_matches(function() new_mock { listen = "192.0.2.1:" .. port } end,
      ("mock: cannot listen on 192.0.2.1:%d: EADDRNOTAVAIL: .*; this machine has no such address: "
        .. "0.0.0.0 is all that it has"):format(port))
    for _, given in ipairs { "localhost:1", "127.0.0.1", "127.0.0.1:70000" } do
      assert.error_matches(function() new_mock { listen = given } end, "'listen' must be an IPv4")
    end
  end)

  it("is told to clients as the one that they came to when it is every one", function()
    local mock = new_mock { listen = "0.0.0.0:0", topics = { Orders = 1 } }
    finally(function() mock:close() end)
    for _, ip in ipairs { "127.0.0.1", "127.0.0.2" } do
      local client = assert(raw_client.connect(ip .. ":" .. mock:name_server().port))
      local body = client:request({ code = 105, version = 401, ext = { topic = "Orders" } }).body
      assert.equal(("%s:%d"):format(ip, mock:broker("broker-a").port),
        wire.decode_route(body).brokers[1].addrs[0])
      client:close()
    end
    assert.is_truthy(uv.loop_alive())
  end)
end)
