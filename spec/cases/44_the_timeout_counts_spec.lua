--- The timeout of a send was an option that had no effect: 3 s were fixed in the code.
local cluster = require "spec.support.cluster"
local wait = require "rocketmq.mock.wait"

local SEND = "SEND_MESSAGE_V2"

describe("the timeout", function()
  local c
  before_each(function()
    c = cluster.new({ brokers = 1, topics = { Orders = 2 } })
    assert(c.producer:send { topic = "Orders", body = "x" })
    c.mock:rule { code = SEND, delay = 200 }
  end)
  after_each(function() c:finish() end)

  local message = { topic = "Orders", body = "x" }

  -- Exact times are looked at on a clock of the tests' own; here it must be neither early nor the
  -- answer's 200 ms, let alone a fixed 3 s.
  local function check(err, ms)
    assert.equal("timeout", err.kind)
    assert.is_true(err.elapsed_ms >= ms, err.elapsed_ms)
  end

  for _, ms in ipairs { 1, 50 } do
    it("of " .. ms .. " ms counts for one call, in every mode that waits", function()
      local result, err = c.producer:send(message, { timeout = ms })
      assert.is_nil(result)
      check(err, ms)
      local why
      assert(c.producer:send_async(message, { timeout = ms }, function(_, e) why = e end))
      assert(wait(function() return why end, 5000))
      check(why, ms)
    end)

    it("of " .. ms .. " ms counts for a producer, under each of its names", function()
      for _, name in ipairs { "timeout", "send_msg_timeout", "sendMsgTimeout" } do
        local producer = c:add_producer { [name] = ms }
        -- The route's lookup counts, too, and making the connection, in which a busy machine may use it
        -- all up.
        local result, err = producer:send(message)
        assert.is_nil(result)
        assert.is_true(err.kind == "timeout" or err.kind == "connect", err.kind)
        assert.is_true(err.elapsed_ms >= ms, err.elapsed_ms)
      end
    end)
  end

  it("of a call goes before the producer's, in both directions", function()
    local producer = c:add_producer { timeout = 20 }
    assert.equal("SEND_OK", assert(producer:send(message, { timeout = 5000 })).status)
    producer = c:add_producer { timeout = 5000 }
    assert.is_nil((producer:send(message, { timeout = 20 })))
  end)

  it("is refused when it is none", function()
    for _, wrong in ipairs { 0, -1, 0 / 0, math.huge } do
      local ok, err = c.producer:send_async(message, { timeout = wrong })
      assert.is_nil(ok)
      assert.matches("option timeout is", err.message)
    end
  end)
end)
