--- A delay that overflowed was delivered at once; one that no broker can hold, or two that
--- contradicted each other, were found out late or never.
local cluster = require "spec.support.cluster"

describe("a delay", function()
  local c

  before_each(function() c = cluster.new { topics = { Orders = 1 } } end)
  after_each(function() c:finish() end)

  local function message(fields)
    fields.topic, fields.body = "Orders", "x"
    return fields
  end

  -- Refused before anything is sent, with an error that names the field; in every mode.
  local function refused(fields, name)
    local sends = {
      function(m) return c.producer:send(m) end,
      function(m) return c.producer:send_async(m, function() error "must not be called" end) end,
      function(m) return c.producer:send_oneway(m) end,
      function(m) return c.producer:send(m, { retries = 0 }) end,
    }
    for _, send in ipairs(sends) do
      local ok, err = send(message(fields))
      assert.is_nil(ok)
      assert.equal("message", err.kind)
      assert.equal(13, err.code)
      assert.matches(name, err.message, 1, true)
      assert.equal(0, #c.mock:requests())
    end
  end

  for _, name in ipairs { "delay_level", "delay_ms", "delay_seconds", "deliver_at" } do
    it("as " .. name .. " must be a whole number that does not overflow", function()
      for _, value in ipairs { 2 ^ 53, 2 ^ 63, 2 ^ 64, 1e300, 1 / 0, -1 / 0, 0 / 0, -1, 1.5,
        -2 ^ 63, 9e15 } do
        refused({ [name] = value }, name .. " is ")
      end
    end)
  end

  it("must be a level that brokers have", function()
    refused({ delay_level = 19 }, "delay_level is 19; it must be from 1 to 18")
    refused({ delay_level = -1 }, "delay_level is -1")
    refused({ delay_level = 0 }, "delay_level is 0")
  end)

  it("must be milliseconds, not seconds or microseconds, when it names a moment", function()
    refused({ deliver_at = os.time() + 60 }, "milliseconds")
    refused({ deliver_at = (os.time() + 60) * 1e6 }, "milliseconds")
  end)

  it("is given once", function()
    local values = { delay_level = 1, delay_ms = 1, delay_seconds = 1, deliver_at = 1.9e12 }
    for one in pairs(values) do
      for other in pairs(values) do
        if one < other then
          refused({ [one] = values[one], [other] = values[other] }, "both given")
        end
      end
    end
  end)

  it("is no property", function()
    for name, field in pairs { DELAY = "delay_level", TIMER_DELAY_MS = "delay_ms",
      TIMER_DELAY_SEC = "delay_seconds", TIMER_DELIVER_MS = "deliver_at" } do
      local ok, err = c.producer:send(message { properties = { [name] = "1" } })
      assert.is_nil(ok)
      assert.matches(name .. ".*" .. field, err.message)
    end
    assert.equal(0, #c.mock:requests())
  end)

  it("of another type raises", function()
    for _, name in ipairs { "delay_level", "delay_ms", "delay_seconds", "deliver_at" } do
      assert.error_matches(function() c.producer:send(message { [name] = "1" }) end,
        name .. " of the message must be a number, not string")
    end
  end)

  it("that the broker refuses comes back with its own number and words", function()
    c.mock:rule { at = "broker-a", code = "SEND_MESSAGE_V2", answer = { code = 13,
      remark = "timer message illegal, the delay time should not be bigger than the max delay" } }
    local result, err = c.producer:send(message { delay_seconds = 4 * 24 * 3600 })
    assert.is_nil(result)
    assert.equal("broker", err.kind)
    assert.equal(13, err.code)
    assert.equal(1, err.attempts)
    assert.matches("should not be bigger than the max delay", err.message, 1, true)
  end)
end)
