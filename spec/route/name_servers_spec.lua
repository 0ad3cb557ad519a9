-- Name servers that change, fail, and routes that follow.
local cluster = require "spec.support.cluster"
local new_mock = require "rocketmq.mock"
local rocketmq = require "rocketmq"
local uv = require "luv"

local MESSAGE = { topic = "Orders", body = "x" }

describe("the list of name servers", function()
  local c, other
  before_each(function()
    c = cluster.new { brokers = 1, topics = { Orders = 2 } }
    other = new_mock { brokers = 1, topics = { Orders = 2, Elsewhere = 2 } }
  end)
  after_each(function()
    c:finish()
    other:close()
  end)

  it("changes while the producer runs", function()
    assert(c.producer:send(MESSAGE))
    assert.is_true(c.producer:set_namesrv(other.namesrv))
    assert.equal(other.namesrv, c.producer.namesrv)
    assert.equal(other.namesrv, c.producer:settings().namesrv)
    assert(c.producer:send { topic = "Elsewhere", body = "x" })
    assert.equal(1, #other:messages "Elsewhere")
    assert.equal(0, #c.mock:requests { code = "GET_ROUTEINFO_BY_TOPIC", topic = "Elsewhere" })
  end)

  it("may be a table, and may name the same servers", function()
    local before = c.producer.namesrv
    assert.is_true(c.producer:set_namesrv { before, before })
    assert.equal(before, c.producer.namesrv)
    assert.is_true(c.producer:set_namesrv { before, other.namesrv })
    assert.equal(before .. ";" .. other.namesrv, c.producer.namesrv)
  end)

  it("raises at the caller when it is wrong, and changes nothing", function()
    local before = c.producer.namesrv
    for _, wrong in ipairs { "nonsense:x", "", {}, { 1 }, 7 } do
      local ok, why = pcall(function() c.producer:set_namesrv(wrong) end)
      assert.is_false(ok)
      assert.matches("name_servers_spec.lua:%d+: set_namesrv: .*namesrv", why)
    end
    assert.equal(before, c.producer.namesrv)
  end)

  it("does not change after a shutdown", function()
    c.producer:shutdown()
    local ok, err = c.producer:set_namesrv(other.namesrv)
    assert.is_nil(ok)
    assert.equal("state", err.kind)
  end)
end)

describe("a name server that swallows everything", function()
  it("is passed over within the budget", function()
    local mock = new_mock { brokers = 1, namesrvs = 1, topics = { Orders = 2 } }
    local hole = assert(uv.new_tcp()) -- takes connections and never says a word
    assert(hole:bind("127.0.0.1", 0))
    local taken = {}
    assert(hole:listen(16, function()
      local socket = uv.new_tcp()
      hole:accept(socket)
      taken[#taken + 1] = socket
    end))
    local silent = "127.0.0.1:" .. hole:getsockname().port
    for _ = 1, 4 do -- the first to be asked is drawn
      local producer = rocketmq.producer { group = "g", namesrv = { silent, mock.namesrv } }
      assert(producer:send(MESSAGE))
      producer:shutdown()
    end
    assert.equal(4, mock:count())
    for _, socket in ipairs(taken) do socket:close() end
    hole:close()
    mock:close()
  end)
end)
