-- A process that was stopped for longer than its timeouts finds the answers that came meanwhile
-- before it finds that they are late.
local child = require "spec.support.child"
local new_mock = require "rocketmq.mock"
local uv = require "luv"

local TIMEOUT_MS, ANSWER_MS = 1000, 200

describe("a process that is stopped while it waits", function()
  local mock
  before_each(function() mock = new_mock { brokers = 1, topics = { Orders = 4 } } end)
  after_each(function() mock:close() end)

  -- Stops the process once the mock has the request, and lets it go on when the answer has long
  -- been sent and the timeout is over.
  local function stop_and_continue(code)
    local process = child.start { "--namesrv=" .. mock.namesrv, "-e", ([[
      local rocketmq = require "rocketmq"
      local producer = rocketmq.producer { group = "g" }
      local result, err = producer:send({ topic = "Orders", body = "x" },
        { timeout = %d, retries = 0 })
      print(result and result.status or tostring(err))
    ]]):format(TIMEOUT_MS) }
    assert(mock:wait(function() return #mock:requests { code = code } > 0 end, 10000))
    process:kill "sigstop"
    local over = uv.hrtime() + (TIMEOUT_MS + ANSWER_MS + 300) * 1e6
    assert(mock:wait(function() return uv.hrtime() > over end, 20000))
    process:kill "sigcont"
    return process:wait()
  end

  it("takes the broker's answer that waits in the socket", function()
    mock:rule { code = "SEND_MESSAGE_V2", delay = ANSWER_MS, times = 1 }
    local ended = stop_and_continue "SEND_MESSAGE_V2"
    assert.equal("SEND_OK\n", ended.stdout)
    assert.equal(0, ended.code)
    assert.equal(1, mock:count())
  end)

  it("still times out when there is none", function()
    mock:rule { code = "SEND_MESSAGE_V2", silent = true }
    local ended = stop_and_continue "SEND_MESSAGE_V2"
    assert.matches("no reply within", ended.stdout)
  end)
end)
