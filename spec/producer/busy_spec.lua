-- Scripts that compute for long between their sends: a deadline counts from the call, not from the event in
-- which the script happens to run.
local child = require "spec.support.child"
local new_mock = require "rocketmq.mock"

describe("after a script has computed for longer than its sends may take", function()
  local mock
  before_each(function() mock = new_mock { topics = { Orders = 4, Other = 3 } } end)
  after_each(function() mock:close() end)

  -- The script goes on inside of the event that brought the answer to its first send.
  local function run(script)
    local ended = child.run { "--namesrv=" .. mock.namesrv, "-e", [[
      local rocketmq = require "rocketmq"
      local uv = require "luv"
      local producer = rocketmq.producer { group = "g", timeout = 600 }
      local message = { topic = "Orders", body = "x" }
      local strict = { retries = 0 }
      local function compute()
        local till = uv.hrtime() + 800e6
        while uv.hrtime() < till do end
      end
      rocketmq.spawn(function()
        assert(producer:send(message, { timeout = 5000 }))
        compute()
    ]] .. script .. " end)" }
    assert.equal("", ended.stderr)
    assert.equal(0, ended.code)
    return ended.stdout
  end

  it("a send has all of its time", function()
    assert.equal("SEND_OK\n", run [[
      print(assert(producer:send(message, strict)).status)
    ]])
    assert.equal(2, mock:count())
  end)

  it("an asynchronous send has all of its time", function()
    assert.equal("SEND_OK\n", run [[
      assert(producer:send_async(message, strict, function(result, err)
        print(assert(result, err).status)
      end))
    ]])
    assert.equal(2, mock:count())
  end)

  it("a oneway send has all of its time", function()
    run [[ assert(producer:send_oneway(message, strict)) ]]
    assert.equal(2, mock:count())
  end)

  it("the list of a topic's queues has all of its time", function()
    assert.equal("3\n", run [[ print(#assert(producer:queues "Other")) ]])
  end)

  it("a flush has all of its time", function()
    mock:rule { code = "SEND_MESSAGE_V2", nth = 2, delay = 20 }
    assert.equal("true\n", run [[
      assert(producer:send_async(message))
      print((producer:flush(600)))
    ]])
  end)
end)
