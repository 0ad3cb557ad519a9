local child = require "spec.support.child"

local SCRIPT = [[
local producer = require("rocketmq").producer { group = "g", namesrv = "10.255.255.1:9876" }
print(producer.namesrv)
for _ = 1, 8 do
  print(assert(producer:send { topic = "Anything", body = "x" }).queue.broker)
end
]]

describe("the option --mock", function()
  local ended

  setup(function() ended = child.run_text(SCRIPT, { "--mock" }) end)

  it("says on stderr, once, that it is a mock and stores nothing", function()
    local addr = ended.stderr:match("^mock: name server at (127%.0%.0%.1:%d+), 2 brokers; ")
    assert.is_truthy(addr, ended.stderr)
    assert.matches("; nothing is stored and nothing is sent to a real RocketMQ\n", ended.stderr)
    assert.equal(1, select(2, ended.stderr:gsub("mock: ", "")))
    assert.equal(addr, ended.stdout:match("^[^\n]*"))
  end)

  it("stands in for the name servers that the script gives, with two brokers", function()
    assert.matches("broker%-a\n", ended.stdout)
    assert.matches("broker%-b\n", ended.stdout)
  end)

  it("is never a way to a real RocketMQ", function()
    local refused = child.run { "--mock=proxy='127.0.0.1:9876'", "-e", "print(1)" }
    assert.equal(2, refused.code)
    assert.equal("", refused.stdout)
    assert.matches("%-%-mock: 'proxy' would send to a real RocketMQ; rmqlua mock %-%-proxy",
      refused.stderr)
  end)

  it("does not keep the process from ending", function()
    assert.equal(0, ended.code)
  end)
end)
