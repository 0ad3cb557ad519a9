--- Messages that were still buffered were lost at the end of the process, buffers grew without bound,
--- and nobody was told that the server was down.
local child = require "spec.support.child"
local new_mock = require "rocketmq.mock"
local wait = require "rocketmq.mock.wait"

local SEND = "SEND_MESSAGE_V2"

describe("a thousand messages in flight", function()
  local mock
  before_each(function() mock = new_mock { brokers = 2, topics = { Orders = 4 } } end)
  after_each(function() mock:close() end)

  local function start(script)
    return child.start { "--namesrv=" .. mock.namesrv, "-e", [[
      io.stdout:setvbuf "no"
      local rocketmq = require "rocketmq"
      local message = { topic = "Orders", body = ("x"):rep(100) }
      local told, failed = 0, 0
      local function count(result, err)
        told = told + 1
        if err then failed = failed + 1 end
        if told == 1000 then print("told", failed) end
      end
    ]] .. script }
  end

  local THOUSAND = [[
    local producer = rocketmq.producer { group = "g", flush_timeout = FLUSH }
    for i = 1, 1000 do assert(producer:send_async(message, count)) end
  ]]
  local function thousand(flush) return (THOUSAND:gsub("FLUSH", flush)) end

  it("are all delivered when the script ends", function()
    mock:rule { code = SEND, delay = 30 }
    local ended = start(thousand(5000)):wait()
    assert.equal("told\t0\n", ended.stdout)
    assert.equal("", ended.stderr)
    assert.equal(0, ended.code)
    assert.equal(1000, mock:count())
  end)

  it("are told, each, when the time to deliver them is over", function()
    mock:rule { code = SEND, silent = true }
    local ended = start(thousand(100) .. "print(producer:shutdown())"):wait()
    assert.matches("^told\t1000\nnil\ttimeout error: 1000 sends had no answer", ended.stdout)
  end)

  it("are counted at the end where nobody is told, with status 3", function()
    mock:rule { code = SEND, silent = true }
    local ended = start [[
      local producer = rocketmq.producer { group = "g", flush_timeout = 100 }
      for i = 1, 1000 do assert(producer:send_async(message)) end
    ]]:wait()
    assert.equal("rmqlua: producer 'g': 1000 messages were not delivered\n", ended.stderr)
    assert.equal(3, ended.code)
  end)

  it("are delivered after SIGTERM under load", function()
    local running = start [[
      -- However slow the mock is on this machine: its time is not what is tried here.
      local producer = rocketmq.producer { group = "g", max_inflight = 500,
        send_msg_timeout = 60000, flush_timeout = 60000 }
      local function stored_one(result, err) if not result then print(err) end end
      print "begin"
      for i = 1, math.huge do
        assert(producer:send_async({ topic = "Orders", body = tostring(i) }, stored_one))
      end
    ]]
    assert(mock:wait(1000))
    running:kill "sigterm"
    running:wait()
    assert.equal(143, running.code, running.stderr)
    assert.equal("begin\n", running.stdout) -- no callback was told of a failure
    -- All that was accepted before and after the first thousand is there: no gap, nothing twice.
    local last = 0
    for _, stored in ipairs(mock:messages()) do last = math.max(last, tonumber(stored.body)) end
    assert.is_true(last >= 1000)
    assert.equal(last, mock:count())
  end)

  it("are told when no broker is there at all", function()
    mock:broker("broker-a"):stop()
    mock:broker("broker-b"):stop()
    local running = start [[
      local producer = rocketmq.producer { group = "g", timeout = 200 }
      for i = 1, 1000 do
        local ok, err = producer:send_async(message, count)
        if not ok then count(nil, err) end
      end
      producer:flush()
    ]]
    running:wait()
    assert.equal("told\t1000\n", running.stdout)
    assert.equal(0, running.code, running.stderr) -- every one was told
    mock:broker("broker-a"):start()
    mock:broker("broker-b"):start()
  end)

  it("are no more than max_inflight at a time", function()
    mock:rule { code = SEND, delay = 5 }
    local running = start [[
      local producer = rocketmq.producer { group = "g", max_inflight = 100 }
      local most = 0
      for i = 1, 1000 do
        assert(producer:send_async(message, count))
        most = math.max(most, producer:stats().inflight)
      end
      print(most)
    ]]
    assert(wait(function() return running.code end, 20000))
    running:wait()
    assert.equal("100\ntold\t0\n", running.stdout)
    assert.equal(0, running.code, running.stderr)
  end)
end)
