-- rocketmq.hook: the names that it has.
local rocketmq = require "rocketmq"

describe("rocketmq.hook", function()
  local hook = rocketmq.hook

  it("has no other names than it has, and names the nearest", function()
    local ok, why = pcall(function() return hook.audt { path = "x" } end)
    assert.is_false(ok)
    assert.matches("^[^:]*names_spec.lua:%d+: rocketmq.hook: unknown name 'audt', did you mean "
      .. "'audit'%?$", why)
    assert.error_matches(function() return hook.nothing_of_the_kind end,
      "; known are acl, audit, log, metrics, opentelemetry, rate_limit$")
  end)

  it("has all that the documentation lists", function()
    for _, name in ipairs { "acl", "audit", "log", "metrics", "opentelemetry", "rate_limit" } do
      assert.equal("function", type(hook[name]), name)
    end
  end)

  it("says so when one is given that has not been made", function()
    local producer = rocketmq.producer { group = "g", namesrv = "127.0.0.1:1" }
    finally(function() producer:shutdown() end)
    assert.error_matches(function() producer:add_hook(hook.log) end,
      "not what makes one: write rocketmq.hook.log {}")
    assert.error_matches(function() producer:add_hook(print) end, "not a function$")
    assert.error_matches(function() producer:add_hook() end, "not nil$")
  end)

  it("can be gone through, printed and asked for what is no name", function()
    assert.is_nil(hook[1])
    assert.is_nil(rawget(hook, "audt"))
    local found = {}
    assert.equal("function", type(hook.log))
    for name in pairs(hook) do found[name] = true end
    assert.is_true(found.log)
    assert.is_true(found.check)
  end)
end)
