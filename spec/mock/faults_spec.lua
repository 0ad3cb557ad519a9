local new_mock = require "rocketmq.mock"
local raw_client = require "spec.support.raw_client"
local rocketmq = require "rocketmq"
local wire = require "rocketmq.wire"
local uv = require "luv"

local function send_request(body)
  return { code = 310, body = body or "x", ext = { a = "g", b = "Orders", c = "TBW102", d = "4",
    e = "0", f = "0", g = "1", h = "0", i = "UNIQ_KEY\1A\2" } }
end

-- One producer's, as a new connection of it is made.
local function collector(addr)
  local client = assert(raw_client.connect(addr))
  client.raw = true
  return client
end

describe("a fault of the mock", function()
  local mock, client

  before_each(function()
    mock = new_mock { topics = { Orders = 4 } }
    client = assert(raw_client.connect(mock:broker("broker-a").addr))
  end)

  after_each(function()
    client:close()
    mock:close()
  end)

  -- What the client gets for one request whose answer the rule changes.
  local function bytes_of(rule)
    client.raw = true
    mock:rule(rule)
    client:send(send_request())
    client:wait_end()
    return client.bytes
  end

  it("cuts an answer after any number of bytes, before it closes", function()
    local whole = bytes_of { times = 1, cut = 100000, close = true }
    assert.equal(#whole, wire.decode(whole).size)
    for _, count in ipairs { 0, 1, 4, 9, #whole - 1 } do
      client:close()
      client = assert(raw_client.connect(mock:broker("broker-a").addr))
      local cut = bytes_of { times = 1, cut = count, close = true }
      assert.equal(count, #cut)
    end
    assert.equal(6, mock:count())
  end)

  it("comes no earlier than it is told, whatever the mock did in the same turn", function()
    local began, acted
    mock:rule { code = 34, raw = function()
      local ends = uv.hrtime() + 30e6
      repeat began = uv.hrtime() until began >= ends
      return ""
    end }
    mock:rule { code = 310, delay = 20, raw = function()
      acted = uv.hrtime()
      return ""
    end }
    local heartbeat = client:encode { code = 34, body = "{}" }
    client:write(heartbeat .. (client:encode(send_request())))
    assert(mock:wait(function() return acted end))
    assert.is_true(acted - began >= 20e6)
  end)

  it("cuts an answer and leaves it at that", function()
    mock:rule { times = 1, cut = 10 }
    client.raw = true
    client:send(send_request())
    mock:wait(function() return #client.bytes > 0 end)
    client:send { code = 34, body = "{}" }
    mock:wait(function() return #client.bytes > 10 end)
    assert.is_nil(client.ended)
    assert.equal("{", client.bytes:sub(9, 9))
    assert.equal("\0\0", client.bytes:sub(11, 12))
  end)

  it("splits an answer into as many reads as parts", function()
    for _, parts in ipairs { 2, 7, 1000 } do
      local other = assert(raw_client.connect(mock:broker("broker-a").addr))
      local rule = mock:rule { times = 1, split = parts }
      local reads = {}
      other.socket:read_start(function(_, chunk)
        if chunk then reads[#reads + 1] = chunk end
      end)
      other:send(send_request())
      local whole
      mock:wait(function()
        whole = table.concat(reads)
        return wire.decode(whole)
      end)
      assert.equal(#whole, wire.decode(whole).size)
      assert.equal(math.min(parts, #whole), #reads)
      assert.equal(1, rule.acted)
      other:close()
    end
  end)

  it("keeps answers in order behind one that comes in parts", function()
    mock:rule { times = 1, split = 5, pause = 2 }
    local first, second = client:send(send_request()), client:send(send_request())
    assert.equal(0, client:reply(second).code)
    assert.same({ first, second }, client.order)
  end)

  it("ends in the midst of the parts when the connection does", function()
    mock:rule { times = 1, split = 50 }
    client.raw = true
    client:send(send_request())
    mock:wait(function() return #client.bytes > 3 end)
    mock:broker("broker-a"):disconnect()
    assert.equal("end", client:wait_end())
    assert.is_true(#client.bytes < 50)
  end)

  it("duplicates an answer", function()
    mock:rule { times = 1, duplicate = true }
    mock:rule { times = 1, duplicate = 3 }
    local first, second = client:send(send_request()), client:send(send_request())
    mock:wait(function() return #client.order == 6 end)
    assert.same({ first, first, second, second, second, second }, client.order)
    assert.equal(2, mock:count())
  end)

  it("answers what was not asked", function()
    mock:rule { times = 1, wrong_opaque = true }
    local opaque = client:send(send_request())
    mock:wait(function() return #client.order == 1 end)
    assert.is_nil(client.replies[opaque])
    assert.equal(0, client.replies[client.order[1]].code)
  end)

  it("lies about a frame's length", function()
    local bytes = bytes_of { length = "huge", close = true }
    assert.equal("\255\255\255\255", bytes:sub(1, 4))
    client:close()
    mock.world.rules[1]:remove()
    client = assert(raw_client.connect(mock:broker("broker-a").addr))
    assert.equal("\0\1\0\2", bytes_of({ length = 65538, cut = 4, close = true }))
  end)

  it("makes garbage that a seed repeats", function()
    local seen = {}
    for round = 1, 3 do
      local other = new_mock { seed = round == 3 and 2 or 1, topics = { Orders = 4 } }
      other:rule { garbage = 1000, close = true }
      local peer = collector(other:broker("broker-a").addr)
      peer:send(send_request())
      peer:wait_end()
      seen[round] = peer.bytes
      peer:close()
      other:close()
    end
    assert.equal(1000, #seen[1])
    assert.is_true(seen[1] == seen[2])
    assert.is_false(seen[1] == seen[3])
  end)

  it("acts by chance, as the seed says, whatever other rules are asked", function()
    local function acted(seed, with_other)
      local other = new_mock { seed = seed, topics = { Orders = 4 } }
      local rule = other:rule { code = 310, probability = 0.3, answer = { code = 2 } }
      if with_other then other:rule { code = 34, probability = 0.5, answer = { code = 1 } } end
      local peer = assert(raw_client.connect(other:broker("broker-a").addr))
      local codes = {}
      for index = 1, 200 do
        codes[index] = peer:request(send_request()).code
        if with_other then peer:request { code = 34, body = "{}" } end
      end
      peer:close()
      other:close()
      return table.concat(codes), rule.acted, rule.seen
    end
    local first, count, seen = acted(7)
    assert.equal(200, seen)
    assert.is_true(count > 30 and count < 90, count)
    assert.equal(first, (acted(7, true)))
    assert.are_not.equal(first, (acted(8)))
  end)

  it("tells a client to go away, and stores nothing", function()
    mock:rule { times = 1, go_away = true }
    assert.equal(1500, client:request(send_request()).code)
    assert.equal(0, client:request(send_request()).code)
    assert.equal(1, mock:count())
  end)

  it("closes one direction and still reads the other", function()
    mock:rule { times = 1, half_close = true }
    client:send(send_request())
    assert.equal("end", client:wait_end())
    client:send(send_request("again"))
    assert.equal(1, mock:wait(1))
    assert.equal("again", mock:messages()[1].body)
  end)

  it("speaks other protocols, and closes", function()
    local begins = { http = "HTTP/1.1 400", http2 = "\0\0\0\4\0",
      ["http2-preface"] = "PRI * HTTP/2", tls = "\21\3\3", ["tls-handshake"] = "\22\3\1" }
    for language, start in pairs(begins) do
      local rule = mock:rule { speak = language }
      local peer = collector(mock:broker("broker-a").addr)
      peer:send(send_request())
      assert.equal("end", peer:wait_end())
      assert.equal(start, peer.bytes:sub(1, #start))
      peer:close()
      rule:remove()
    end
    assert.equal(0, mock:count())
  end)

  it("acts on connections before anything was asked", function()
    mock:rule { on = "connect", at = "broker-a", speak = "http2" }
    local greeted = collector(mock:broker("broker-a").addr)
    assert.equal("end", greeted:wait_end())
    assert.equal("\0\0\0\4", greeted.bytes:sub(1, 4))
    greeted:close()
    assert.equal(0, client:request(send_request()).code) -- connected before the rule
  end)

  it("resets connections as they are made", function()
    local rule = mock:rule { on = "connect", times = 1, reset = true }
    -- Whether the client hears of its connection first is chance.
    local turned_away, why = raw_client.connect(mock:broker("broker-a").addr)
    if turned_away then
      why = turned_away:wait_end()
      turned_away:close()
    end
    assert.equal("ECONNRESET", why)
    assert.equal(1, rule.acted)
  end)

  it("ends a connection while a request is being read", function()
    local rule = mock:rule { after_read = 200000, code = 310, topic = "Orders", close = true }
    assert.equal(0, client:request(send_request()).code) -- never gets so far
    assert.equal(0, rule.seen)
    local bytes = client:encode(send_request(("x"):rep(300000)))
    client:write(bytes:sub(1, 150000))
    rocketmq.sleep(5)
    assert.is_nil(client.ended)
    client:write(bytes:sub(150001, 250000))
    assert.is_truthy(client:wait_end())
    assert.same({ 1, 1 }, { rule.seen, rule.acted })
    assert.equal(1, #mock:requests())
  end)

  it("ends a connection for a request that comes at once, whatever it is", function()
    mock:rule { after_read = 20, nth = 2, reset = true }
    assert.equal(0, client:request(send_request()).code)
    client:send { code = 34, body = "{}" }
    assert.equal("ECONNRESET", client:wait_end())
    assert.equal(1, #mock:requests())
  end)

  it("reads nothing for a time", function()
    mock:rule { times = 1, deaf = 60 }
    local started = uv.hrtime()
    for _ = 1, 2 do assert.equal(0, client:request(send_request()).code) end
    assert.is_true(uv.hrtime() - started >= 60e6)
    mock:rule { times = 1, deaf = 10000 }
    client:request(send_request())
    client:close()
  end)

  it("does several things at once", function()
    local bytes = bytes_of { answer = { code = 1, remark = "no" }, duplicate = true, split = 3,
      delay = 2, half_close = true }
    local first = wire.decode(bytes)
    local second = wire.decode(bytes, first.size + 1)
    assert.same({ 1, "no", 1 }, { first.code, first.remark, second.code })
  end)
end)
