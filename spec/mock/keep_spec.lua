-- What a mock keeps in memory is bounded, in number and in bytes.
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"

describe("a mock", function()
  local c

  after_each(function() c:finish() end)

  local function start(description)
    description.topics = { Orders = 1 }
    c = cluster.new(description, { compress_msg_body_over_howmuch = 1000000 })
  end

  local function send(number, size)
    assert(c.producer:send { topic = "Orders", body = number .. ("x"):rep(size or 0) })
  end

  -- The numbers of the messages that `list` has.
  local function numbers(list)
    local found = {}
    for index, message in ipairs(list) do found[index] = tonumber(message.body:match "^%d+") end
    return found
  end

  it("keeps about so many bytes, the newest, and one message at least", function()
    start { keep_bytes = 100000 }
    for number = 1, 10 do send(number, 30000) end
    assert.same({ 8, 9, 10 }, numbers(c.mock:messages()))
    assert.same({ 8, 9, 10 }, numbers(c.mock:attempts()))
    assert.equal(10, c.mock:count())
    send(11, 200000)
    assert.same({ 11 }, numbers(c.mock:messages()))
    assert.equal(1, #c.mock:requests { code = 310 })
    for number = 12, 14 do send(number) end
    assert.same({ 12, 13, 14 }, numbers(c.mock:messages()))
  end)

  it("counts what a batch brings once", function()
    start { keep_bytes = 100000 }
    local batch = {}
    for number = 1, 20 do batch[number] = { topic = "Orders", body = number .. ("x"):rep(3000) } end
    assert(c.producer:send_batch(batch))
    assert.equal(20, #c.mock:messages())
  end)

  it("keeps so many", function()
    start { keep = 3 }
    for number = 1, 10 do send(number) end
    assert.same({ 8, 9, 10 }, numbers(c.mock:messages()))
    assert.equal(3, #c.mock:requests())
    c:finish()
    start { keep = 0 }
    send(1)
    assert.same({ {}, {} }, { c.mock:messages(), c.mock:requests() })
    assert.equal(1, c.mock:count())
  end)

  it("does not keep what has become of transactions, only that it has", function()
    start {}
    local paying = rocketmq.transaction_producer { group = "pay", namesrv = c.mock.namesrv,
      check = function() return "commit" end }
    finally(function() paying:shutdown() end)
    for _, state in ipairs { "commit", "rollback" } do
      assert(paying:send_in_transaction({ topic = "Orders", body = "x" },
        function() return state end))
    end
    assert(c.mock:wait(function() return #c.mock:transactions { state = "rolled back" } == 1 end))
    for _, one in ipairs(c.mock.world.transactions) do assert.is_nil(one.sent) end
    assert.same({ "Orders", "Orders" },
      { c.mock:transactions()[1].topic, c.mock:transactions()[2].topic })
  end)
end)
