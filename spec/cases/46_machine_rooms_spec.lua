--- Machine-room selectors chose nothing at all (Java: "select message queue return null") or always the room's
--- first queue (Rust).
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"

describe("a machine-room selector", function()
  local c
  before_each(function()
    c = cluster.new { brokers = { "hz@broker-a", "sh@broker-b" }, topics = { Orders = 4 } }
  end)
  after_each(function() c:finish() end)

  local function send(near)
    return c.producer:send({ topic = "Orders", body = "x" }, { selector = near })
  end

  local function count(near, times)
    local seen = {}
    for _ = 1, times do
      local text = tostring(assert(send(near)).queue)
      seen[text] = (seen[text] or 0) + 1
    end
    return seen
  end

  it("takes the room's queues in turn", function()
    local near = rocketmq.selector.machine_room { rooms = { "hz" } }
    assert.same({ ["Orders@hz@broker-a#0"] = 3, ["Orders@hz@broker-a#1"] = 3,
      ["Orders@hz@broker-a#2"] = 3, ["Orders@hz@broker-a#3"] = 3 }, count(near, 12))
    near:set_rooms { "sh" }
    for text in pairs(count(near, 8)) do assert.matches("sh@broker%-b", text) end
  end)

  for rooms, list in pairs { ["other rooms"] = { "bj", "gz" }, ["no rooms"] = {} } do
    it("with " .. rooms .. " fails the message, naming rooms and brokers", function()
      local result, err = send(rocketmq.selector.machine_room { rooms = list })
      assert.is_nil(result)
      assert.equal("selector", err.kind)
      assert.matches("no queue is in the rooms %(" .. (list[1] and "bj, gz" or "none")
        .. "%); the brokers, named room@broker, are hz@broker%-a, sh@broker%-b", err.message)
      assert.equal(0, c.mock:count())
      assert(c.producer:send { topic = "Orders", body = "x" })
    end)

    it("with " .. rooms .. " takes all queues in turn when it is told to", function()
      local near = rocketmq.selector.machine_room { rooms = list, otherwise = "all" }
      local n = 0
      for _, times in pairs(count(near, 16)) do
        n = n + 1
        assert.equal(2, times)
      end
      assert.equal(8, n)
    end)

    it("with " .. rooms .. " may leave the choice to another", function()
      local near = rocketmq.selector.machine_room { rooms = list, otherwise = "none" }
      assert(send(rocketmq.selector.fallback(near, "best")))
      local _, err = send(near)
      assert.matches("the selector returned nil", err.message)
    end)
  end

  it("sees the brokers that the route names now", function()
    local near = rocketmq.selector.machine_room { rooms = { "bj" }, otherwise = "all" }
    assert.equal(8, #assert(c.producer:queues "Orders"))
    assert(send(near))
    c:finish()
    c = cluster.new({ brokers = { "hz@broker-a", "bj@broker-c" }, topics = { Orders = 2 } })
    for text in pairs(count(near, 4)) do assert.matches("bj@broker%-c", text) end
  end)
end)
