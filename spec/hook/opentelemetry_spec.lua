-- rocketmq.hook.opentelemetry
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"

local SEND = "SEND_MESSAGE_V2"
local PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

describe("the opentelemetry hook", function()
  local c, producer
  before_each(function()
    c = cluster.new { brokers = 1, topics = { Orders = 2 } }
    producer = c.producer
  end)
  after_each(function() c:finish() end)

  local function send(properties)
    assert(producer:send { topic = "Orders", body = "x", properties = properties })
    local all = c.mock:messages "Orders"
    local got = all[#all].properties
    local version, trace, span, flags =
      (got.traceparent or ""):match "^(%x%x)%-(%x+)%-(%x+)%-(%x%x)$"
    assert.same({ "00", 32, 16 }, { version, #trace, #span }, got.traceparent)
    assert.equal(got.traceparent:lower(), got.traceparent)
    return trace, span, flags, got
  end

  it("begins a trace", function()
    producer:add_hook(rocketmq.hook.opentelemetry())
    local seen = {}
    for _ = 1, 50 do
      local trace, span, flags = send()
      assert.equal("01", flags)
      assert.is_nil(seen[trace] or seen[span])
      seen[trace], seen[span] = true, true
    end
  end)

  it("goes on with the trace of the message", function()
    producer:add_hook(rocketmq.hook.opentelemetry())
    local trace, span, flags, got = send { traceparent = PARENT, tracestate = "a=b" }
    assert.equal("0af7651916cd43dd8448eb211c80319c", trace)
    assert.not_equal("b7ad6b7169203331", span)
    assert.equal("01", flags)
    assert.equal("a=b", got.tracestate)
  end)

  it("goes on with the trace that is given", function()
    producer:add_hook(rocketmq.hook.opentelemetry {
      context = function() return PARENT:gsub("01$", "00"), "c=d" end,
    })
    -- gsub gives a second value, which would be taken for the tracestate.
    local trace, _, flags = send()
    assert.same({ "0af7651916cd43dd8448eb211c80319c", "00" }, { trace, flags })
  end)

  for _, wrong in ipairs { "", "00", PARENT:upper(), PARENT:gsub("^00", "ff"), PARENT .. "-x",
    "00-" .. ("0"):rep(32) .. "-b7ad6b7169203331-01",
    "00-0af7651916cd43dd8448eb211c80319c-" .. ("0"):rep(16) .. "-01", "no traceparent at all" } do
    it("begins a trace instead of " .. wrong, function()
      producer:add_hook(rocketmq.hook.opentelemetry { context = function() return wrong end })
      assert.not_equal("0af7651916cd43dd8448eb211c80319c", (send()))
    end)
  end

  it("reads a later version", function()
    producer:add_hook(rocketmq.hook.opentelemetry {
      context = function() return (PARENT:gsub("^00", "cc")) .. "-more" end,
    })
    assert.equal("0af7651916cd43dd8448eb211c80319c", (send()))
  end)

  it("samples no more than all", function()
    assert.error_matches(function() rocketmq.hook.opentelemetry { sampled = 50 } end,
      "rocketmq.hook.opentelemetry: sampled must be at most 1, not 50")
  end)

  it("samples as many as it is told", function()
    local spans = 0
    producer:add_hook(rocketmq.hook.opentelemetry {
      sampled = 0, export = function() spans = spans + 1 end,
    })
    local _, _, flags = send()
    assert.same({ "00", 0 }, { flags, spans })
  end)

  it("exports a span for each attempt, all of one trace", function()
    local spans = {}
    producer:add_hook(rocketmq.hook.opentelemetry {
      export = function(span) spans[#spans + 1] = span end,
    })
    c.mock:rule { code = SEND, times = 1, answer = { code = "SYSTEM_BUSY" } }
    local result = assert(producer:send { topic = "Orders", body = "four", tags = "t",
      keys = { "k1", "k2" } })
    assert.equal(2, #spans)
    local first, second = spans[1], spans[2]
    assert.equal(first.trace_id, second.trace_id)
    assert.not_equal(first.span_id, second.span_id)
    assert.equal(("00-%s-%s-01"):format(second.trace_id, second.span_id),
      c.mock:messages("Orders")[1].properties.traceparent)
    assert.is_nil(first.parent_span_id)
    assert.matches("SYSTEM_BUSY", first.error)
    assert.equal("broker", first.attributes["error.type"])
    assert.is_nil(second.error)
    assert.is_true(second.start_time <= second.end_time)
    assert.same({ "send Orders", "producer" }, { second.name, second.kind })
    local attributes = second.attributes
    assert.equal("rocketmq", attributes["messaging.system"])
    assert.equal("Orders", attributes["messaging.destination.name"])
    assert.equal(result.msg_id, attributes["messaging.message.id"])
    assert.equal(4, attributes["messaging.message.body.size"])
    assert.equal("t", attributes["messaging.rocketmq.message.tag"])
    assert.equal("k1 k2", attributes["messaging.rocketmq.message.keys"])
    assert.equal(2, attributes["messaging.rocketmq.attempt"])
  end)

  it("names the parent", function()
    local span
    producer:add_hook(rocketmq.hook.opentelemetry { export = function(s) span = s end })
    send { traceparent = PARENT }
    assert.equal("b7ad6b7169203331", span.parent_span_id)
  end)
end)
