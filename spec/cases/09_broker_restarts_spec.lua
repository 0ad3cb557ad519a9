--- After a broker's restart its dead connection stayed in use, and sends crashed or failed until the
--- next refresh of the route.
local cluster = require "spec.support.cluster"
local wait = require "rocketmq.mock.wait"

describe("a broker that is gone and comes back", function()
  local c
  before_each(function()
    c = cluster.new({ brokers = 1, topics = { Orders = 4 } },
      { send_msg_timeout = 300, poll_name_server_interval = 3600000 })
  end)
  after_each(function() c:finish() end)

  local message = { topic = "Orders", body = "x" }

  it("gets its sends again, and in between errors name it", function()
    for _ = 1, 3 do assert(c.producer:send(message)) end
    local broker = c.mock:broker "broker-a"
    local addr = broker.addr
    broker:stop()
    local errs, others = {}, 0
    for _ = 1, 50 do
      local ok, err = c.producer:send_async(message, function(_, why)
        if why then errs[#errs + 1] = why else others = others + 1 end
      end)
      if not ok then errs[#errs + 1] = err end
    end
    assert(wait(function() return #errs + others == 50 end, 10000))
    assert.equal(0, others)
    local named = 0
    for _, err in ipairs(errs) do
      assert.is_truthy(err.kind)
      if err.broker == "broker-a" and err.addr == addr then named = named + 1 end
    end
    assert.is_true(named > 0, tostring(errs[1]))
    broker:start()
    assert(wait(function() return (c.producer:send(message)) end, 20000))
    for _ = 1, 5 do assert(c.producer:send(message)) end
  end)

  it("has the route asked for at once, not at the next poll", function()
    assert(c.producer:send(message))
    local function asked() return #c.mock:requests { code = "GET_ROUTEINFO_BY_TOPIC" } end
    local before = asked()
    c.mock:broker("broker-a"):stop()
    c.producer:send(message)
    assert(c.mock:wait(function() return asked() > before end))
    c.mock:broker("broker-a"):start()
  end)
end)
