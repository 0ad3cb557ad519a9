--- Clients avoided a broker for ever, chose one that was read-only, or asked the one again that had
--- just failed. How long a broker is avoided, to the millisecond, is in the unit tests, where time
--- is not real.
local cluster = require "spec.support.cluster"

describe("brokers that are slow or have failed", function()
  local c

  after_each(function() c:finish() end)

  local function send(options)
    return assert(c.producer:send({ topic = "Orders", body = "x" }, options))
  end

  local function fault(broker)
    for _, entry in ipairs(c.producer:faults()) do
      if entry.broker == broker then return entry end
    end
  end

  -- Sends until a broker has been asked once more, and failed.
  local function fail_at(broker)
    local rule = c.mock:rule { at = broker, code = "SEND_MESSAGE_V2", times = 1,
      answer = { code = "SYSTEM_BUSY" } }
    while rule.acted == 0 do
      assert.are_not.equal(broker, send().queue.broker)
    end
    rule:remove()
  end

  for _, strategy in ipairs { true, "5.x" } do
    -- No answer of the mock is so slow as to make a broker avoided by itself.
    local settings = { latency_fault = strategy, latency_max = { 5000 },
      not_available_duration = { 60000 } }
    local soon_over = { latency_fault = strategy, latency_max = { 5000 },
      not_available_duration = { 20 } }
    local title = ("with latency_fault = %s "):format(tostring(strategy))

    it(title .. "are shown, and used again when their time is over", function()
      c = cluster.new({ brokers = 2, topics = { Orders = 1 } }, soon_over)
      assert.same({}, c.producer:faults())
      fail_at "broker-a"
      local entry = fault "broker-a"
      assert.same({ "boolean", "boolean", "number", "number" }, { type(entry.available),
        type(entry.reachable), type(entry.available_in_ms), type(entry.latency_ms) })
      assert.is_true(entry.available_in_ms <= 20)
      assert.is_true(fault("broker-b").available)
      assert.equal(0, fault("broker-b").available_in_ms)
      assert(c.mock:wait(function() return fault("broker-a").available end))
      local seen = {}
      for _ = 1, 2 do seen[send().queue.broker] = true end
      assert.same({ ["broker-a"] = true, ["broker-b"] = true }, seen)
      assert.is_true(fault("broker-a").reachable)
    end)

    it(title .. "get nothing while another one is there", function()
      c = cluster.new({ brokers = 3, topics = { Orders = 2 } }, settings)
      fail_at "broker-b"
      assert.is_false(fault("broker-b").available)
      assert.is_false(fault("broker-b").reachable)
      for _ = 1, 12 do assert.are_not.equal("broker-b", send().queue.broker) end
    end)

    it(title .. "are all asked rather than none", function()
      c = cluster.new({ brokers = 2, topics = { Orders = 1 } }, settings)
      fail_at "broker-a"
      local rule = c.mock:rule { at = "broker-b", code = "SEND_MESSAGE_V2", times = 1,
        answer = { code = "SYSTEM_BUSY" } }
      -- The retry goes to the other one, though that is avoided as well.
      local result = send()
      assert.same({ 1, 2, "broker-a" }, { rule.acted, result.attempts, result.queue.broker })
      for _ = 1, 6 do send() end
    end)

    it(title .. "leave queues that cannot be written to alone", function()
      c = cluster.new({ brokers = { "broker-a", { name = "broker-r", perm = 4 } },
        topics = { Orders = 1 } }, settings)
      c.mock:rule { at = "broker-a", code = "SEND_MESSAGE_V2", times = 1,
        answer = { code = "SYSTEM_BUSY" } }
      for _ = 1, 6 do assert.equal("broker-a", send().queue.broker) end
      assert.equal(0, #c.mock:requests { at = "broker-r", code = "SEND_MESSAGE_V2" })
    end)
  end

  it("are not those that refuse one illegal message", function()
    c = cluster.new({ topics = { Orders = 1 } }, { latency_fault = true })
    local rule = c.mock:rule { code = "SEND_MESSAGE_V2", answer = { code = "MESSAGE_ILLEGAL" } }
    local result, err = c.producer:send { topic = "Orders", body = "x" }
    assert.is_nil(result)
    assert.equal(13, err.code)
    assert.same({}, c.producer:faults())
    rule:remove()
    send()
    assert.is_true(fault("broker-a").available)
  end)

  it("are noted nowhere without latency_fault", function()
    c = cluster.new { brokers = 2, topics = { Orders = 1 } }
    fail_at "broker-a"
    assert.same({}, c.producer:faults())
    c.producer:shutdown()
    assert.same({}, c.producer:faults())
  end)

  it("are found again by the detector", function()
    c = cluster.new({ brokers = 2, topics = { Orders = 1 } },
      { latency_fault = "5.x", start_detector_enable = true, detect_interval = 1 })
    local rule = c.mock:rule { at = "broker-a", code = "SEND_MESSAGE_V2", times = 1, close = true }
    while rule.acted == 0 do send() end
    assert.is_false(fault("broker-a").reachable)
    assert(c.mock:wait(function() return fault("broker-a").reachable end))
    assert.is_true(#c.mock:requests { at = "broker-a", code = "GET_MAX_OFFSET" } > 0)
  end)
end)
