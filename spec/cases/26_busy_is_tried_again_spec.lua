--- A busy broker's refusal was final. Which refusals are tried again was fixed in the code.
local cluster = require "spec.support.cluster"
local wait = require "rocketmq.mock.wait"

local SEND = "SEND_MESSAGE_V2"
local CODES = { 1, 2, 14, 16, 17, 204, 205 }

describe("a broker's refusal", function()
  local c
  after_each(function() c:finish() end)

  local message = { topic = "Orders", body = "x" }

  for _, code in ipairs(CODES) do
    it("with code " .. code .. " is tried again, in every mode", function()
      c = cluster.new { brokers = 2, topics = { Orders = 2 } }
      c.mock:rule { code = SEND, times = 2, answer = { code = code } }
      local result = assert(c.producer:send(message))
      assert.equal(3, result.attempts)
      c.mock:rule { code = SEND, times = 2, answer = { code = code } }
      local done
      assert(c.producer:send_async(message, function(...) done = { ... } end))
      assert(wait(function() return done end, 5000))
      assert.equal(3, assert(done[1], done[2]).attempts)
    end)
  end

  it("with another code is final", function()
    c = cluster.new { brokers = 2, topics = { Orders = 2 } }
    for _, code in ipairs { 3, 13, 29, 206 } do
      local rule = c.mock:rule { code = SEND, answer = { code = code } }
      local result, err = c.producer:send(message)
      assert.is_nil(result)
      assert.same({ "broker", code, 1 }, { err.kind, err.code, err.attempts })
      rule:remove()
    end
  end)

  it("is tried again as the setting says, under both names: the list is the whole set", function()
    c = cluster.new { brokers = 2, topics = { Orders = 2 } }
    c.mock:rule { code = SEND, times = 1, answer = { code = 29 } }
    local producer = c:add_producer { retry_response_codes = { 29, 2 } }
    assert.same({ 29, 2 }, producer:settings().retry_response_codes)
    assert.equal(2, assert(producer:send(message)).attempts)
    c.mock:rule { code = SEND, answer = { code = 1 } }
    assert.equal(1, select(2, producer:send(message)).attempts)
    producer = c:add_producer { retryResponseCodes = {} }
    assert.same({}, producer:settings().retry_response_codes)
    assert.equal(1, select(2, producer:send(message)).attempts)
    assert.same({ 1, 2, 14, 16, 17, 204, 205, 1500 }, c.producer:settings().retry_response_codes)
  end)

  it("is tried again on the same broker only after a pause that grows", function()
    c = cluster.new { brokers = 1, topics = { Orders = 2 } }
    c.mock:rule { code = SEND, times = 4, answer = { code = 2 } }
    local result = assert(c.producer:send(message, { retries = 4 }))
    assert.equal(5, result.attempts)
    local times = {}
    for i, request in ipairs(c.mock:requests { code = SEND }) do times[i] = request.time end
    -- 10, 20, 40 and 80 ms, each spread by half of it.
    for i, least in ipairs { 5, 10, 20, 40 } do
      assert.is_true(times[i + 1] - times[i] >= least - 1.5, times[i + 1] - times[i])
    end
  end)

  it("has a list of whole numbers as its setting", function()
    c = cluster.new()
    for wrong, why in pairs { x = "must be a list of whole numbers, not string",
      [{ "2" }] = "its element 1 is a string", [{ 1.5 }] = "its element 1 is 1.5",
      [{ 1, 2 ^ 40 }] = "its element 2 is 1099511627776" } do
      assert.error_matches(function() c:add_producer { retry_response_codes = wrong } end, why)
    end
  end)
end)
