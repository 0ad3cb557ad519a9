-- The hook of a transaction's end: what it sees, and that it changes nothing.
local child = require "spec.support.child"
local new_mock = require "rocketmq.mock"
local rocketmq = require "rocketmq"

local END = "END_TRANSACTION"

-- All that a ctx of end_transaction has.
local FIELDS = { "addr", "broker", "from_check", "group", "message", "msg_id", "state", "topic",
  "transaction_id" }

describe("the hook end_transaction", function()
  local mock, producer, decision, seen

  local message = { topic = "Orders", body = "x\0y", keys = { "k1", "k2" }, tags = "paid",
    properties = { region = "eu" }, flag = 7 }

  local function stop()
    producer:shutdown(100)
    mock:close()
  end

  -- Brokers that ask for a transaction's state after so many milliseconds, and once.
  local function start(transaction_timeout)
    mock = new_mock { brokers = 2, topics = { Orders = 4 },
      transaction_timeout = transaction_timeout, transaction_check_interval = 60000 }
    producer = rocketmq.transaction_producer { group = "tx", namesrv = mock.namesrv,
      check = function() return decision end }
  end

  before_each(function()
    decision, seen = "unknown", {}
    start(60000)
  end)
  after_each(stop)

  local function listen(more)
    local hook = { end_transaction = function(ctx) seen[#seen + 1] = ctx end }
    for name, value in pairs(more or {}) do hook[name] = value end
    return producer:add_hook(hook)
  end

  local function run(state)
    return assert(producer:send_in_transaction(message, function() return state end))
  end

  -- What a ctx must say of a transaction.
  local function check(ctx, result, state, from_check)
    local names = {}
    for name in pairs(ctx) do names[#names + 1] = name end
    table.sort(names)
    assert.same(FIELDS, names)
    local broker = result.queue.broker
    assert.same({ "tx", "Orders", broker, mock:broker(broker).addr, result.msg_id,
      result.transaction_id or result.msg_id, state, from_check },
      { ctx.group, ctx.topic, ctx.broker, ctx.addr, ctx.msg_id, ctx.transaction_id, ctx.state,
        ctx.from_check })
    local own = ctx.message
    local properties = { region = "eu" }
    if from_check then properties.TRANSACTION_CHECK_TIMES = "1" end -- as the broker gives it
    assert.same({ "Orders", "x\0y", "paid", { "k1", "k2" }, properties },
      { own.topic, own.body, own.tags, own.keys, own.properties })
  end

  for _, state in ipairs { "commit", "rollback", "unknown" } do
    it("sees a " .. state .. " that execute has decided", function()
      listen()
      local result = run(state)
      assert.equal(1, #seen)
      check(seen[1], result, state, false)
    end)
  end

  for _, state in ipairs { "commit", "rollback", "unknown" } do
    it("sees a " .. state .. " that a check has decided", function()
      decision = state
      stop()
      start(30)
      listen()
      local result = run "unknown"
      assert(mock:wait(function() return #seen >= 2 end, 20000))
      check(seen[1], result, "unknown", false)
      check(seen[2], result, state, true)
    end)
  end

  it("is called before the broker is told, once for each time that it is", function()
    local told = {}
    producer:add_hook { end_transaction = function(ctx)
      told[#told + 1] = { ctx.state, #mock:requests { code = END } }
    end }
    run "commit"
    run "rollback"
    assert(mock:wait(function() return #mock:requests { code = END } == 2 end))
    assert.same({ { "commit", 0 }, { "rollback", told[2][2] } }, told)
    assert.is_true(told[2][2] < 2)
  end)

  it("is called in the order of adding, and not any more once it is removed", function()
    local order = {}
    local first = producer:add_hook { end_transaction = function() order[#order + 1] = 1 end }
    producer:add_hook { end_transaction = function() order[#order + 1] = 2 end }
    run "commit"
    producer:remove_hook(first)
    run "commit"
    assert.same({ 1, 2, 2 }, order)
  end)

  for _, strict in ipairs { false, true } do
    it("that raises keeps nothing from being told, strict = " .. tostring(strict), function()
      producer:add_hook { strict = strict, end_transaction = function() error "broken" end }
      listen()
      for count = 1, 3 do
        local result, err = producer:send_in_transaction(message, function() return "commit" end)
        assert.is_nil(err)
        assert.equal("commit", result.transaction_state)
        assert.equal(count, producer:stats().hook_errors)
        assert.equal(count, #seen) -- the others are called
      end
      assert(mock:wait(3))
      assert.equal(3, #mock:transactions { state = "committed" })
    end)
  end

  it("that changes what it sees changes nothing", function()
    producer:add_hook { end_transaction = function(ctx)
      ctx.state, ctx.message.body, ctx.message.properties.region = "rollback", "other", "us"
      return "rollback"
    end }
    assert.equal("commit", run("commit").transaction_state)
    assert(mock:wait(1))
    assert.same({ "x\0y", "eu" },
      { mock:messages()[1].body, mock:messages()[1].properties.region })
  end)

  it("that raises is logged once, with its place", function()
    local ended = child.run { "--mock=default", "-e", [[
      local rocketmq = require "rocketmq"
      local producer = rocketmq.transaction_producer { group = "tx",
        check = function() return "unknown" end }
      producer:add_hook { name = "broken", end_transaction = function() error "here" end }
      for _ = 1, 3 do
        assert(producer:send_in_transaction({ topic = "T", body = "x" },
          function() return "commit" end))
      end
      print(producer:stats().hook_errors)
    ]] }
    assert.same({ 0, "3\n" }, { ended.code, ended.stdout }, ended.stderr)
    local _, lines = ended.stderr:gsub("%(command line%):4: here", "")
    assert.equal(1, lines, ended.stderr)
    assert.matches("hook broken[^\n]*end_transaction", ended.stderr)
  end)

  it("may not wait", function()
    local why
    producer:add_hook { end_transaction = function()
      local ok, err = pcall(rocketmq.sleep, 1)
      why = not ok and err
    end }
    run "commit"
    assert.matches("sleep", why)
  end)
end)
