--- A hook could not keep a message from being sent.
local child = require "spec.support.child"
local cluster = require "spec.support.cluster"
local wait = require "rocketmq.mock.wait"

describe("a hook's check_forbidden", function()
  local c, producer, ends
  before_each(function()
    c = cluster.new { brokers = 1, topics = { Orders = 2, Secret = 2 } }
    producer = c.producer
    ends = {}
    producer:add_hook { after = function(ctx) ends[#ends + 1] = ctx.err end }
    producer:add_hook { name = "no-secrets", check_forbidden = function(ctx)
      if ctx.topic == "Secret" then return "this topic is not for us" end
    end }
  end)
  after_each(function() c:finish() end)

  local secret = { topic = "Secret", body = "x" }
  local modes = {
    send = function() return producer:send(secret) end,
    send_async = function()
      local done, result, err
      assert(producer:send_async(secret, function(...) done, result, err = true, ... end))
      assert(wait(function() return done end, 10000))
      return result, err
    end,
  }

  for name, send in pairs(modes) do
    it("stops " .. name .. ", whose caller is told why", function()
      local result, err = send()
      assert.is_nil(result)
      assert.equal("hook", err.kind)
      assert.matches("blocked by hook no%-secrets: this topic is not for us", err.message)
      assert.equal(0, c.mock:count())
      assert.equal(1, #ends)
      assert.equal(err.message, ends[1].message)
    end)
  end

  it("stops send_oneway", function()
    local ended = child.run { "--mock=default", "-e", [[
      local producer = require("rocketmq").producer { group = "g" }
      producer:add_hook { after = function(ctx) print(ctx.attempt, ctx.err.kind) end }
      producer:add_hook { check_forbidden = function() return "not for us" end }
      assert(producer:send_oneway { topic = "Secret", body = "x" })
      producer:flush()
      print(producer:stats().oneway_failed)
    ]] }
    assert.equal("0\thook\n1\n", ended.stdout)
    assert.matches("blocked by hook .*: not for us", ended.stderr)
    assert.equal(3, ended.code) -- as for each oneway that could not be sent
  end)

  it("lets other messages pass", function()
    assert(producer:send { topic = "Orders", body = "x" })
    assert.equal(1, c.mock:count())
    assert.same({}, ends)
  end)
end)
