-- rocketmq.hook.metrics, and the histogram behind it
local cluster = require "spec.support.cluster"
local histogram = require "rocketmq.hook.histogram"
local rocketmq = require "rocketmq"

local SEND = "SEND_MESSAGE_V2"

describe("a histogram", function()
  it("knows every percentile to 3.2 % in at most 448 buckets", function()
    local h, values, n = histogram.new(), {}, 20000
    local seed = 12345
    for i = 1, n do
      seed = (seed * 1103515245 + 12345) % 2 ^ 31
      values[i] = 10 ^ (seed / 2 ^ 31 * 8 - 2) / 1000 -- from 10 ns to 1000 s, in ms
      h:add(values[i])
    end
    table.sort(values)
    for _, share in ipairs { 0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1 } do
      local exact = values[math.max(1, math.ceil(share * n))]
      local error_us = math.abs(h:percentile(share) - exact) * 1000
      assert.is_true(error_us <= math.max(0.51, exact * 1000 * 0.032),
        ("%g: %g, not %g"):format(share, h:percentile(share), exact))
    end
    local buckets = 0
    for _ in pairs(h.buckets) do buckets = buckets + 1 end
    assert.is_true(buckets <= 448)
    assert.equal(values[1], h.least)
    assert.equal(values[n], h.most)
  end)

  it("takes what is too long, negative or nothing", function()
    local h = histogram.new()
    assert.is_nil(h:percentile(0.5))
    h:add(-1)
    h:add(0)
    h:add(1e300)
    assert.equal(3, h.count)
    assert.equal(0, h:percentile(0.5))
  end)

  it("gives back what it was given when that is all", function()
    for _, ms in ipairs { 0.001, 0.031, 0.032, 1, 17, 1234.5, 100000 } do
      local h = histogram.new()
      h:add(ms)
      assert.equal(ms, h:percentile(0.99))
    end
  end)
end)

describe("the metrics hook", function()
  local c, producer
  before_each(function()
    c = cluster.new { brokers = 2, topics = { Orders = 1, ['Odd'] = 1 } }
    producer = c.producer
  end)
  after_each(function() c:finish() end)

  local message = { topic = "Orders", body = "x" }

  it("counts by topic and broker", function()
    local hook, metrics = rocketmq.hook.metrics()
    producer:add_hook(hook)
    for _ = 1, 6 do assert(producer:send(message)) end
    assert(producer:send { topic = "Odd", body = "x" })
    c.mock:rule { at = "broker-a", code = SEND, answer = { code = "SYSTEM_BUSY" } }
    for _ = 1, 2 do assert(producer:send(message)) end -- at least one of them begins at broker-a
    producer:send(message, { queue = { broker = "nobody", id = 0 } })
    local rows = metrics:rows()
    local of = {}
    for _, row in ipairs(rows) do of[row.topic .. "@" .. row.broker] = row end
    local none, a, b = of["Orders@"], of["Orders@broker-a"], of["Orders@broker-b"]
    assert.same({ 1, 1, 0, { route = 1 }, 0 },
      { none.sends, none.failed, none.attempts, none.errors, none.latency.count })
    assert.is_nil(none.latency.p50)
    assert.equal(8, a.sends + b.sends)
    assert.same({ 0, 0 }, { a.failed, b.failed })
    assert.is_true(a.errors.broker >= 1)
    assert.equal(a.sends + a.errors.broker, a.attempts)
    assert.equal(b.sends, b.attempts)
    assert.same({ 3, 5 }, { a.sends, b.sends })
    assert.equal(b.attempts, b.latency.count)
    assert.is_true(b.latency.min <= b.latency.p50 and b.latency.p50 <= b.latency.p99
      and b.latency.p99 <= b.latency.max)
    assert.equal("Odd", rows[1].topic)
    metrics:reset()
    assert.same({}, metrics:rows())
  end)

  it("keeps a bounded number of series apart", function()
    local hook, metrics = rocketmq.hook.metrics { max_series = 2 }
    for i = 1, 50 do
      hook.after { topic = "T" .. i, broker = "b", attempt = 1, elapsed_ms = 1 }
    end
    local rows = metrics:rows()
    assert.equal(3, #rows)
    assert.same({ "(other)", "(other)", 48 }, { rows[1].topic, rows[1].broker, rows[1].sends })
  end)

  it("writes what Prometheus reads", function()
    local hook, metrics = rocketmq.hook.metrics()
    for i = 1, 10 do
      hook.after { topic = "T", broker = 'b\\"\n', attempt = 1, elapsed_ms = 2, will_retry = i == 1,
        err = i == 1 and { kind = "timeout" } or nil }
    end
    hook.after { topic = "T", attempt = 0, elapsed_ms = 0, err = { kind = "route" } }
    local text = metrics:prometheus()
    local labels = '{topic="T",broker="b\\\\\\"\\n"}'
    for _, line in ipairs {
      "# TYPE rmqlua_sends_total counter", "rmqlua_sends_total" .. labels .. " 9",
      "rmqlua_attempts_total" .. labels .. " 10",
      'rmqlua_sends_failed_total{topic="T",broker=""} 1',
      'rmqlua_errors_total{topic="T",broker="",kind="route"} 1',
      'rmqlua_errors_total{topic="T",broker="b\\\\\\"\\n",kind="timeout"} 1',
      "# TYPE rmqlua_attempt_seconds summary",
      'rmqlua_attempt_seconds{topic="T",broker="b\\\\\\"\\n",quantile="0.99"} 0.002000',
      "rmqlua_attempt_seconds_sum" .. labels .. " 0.020000",
      "rmqlua_attempt_seconds_count" .. labels .. " 10",
      'rmqlua_attempt_seconds_count{topic="T",broker=""} 0',
    } do
      assert.truthy(("\n" .. text):find("\n" .. line .. "\n", 1, true), line .. "\nin\n" .. text)
    end
    for line in text:gmatch "[^\n]+" do
      assert.truthy(line:find "^# " or line:find "^[%w_]+{.*} [%d.]+$", line)
    end
  end)
end)
