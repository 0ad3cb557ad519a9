-- Selectors against the real thing: Java's own class for the hash, an order that survives a broker's restart,
-- and brokers that are named after rooms.

local bit = require "bit"
local child = require "spec.support.child"
local cjson = require "cjson"
local ffi = require "ffi"
local rocketmq = require "rocketmq"
local support = require "spec.real.support"
local wait = require "rocketmq.mock.wait"

local selector = rocketmq.selector
local server = support.servers()[1]
-- JVMs on a machine that may be busy with much else; these are no tests of deadlines.
local PATIENCE_MS = 60000

local function hex(text)
  return (text:gsub(".", function(byte) return ("%02x"):format(byte:byte()) end))
end

--- A code point of three or four bytes, or an ASCII character.
local function utf8(point)
  local function tail(shift) return 0x80 + bit.band(bit.rshift(point, shift), 0x3f) end
  if point < 0x80 then return string.char(point) end
  if point < 0x10000 then
    return string.char(0xe0 + bit.rshift(point, 12), tail(6), tail(0))
  end
  return string.char(0xf0 + bit.rshift(point, 18), tail(12), tail(6), tail(0))
end

describe("the selector hash", function()
  local COUNTS = { 1, 3, 8, 17 }

  -- 10,000 keys of all kinds: the value here, and the line that tells Java.
  local function make_keys()
    local random = math.random
    local keys = {}
    local function add(value, kind, text) keys[#keys + 1] = { value, kind .. " " .. text } end
    local function add_text(text) add(text, "S", hex(text)) end
    local function points(n, first, last)
      local parts = {}
      for i = 1, n do parts[i] = utf8(random(first, last)) end
      return table.concat(parts)
    end
    for i = 1, 2000 do add_text(("order-%d-%x"):format(i, random(0, 0x7fffffff))) end
    for _ = 1, 1500 do add_text(points(random(1, 12), 0x4e00, 0x9fff)) end
    for _ = 1, 1000 do add_text(points(random(1, 5), 0x1f300, 0x1faff) .. points(2, 0x20, 0x7e)) end
    for _ = 1, 500 do
      local bytes = {}
      for i = 1, random(1, 10) do bytes[i] = string.char(random(0, 255)) end
      add_text(table.concat(bytes))
    end
    for _, text in ipairs { "", "polygenelubricants", "GydZG_", "DESIGNING WORKHOUSES", "\0" } do
      add_text(text)
    end
    for _ = 1, 1500 do
      local n = random(-2 ^ 31, 2 ^ 31 - 1)
      add(n, "I", ("%d"):format(n))
    end
    for _ = 1, 1500 do
      local n = (random(0, 1) * 2 - 1) * (random(2 ^ 21) * 2 ^ 32 - random(0, 2 ^ 31 - 1) - 1)
      if math.abs(n) < 2 ^ 53 and (n > 2 ^ 31 - 1 or n < -2 ^ 31) then
        add(n, "L", ("%.0f"):format(n))
      end
    end
    local int64 = ffi.typeof "int64_t"
    while #keys < 9998 do
      local n = int64(random(-2 ^ 31, 2 ^ 31 - 1)) * int64(2 ^ random(0, 32)) + int64(random(0, 9))
      add(n, "L", (tostring(n):gsub("LL$", "")))
    end
    add(true, "B", "true")
    add(false, "B", "false")
    return keys
  end

  it("picks the queue that Java's SelectMessageQueueByHash picks, for 10,000 keys", function()
    local keys = make_keys()
    assert.equal(10000, #keys)
    local path = os.tmpname()
    finally(function() os.remove(path) end)
    local file = assert(io.open(path, "w"))
    for _, key in ipairs(keys) do file:write(key[2], "\n") end
    file:close()
    local lists = {}
    for i, count in ipairs(COUNTS) do
      lists[i] = {}
      for id = 1, count do lists[i][id] = { broker = "broker", id = id - 1 } end
    end
    local n = 0
    support.java("HashQueues", { path, unpack(COUNTS) }, function(line)
      n = n + 1
      local at = 0
      for id in line:gmatch "%d+" do
        at = at + 1
        local own = selector.hash(lists[at], nil, keys[n][1]) - 1
        if own ~= tonumber(id) then
          error(("key %s: queue %d of %d, in Java %s"):format(keys[n][2], own, COUNTS[at], id))
        end
      end
      assert(at == #COUNTS)
    end)
    assert.equal(10000, n)
  end)
end)

describe("orders by hash", function()
  local ORDERS, STEPS = 40, 600

  -- What Drain read of each order: its steps in the order of their offsets.
  local function read_orders(topic)
    local orders, n = {}, 0
    support.java("Drain", { server.namesrv, topic }, function(line)
      local message = cjson.decode(line)
      local order, step = support.base64_decode(message.body):match "^(%S+) step (%d+)$"
      local read = orders[order] or { steps = {} }
      orders[order] = read
      read.queue = read.queue or message.broker .. message.queueId
      -- Drain reads queue after queue, each by its offsets.
      assert(read.queue == message.broker .. message.queueId, order .. " is in two queues")
      read.steps[#read.steps + 1] = tonumber(step)
      n = n + 1
    end, { expect = ORDERS * STEPS })
    return orders, n
  end

  it("keep their order in one queue while a broker is killed and comes back", function()
    local running = child.start { "--namesrv=" .. server.namesrv, "examples/orders_by_hash.lua",
      ORDERS, STEPS }
    local producer = rocketmq.producer { group = "watch", namesrv = server.namesrv,
      auto_create_topic = false }
    local function stored(broker)
      local sum = 0
      for id = 0, 3 do
        local offset = producer:max_offset { topic = "OrderSteps", broker = broker, id = id }
        sum = sum + (offset or 0)
      end
      return sum
    end
    assert(wait(function() return stored "broker-b" > 1000 end, PATIENCE_MS))
    support.cluster("kill", "5.4.0/broker-b")
    assert.is_nil(running.code, running.stderr)
    support.cluster("start", "5.4.0/broker-b")
    local ended = running:wait(3 * PATIENCE_MS)
    producer:shutdown()
    assert.equal(0, ended.code, ended.stderr)
    local again = tonumber(ended.stdout:match "(%d+) steps were tried again")
    assert.is_true(again > 0, ended.stdout)
    local orders, n = read_orders "OrderSteps"
    local n_orders = 0
    for order, read in pairs(orders) do
      n_orders = n_orders + 1
      -- A step may be there twice in a row, when its first answer was lost. Nothing else.
      local last = 0
      for _, step in ipairs(read.steps) do
        assert(step == last or step == last + 1, ("%s: step %d follows step %d"):format(order, step,
          last))
        last = step
      end
      assert.equal(STEPS, last)
    end
    assert.equal(ORDERS, n_orders)
    print(("%d steps of %d orders in order; %d were tried again, %d stored twice"):format(
      ORDERS * STEPS, ORDERS, again, n - ORDERS * STEPS))
  end)
end)

describe("machine rooms", function()
  local HZ, SH = "hz@broker-c", "sh@broker-d"
  local running, producer = {}, nil
  setup(function()
    support.cluster("add", "5.4.0/" .. HZ, "5.4.0/" .. SH)
    running[HZ], running[SH] = true, true
    producer = rocketmq.producer { group = "rooms", namesrv = server.namesrv, timeout = 20000,
      poll_name_server_interval = 200 }
    assert(producer:create_topic { topic = "Rooms", queues = 2, brokers = { HZ, SH } })
  end)
  teardown(function()
    producer:shutdown()
    for broker in pairs(running) do support.cluster("kill", "5.4.0/" .. broker) end
  end)

  it("get what is meant for them, and are missed when they are gone", function()
    local sent = {}
    local function send(near, body)
      local result, err = producer:send({ topic = "Rooms", body = body }, { selector = near })
      if result then sent[body] = tostring(result.queue) end
      return result, err
    end
    local near = selector.machine_room { rooms = { "hz" } }
    for i = 1, 20 do assert(send(near, "hz " .. i)) end
    near:set_rooms { "sh" }
    for i = 1, 20 do assert(send(near, "sh " .. i)) end
    local counts = {}
    support.java("Drain", { server.namesrv, "Rooms" }, function(line)
      local message = cjson.decode(line)
      local body = support.base64_decode(message.body)
      local queue = ("Rooms@%s#%d"):format(message.broker, message.queueId)
      assert(sent[body] == queue)
      assert(message.broker:match "^(..)@" == body:match "^(..) ")
      counts[queue] = (counts[queue] or 0) + 1
    end, { expect = 40 })
    -- In turn.
    assert.same({ ["Rooms@" .. HZ .. "#0"] = 10, ["Rooms@" .. HZ .. "#1"] = 10,
      ["Rooms@" .. SH .. "#0"] = 10, ["Rooms@" .. SH .. "#1"] = 10 }, counts)

    support.cluster("kill", "5.4.0/" .. HZ)
    running[HZ] = nil
    assert(wait(function() return #assert(producer:queues "Rooms") == 2 end, PATIENCE_MS))
    near:set_rooms { "hz" }
    local _, err = send(near, "lost")
    assert.equal("selector", err.kind)
    assert.matches("no queue is in the rooms %(hz%); the brokers, named room@broker, are "
      .. "sh@broker%-d", err.message)
    local second = selector.fallback(selector.machine_room { rooms = { "hz" }, otherwise = "none" },
      "best")
    assert.equal(SH, assert(send(second, "kept")).queue.broker)
  end)
end)
