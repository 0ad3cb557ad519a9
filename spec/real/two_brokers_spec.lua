-- Two masters: every way to send reaches the broker that was chosen, and when one of them is killed and
-- comes back no acknowledged message is lost and no send stays without its one answer.

local child = require "spec.support.child"
local ledger = require "spec.real.ledger"
local rocketmq = require "rocketmq"
local support = require "spec.real.support"
local wait = require "rocketmq.mock.wait"

local A, B = "broker-a", "broker-b"
local QUEUES = 4 -- of each topic on each broker
local TASKS = 16
-- JVMs on a machine that may be busy with much else; these are no tests of deadlines.
local PATIENCE_MS = 60000

local server = support.servers()[1]

local function run_tasks(count, work)
  local functions = {}
  for i = 1, count do functions[i] = function() return work(i) end end
  assert(rocketmq.gather(functions))
end

-- The ways to send, each told to "complete" when it has an end.
local modes = {
  send = function(producer, message, options, complete)
    complete(producer:send(message, options))
  end,
  send_async = function(producer, message, options, complete)
    assert(producer:send_async(message, options, complete))
  end,
  send_oneway = function(producer, message, options)
    assert(producer:send_oneway(message, options))
  end,
}

local function selector(queues, _, arg, ctx)
  for _, queue in ipairs(queues) do
    if queue.broker == arg.broker and queue.id == arg.id then
      assert(ctx.available(queue))
      return queue
    end
  end
  error "the queue is not there"
end

local b2, a1 = { broker = B, id = 2 }, { broker = A, id = 1 }

-- The ways to choose a queue: a send's options, and where it has to go.
local choices = {
  default = {},
  ["queue of a"] = { options = { queue = a1 }, expected = a1 },
  ["queue of b"] = { options = { queue = b2 }, expected = b2 },
  selector = { options = { selector = selector, arg = { broker = B, id = 3 } },
    expected = { broker = B, id = 3 } },
}

local function send_in_every_way(producer, topic, each)
  local sends = {}
  run_tasks(TASKS, function(task)
    for mode, send in pairs(modes) do
      for choice, how in pairs(choices) do
        for i = 1, each do
          local body = ("%s, %s, %d of task %d"):format(mode, choice, i, task)
          local complete = ledger.enter(sends, body, how.expected)
          send(producer, { topic = topic, body = body }, how.options, complete)
        end
      end
    end
  end)
  assert(producer:flush(PATIENCE_MS))
  return sends
end

-- Everything was read once, where it had to go, and where its result says that it went.
local function check_modes(sends, read)
  local used = {}
  for body, sent in pairs(sends) do
    local reads = read[body]
    if not reads or #reads ~= 1 then
      error(("%s: read %d times"):format(body, reads and #reads or 0), 0)
    end
    local place = { broker = reads[1].broker, id = reads[1].queueId }
    if sent.expected then
      assert.same(sent.expected, place, body)
    else
      used[place.broker .. place.id] = true
    end
    local oneway = body:find "^send_oneway"
    assert.equal(oneway and 0 or 1, sent.completions, body)
    if not oneway then
      assert.equal("SEND_OK", sent.result.status)
      ledger.check_result(body, sent.result, reads)
    end
  end
  assert.equal(ledger.count(sends), ledger.count(read))
  return ledger.count(used)
end

-- Sends through one producer from tasks and with callbacks until it is told to end: first as fast as
-- it goes, so that much is under way when the broker dies, then at a measured pace. The time that a JVM
-- takes to boot would otherwise fill the disk.
---@class spec.Load
---@field name string
---@field producer rocketmq.Producer
---@field sends table<string, spec.Sent>
---@field sent integer
---@field acknowledged integer
---@field on_b integer results so far whose queue is on broker-b
---@field on_a integer
---@field calm boolean? the measured pace
---@field stop boolean?
local Load = {}
Load.__index = Load

local MOST = 60000 -- messages of one producer
local BURST = 10 -- messages that are sent with callbacks between two pauses

-- Retries are the default ones. Routes are asked for more often than every 30 s, since it is by them that
-- a producer learns that a broker is back.
local function new_load(name, latency_fault)
  local producer = rocketmq.producer { group = name, namesrv = server.namesrv, timeout = 20000,
    poll_name_server_interval = 500, latency_fault = latency_fault }
  return setmetatable({ name = name, producer = producer, sends = {}, sent = 0,
    acknowledged = 0, on_a = 0, on_b = 0 }, Load)
end

-- Gives a message and what is told of its end.
function Load:next(topic)
  self.sent = self.sent + 1
  local body = ("%s %d"):format(self.name, self.sent)
  local complete = ledger.enter(self.sends, body)
  return { topic = topic, body = body }, function(result, err)
    complete(result, err)
    if not result then return end
    self.acknowledged = self.acknowledged + 1
    if result.queue.broker == B then self.on_b = self.on_b + 1 else self.on_a = self.on_a + 1 end
  end
end

function Load:goes_on() return not self.stop and self.sent < MOST end

function Load:wait_for_answers(topic)
  while self:goes_on() do
    local message, complete = self:next(topic)
    complete(self.producer:send(message))
    if self.calm then rocketmq.sleep(40) end
  end
end

function Load:take_callbacks(topic)
  while self:goes_on() do
    for _ = 1, BURST do
      local message, complete = self:next(topic)
      assert(self.producer:send_async(message, complete))
    end
    rocketmq.sleep(self.calm and 40 or 2)
  end
end

function Load:run(topic)
  run_tasks(TASKS + 1, function(number)
    if number <= TASKS then return self:wait_for_answers(topic) end
    return self:take_callbacks(topic)
  end)
  assert(self.producer:flush(PATIENCE_MS))
end

-- Waits until every load is where it has to be.
local function await(loads, what, holds)
  for _, load in ipairs(loads) do
    if not wait(function() return holds(load) or not load:goes_on() end, PATIENCE_MS)
      or not holds(load) then
      error(("%s: %s did not come; %d sent, %d acknowledged"):format(load.name, what, load.sent,
        load.acknowledged), 0)
    end
  end
end

-- Kills and restarts broker-b while the loads run; how many results came while it was down.
local function kill_and_restart(loads)
  await(loads, "the load on both brokers", function(load)
    return load.on_a > 500 and load.on_b > 500
  end)
  support.cluster("kill", "5.4.0/" .. B)
  for _, load in ipairs(loads) do load.answered, load.calm = load.acknowledged, true end
  await(loads, "the sends to the broker that is left", function(load)
    return load.acknowledged > load.answered + 1000
  end)
  -- By now what broker-b answered while it lived has arrived.
  for _, load in ipairs(loads) do load.on_b = 0 end
  support.cluster("start", "5.4.0/" .. B)
  await(loads, "the traffic to the broker that is back", function(load) return load.on_b > 200 end)
end

local function print_row(load, told)
  print(("%-18s %9d %12d %9d %10d %9d   %s"):format(load.name, load.sent, load.acknowledged,
    load.producer:stats().retried, told.twice, #told.lost, ledger.kinds_text(told.kinds)))
end

describe("two brokers", function()
  setup(function()
    support.java("Admin",
      { server.namesrv, "createTopic", QUEUES, "Modes", "Restart", "Stopped" })
  end)

  it("get what is sent in every way, each where it was chosen to go", function()
    local producer = rocketmq.producer { group = "spec_modes", namesrv = server.namesrv,
      timeout = PATIENCE_MS }
    local sends = send_in_every_way(producer, "Modes", 20)
    assert(producer:shutdown())
    local read, less = ledger.drain(server.namesrv, "Modes", ledger.count(sends))
    assert.equal(2 * QUEUES, check_modes(sends, read))
    assert(not less, less)
    local stats = producer:stats()
    assert.same({ 0, 0, 0 }, { stats.failed, stats.oneway_failed, stats.inflight })
    assert.equal(ledger.count(sends), stats.sent)
  end)

  it("lose nothing that was acknowledged when one is killed and comes back", function()
    local loads = {
      new_load("latency_fault_off", false),
      new_load("latency_fault_5x", "5.x"),
    }
    local running = {}
    for i, load in ipairs(loads) do running[i] = rocketmq.spawn(load.run, load, "Restart") end
    local ok, why = pcall(kill_and_restart, loads)
    for i, load in ipairs(loads) do
      load.stop = true
      local _, err = running[i]:wait()
      assert(not err, err)
      assert(load.producer:shutdown())
    end
    assert(ok, why)

    local acknowledged = loads[1].acknowledged + loads[2].acknowledged
    local read, less = ledger.drain(server.namesrv, "Restart", acknowledged)
    print(("\n%-18s %9s %12s %9s %10s %9s   %s"):format("kill -9, restart", "sent", "acknowledged",
      "retried", "read twice", "lost", "failed"))
    for _, load in ipairs(loads) do
      load.told = ledger.reconcile(load.sends, read)
      print_row(load, load.told)
    end
    for _, load in ipairs(loads) do
      assert.same({}, load.told.lost)
      assert.same({}, load.told.failures)
      assert.equal(load.sent, load.acknowledged)
      -- Otherwise the kill was not noticed, and nothing has been proved.
      assert.is_true(load.producer:stats().retried > 0)
    end
    assert(not less, less)
  end)

  it("have all that a script sent which SIGTERM ended", function()
    local running = child.start { "spec/real/send_until_stopped.lua", server.namesrv, "Stopped" }
    assert(wait(function() return #running.stdout > 60000 or running.code end, PATIENCE_MS))
    running:kill "sigterm"
    running:wait(PATIENCE_MS)
    assert.equal(143, running.code, running.stderr)
    assert.equal("", running.stderr)

    local accepted, acknowledged = {}, {}
    for what, body in running.stdout:gmatch "(%a+)\t([^\n]+)\n" do
      local list = what == "accepted" and accepted or acknowledged
      list[#list + 1] = body
    end
    local read, less = ledger.drain(server.namesrv, "Stopped", #accepted)
    for _, list in ipairs { accepted, acknowledged } do
      assert.is_true(#list > 100)
      for _, body in ipairs(list) do
        if not read[body] then error(body .. ": sent and lost", 0) end
      end
    end
    assert(not less, less)
  end)
end)
