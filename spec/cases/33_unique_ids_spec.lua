--- Messages got the same id: containers that all have pid 1 and the address 127.0.0.1, a counter
--- that went round, a clock that stepped back, a pid over 65535.
local child = require "spec.support.child"
local cluster = require "spec.support.cluster"
local wire = require "rocketmq.wire"

local LOCALHOST = "\127\0\0\1"
local NOW = 1700000000123

local SENDER = [[
local rocketmq = require "rocketmq"
local producer = rocketmq.producer { group = "ids", namesrv = arg[1] }
for _ = 1, tonumber(arg[2]) do
  print(assert(producer:send { topic = "Ids", body = "x" }).msg_id)
end
producer:shutdown()
]]

-- Adds ids to a set; an id that is there already is an error.
local function add(set, id)
  if set[id] then error(id .. " was given twice") end
  set[id] = true
end

describe("unique ids", function()
  it("are unique when the counter goes round within a millisecond", function()
    local maker, seen = wire.id_maker { ip = LOCALHOST, pid = 1, tag = 7 }, {}
    for _ = 1, 200000 do add(seen, maker:next(NOW)) end
  end)

  it("are unique when the clock steps back, stands and jumps over the month's end", function()
    local maker, seen = wire.id_maker { ip = LOCALHOST, pid = 1, tag = 7 }, {}
    local day = 24 * 3600 * 1000
    for _, time in ipairs { NOW, NOW - 5000, NOW, NOW + 40 * day, NOW, NOW - 40 * day, NOW,
      NOW + 31 * day, NOW + 31 * day } do
      for _ = 1, 70000 do add(seen, maker:next(time)) end
    end
  end)

  it("are unique when a month has the same times as the one before", function()
    local maker, seen = wire.id_maker { ip = LOCALHOST, pid = 1, tag = 7 }, {}
    for month = 1, 14 do
      local noon = os.time { year = 2023, month = month, day = 14, hour = 12 } * 1000
      for _ = 1, 70000 do add(seen, maker:next(noon)) end
    end
  end)

  it("are unique in two processes with one pid and one address", function()
    local seen = {}
    for tag = 1, 4 do
      local maker = wire.id_maker { ip = LOCALHOST, pid = 1, tag = tag }
      for step = 1, 20000 do add(seen, maker:next(NOW + math.floor(step / 1000))) end
    end
  end)

  it("have Java's layout, whatever the pid", function()
    for pid, shown in pairs { [1] = "0001", [65535] = "FFFF", [65536] = "0000",
      [4194303] = "FFFF" } do
      local id = wire.id_maker({ ip = LOCALHOST, pid = pid, tag = 0x12345678 }):next(NOW)
      assert.equal("7F000001" .. shown .. "12345678", id:sub(1, 20))
      assert.matches("^%x+$", id)
      assert.equal(32, #id)
    end
    assert.equal(56, #wire.id_maker({ ip = ("\0"):rep(15) .. "\1", pid = 1, tag = 1 }):next(NOW))
  end)

  it("are unique over processes and producers that send at one time", function()
    local c = cluster.new { topics = { Ids = 4 } }
    finally(function() c:finish() end)
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(SENDER)
    file:close()
    finally(function() os.remove(path) end)
    local children = {}
    for index = 1, 3 do children[index] = child.start { path, c.mock.namesrv, "200" } end
    local seen, other = {}, c:add_producer()
    for _ = 1, 200 do
      add(seen, assert(c.producer:send { topic = "Ids", body = "x" }).msg_id)
      add(seen, assert(other:send { topic = "Ids", body = "x" }).msg_id)
    end
    for _, started in ipairs(children) do
      local ended = started:wait()
      assert.equal("", ended.stderr)
      assert.equal(0, ended.code)
      for id in ended.stdout:gmatch("%S+") do add(seen, id) end
    end
    local count = 0
    for _, message in ipairs(c.mock:messages("Ids")) do
      assert.is_true(seen[message.msg_id])
      count = count + 1
    end
    assert.equal(1000, count)
  end)

  it("stay the same over the attempts of one send", function()
    local c = cluster.new { brokers = 2, topics = { Ids = 1 } }
    finally(function() c:finish() end)
    c.mock:rule { code = "SEND_MESSAGE_V2", times = 1, answer = { code = 1 }, store = true }
    local result = assert(c.producer:send { topic = "Ids", body = "x" })
    assert.equal(2, result.attempts)
    local messages = c.mock:messages("Ids")
    assert.same({ result.msg_id, result.msg_id }, { messages[1].msg_id, messages[2].msg_id })
  end)
end)
