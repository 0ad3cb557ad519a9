-- Transactions from a script: what is sent, what is decided, and how brokers' questions are answered.
local child = require "spec.support.child"
local rocketmq = require "rocketmq"
local new_mock = require "rocketmq.mock"
local wait = require "rocketmq.mock.wait"

local END, CHECK = "END_TRANSACTION", "CHECK_TRANSACTION_STATE"

describe("a transaction", function()
  local mock, producer, check
  local producers

  local function start(settings)
    local given = { group = "tx", namesrv = mock.namesrv,
      check = function(message) return check(message) end }
    for name, value in pairs(settings or {}) do given[name] = value end
    local made = rocketmq.transaction_producer(given)
    producers[#producers + 1] = made
    return made
  end

  -- Asks soon, unless `slow`.
  local function set_up(description, settings)
    if mock then mock:close() end
    description = description or {}
    description.topics = { Orders = 4 }
    mock = new_mock(description)
    producer = start(settings)
  end

  before_each(function()
    mock, producers = nil, {}
    check = function() return "unknown" end
    set_up { transaction_timeout = 30, transaction_check_interval = 30 }
  end)
  after_each(function()
    for _, made in ipairs(producers) do made:shutdown(100) end
    mock:close()
  end)

  local message = { topic = "Orders", body = "x", keys = { "k1", "k2" }, tags = "paid",
    properties = { region = "eu" }, flag = 7 }

  -- Asks soon, and once: a second question may else come before the first one is answered.
  local function asks_once()
    set_up { transaction_timeout = 30, transaction_check_interval = 60000 }
  end

  local function decided(count)
    assert(mock:wait(function()
      return #mock:transactions() - #mock:transactions { state = "prepared" } >= count
    end))
  end

  it("that is committed is delivered, once, and not before", function()
    local seen
    local result, err = producer:send_in_transaction(message, function(own, arg)
      seen = { own = own, arg = arg, visible = mock:count() }
      return "commit"
    end, { 1 })
    assert.is_nil(err)
    assert.equal("SEND_OK", result.status)
    assert.equal("commit", result.transaction_state)
    assert.equal("commit", result:fields().transaction_state)
    assert.equal(0, seen.visible)
    assert.same({ 1 }, seen.arg)
    assert.equal(result.msg_id, seen.own.msg_id)
    assert.equal(result.msg_id, seen.own.transaction_id)
    assert.equal("x", seen.own.body)
    decided(1)
    assert.equal(1, mock:count())
    local stored = mock:messages()[1]
    assert.equal("x", stored.body)
    assert.equal("paid", stored.tags)
    assert.same({ "k1", "k2" }, stored.keys)
    assert.equal("eu", stored.properties.region)
    assert.equal("tx", stored.properties.PGROUP)
    assert.equal(7, stored.flag)
    assert.equal(result.msg_id, stored.msg_id)
  end)

  it("does not change the message, nor does execute's copy", function()
    local given = { topic = "Orders", body = "x", keys = { "a" } }
    assert(producer:send_in_transaction(given, function(own)
      own.body, own.keys[1] = "other", "other"
      return "rollback"
    end))
    assert.same({ topic = "Orders", body = "x", keys = { "a" } }, given)
  end)

  it("that is rolled back is never delivered", function()
    local result, err = producer:send_in_transaction(message, function() return "rollback" end)
    assert.is_nil(err)
    assert.equal("rollback", result.transaction_state)
    decided(1)
    assert.equal("rolled back", mock:transactions()[1].state)
    assert.equal(0, mock:count())
  end)

  it("takes Java's names for what has become of it", function()
    for java, ours in pairs { COMMIT_MESSAGE = "commit", ROLLBACK_MESSAGE = "rollback",
      UNKNOW = "unknown" } do
      local result = assert(producer:send_in_transaction(message, function() return java end))
      assert.equal(ours, result.transaction_state)
    end
  end)

  it("may wait in execute, while others go on", function()
    local order = {}
    local task = rocketmq.spawn(function()
      return producer:send_in_transaction(message, function()
        order[#order + 1] = "begins"
        repeat rocketmq.sleep(1) until order[2]
        assert(producer:send { topic = "Orders", body = "inside" })
        order[#order + 1] = "ends"
        return "commit"
      end)
    end)
    assert(wait(function() return order[1] end, 5000))
    assert.equal(1, producer:stats().transactions)
    assert(producer:send { topic = "Orders", body = "outside" })
    order[#order + 1] = "outside"
    local result = task:wait()
    assert.equal("commit", result.transaction_state)
    assert.same({ "begins", "outside", "ends" }, order)
    assert.equal(0, producer:stats().transactions)
  end)

  it("is unknown when execute raises, and the error is told", function()
    local mine = setmetatable({}, { __tostring = function() return "my\nerror" end })
    local result, err = producer:send_in_transaction(message, function() error(mine) end)
    assert.equal("unknown", result.transaction_state)
    assert.equal("transaction", err.kind)
    assert.equal(mine, err.raised)
    assert.equal(result.msg_id, err.msg_id)
    assert.equal("Orders", err.topic)
    assert.matches("execute raised an error, so the state is unknown: my\nerror", err.message, 1,
      true)
    assert.matches("transaction_spec.lua:%d+", err.message)
    assert(mock:wait(function() return mock:transactions()[1].answers[1] end))
    local shown = mock:transactions()[1]
    assert.equal("unknown", shown.answers[1])
    assert.equal("executeLocalTransactionBranch exception: my", shown.remarks[1])
  end)

  it("is unknown and asked about when the error cannot say what it is", function()
    for _, says in ipairs { function() error "in __tostring" end, function() return 5 end } do
      set_up { transaction_timeout = 30, transaction_check_interval = 30 }
      local mine, calls = setmetatable({}, { __tostring = says }), 0
      check = function()
        calls = calls + 1
        if calls == 1 then error(mine) end
        return "commit"
      end
      local result, err = producer:send_in_transaction(message, function() error(mine) end)
      assert.equal("unknown", result.transaction_state)
      assert.equal(mine, err.raised)
      assert.matches("an error object %(a table%) whose __tostring fails", err.message)
      decided(1)
      assert.is_true(calls >= 2)
      assert.equal(0, producer:stats().transactions)
    end
  end)

  it("is unknown when execute returns something else, which is named", function()
    for shown, value in pairs { ["nil"] = "nil", ['"committed"'] = "committed",
      ["true"] = true } do
      if value == "nil" then value = nil end
      local result, err = producer:send_in_transaction(message, function() return value end)
      assert.equal("unknown", result.transaction_state)
      assert.equal("transaction", err.kind)
      assert.equal("execute returned " .. shown .. ', so the state is unknown; it must return '
        .. '"commit", "rollback" or "unknown"', err.message)
    end
  end)

  it("is not begun when its half message is refused", function()
    mock:rule { code = "SEND_MESSAGE_V2", answer = { code = "MESSAGE_ILLEGAL", remark = "no" } }
    local called = false
    local result, err = producer:send_in_transaction(message, function() called = true end)
    assert.is_nil(result)
    assert.equal("broker", err.kind)
    assert.is_false(called)
    assert.equal(0, #mock:requests { code = END })
    assert.equal(0, producer:stats().transactions)
  end)

  it("is rolled back, and execute not called, when its half message is stored, but", function()
    mock:rule { code = "SEND_MESSAGE_V2", answer = { code = "FLUSH_DISK_TIMEOUT" } }
    local called = false
    local result, err = producer:send_in_transaction(message, function() called = true end)
    assert.equal("FLUSH_DISK_TIMEOUT", result.status)
    assert.equal("rollback", result.transaction_state)
    assert.equal("broker", err.kind)
    assert.matches("FLUSH_DISK_TIMEOUT", err.message)
    assert.is_false(called)
    decided(1)
    assert.equal("rolled back", mock:transactions()[1].state)
  end)

  it("cannot be delayed", function()
    for _, delay in ipairs { { delay_level = 3 }, { delay_ms = 1000 }, { delay_seconds = 1 },
      { deliver_at = 4102444800000 } } do
      delay.topic, delay.body = "Orders", "x"
      local result, err = producer:send_in_transaction(delay, function() return "commit" end)
      assert.is_nil(result)
      assert.equal("message", err.kind)
      assert.matches("cannot be delayed", err.message)
    end
    assert.equal(0, #mock:requests { code = "SEND_MESSAGE_V2" })
  end)

  it("is given none by a hook either", function()
    producer:add_hook {
      before = function(ctx) ctx.message.properties.INNER_MULTI_DISPATCH = "%LMQ%phone" end,
    }
    local result, err = producer:send_in_transaction({ topic = "Orders", body = "x" },
      function() return "rollback" end)
    assert.is_nil(result)
    assert.equal("hook", err.kind)
    assert.matches("a hook cannot give a message light queues", err.message)
    assert.equal(0, #mock:requests { code = "SEND_MESSAGE_V2" })
  end)

  it("has no light queues, where brokers would show it before it is committed", function()
    for _, light in ipairs { { lmq = "phone" },
      { properties = { INNER_MULTI_DISPATCH = "%LMQ%phone" } } } do
      light.topic, light.body = "Orders", "x"
      local result, err = producer:send_in_transaction(light, function() return "rollback" end)
      assert.is_nil(result)
      assert.equal("message", err.kind)
      assert.matches("light queues", err.message)
    end
    assert.equal(0, #mock:requests { code = "SEND_MESSAGE_V2" })
  end)

  it("goes where its options say", function()
    local result = assert(producer:send_in_transaction(message, function() return "commit" end, nil,
      { queue = { broker = "broker-a", id = 2 } }))
    assert.equal(2, result.queue.id)
    result = assert(producer:send_in_transaction(message, function() return "commit" end, nil,
      { selector = function(queues, _, arg) return queues[arg] end, arg = 2 }))
    assert.equal(1, result.queue.id)
    decided(2)
    assert.equal(2, mock:count())
  end)

  describe("that the broker asks about", function()
    it("is decided by the check function, which may wait", function()
      asks_once()
      local seen
      check = function(asked)
        seen = asked
        rocketmq.sleep(5)
        return "commit"
      end
      local result = assert(producer:send_in_transaction(message,
        function() return "unknown" end))
      decided(1)
      assert.equal(1, mock:count())
      assert.same({ "unknown", "commit (check)" }, mock:transactions()[1].answers)
      assert.equal("x", seen.body)
      assert.equal("Orders", seen.topic)
      assert.same({ "k1", "k2" }, seen.keys)
      assert.equal("paid", seen.tags)
      assert.equal("eu", seen.properties.region)
      assert.equal(7, seen.flag)
      assert.equal(result.msg_id, seen.msg_id)
      assert.equal(result.msg_id, seen.transaction_id)
      assert.equal("broker-a", seen.queue.broker)
      assert.equal(result.queue.id, seen.queue.id)
      assert.is_number(seen.born_timestamp)
      assert.matches("^127.0.0.1:%d+$", seen.born_host)
      assert.equal(1, producer:stats().checks_answered)
    end)

    it("is asked about again while it is unknown, and given up in the end", function()
      set_up { transaction_timeout = 10, transaction_check_interval = 10,
        transaction_check_max = 3 }
      local asked = 0
      check = function() asked = asked + 1 return "unknown" end
      assert(producer:send_in_transaction(message, function() return "unknown" end))
      decided(1)
      assert(wait(function() return asked == 3 end, 5000))
      assert.equal("given up", mock:transactions()[1].state)
      assert.equal(0, mock:count())
    end)

    it("is answered on the connection that asked", function()
      asks_once()
      check = function() return "rollback" end
      assert(producer:send_in_transaction(message, function() return "unknown" end))
      decided(1)
      local sent = mock:requests { code = "SEND_MESSAGE_V2" }[1]
      local ends = mock:requests { code = END }
      assert.equal(2, #ends)
      assert.equal(sent.connection, ends[2].connection)
      assert.equal("true", ends[2].ext.fromTransactionCheck)
      assert.equal("RMQ_SYS_TRANS_HALF_TOPIC", ends[2].ext.topic)
      assert.equal("broker-a", ends[2].ext.bname)
    end)

    it("is not asked of the check function while execute runs", function()
      local running, asked = false, 0
      check = function()
        if running then asked = asked + 1 end
        return "rollback"
      end
      local result = assert(producer:send_in_transaction(message, function()
        running = true
        assert(mock:wait(function() return mock:transactions()[1].checks >= 2 end))
        running = false
        return "commit"
      end))
      assert.equal("commit", result.transaction_state)
      decided(1)
      assert.equal("committed", mock:transactions()[1].state)
      assert.equal(0, asked)
      assert.equal(1, mock:count())
    end)

    it("stays unknown when check raises or returns something else", function()
      local answers = { function() error("boom") end, function() return 1 end,
        function() return "commit" end }
      local asked = 0
      check = function() asked = asked + 1 return answers[asked]() end
      assert(producer:send_in_transaction(message, function() return "unknown" end))
      decided(1)
      local shown = mock:transactions()[1]
      assert.same({ "unknown", "unknown (check)", "unknown (check)", "commit (check)" },
        shown.answers)
      assert.matches("^checkLocalTransactionState Exception: .*boom$", shown.remarks[2])
      assert.matches("^checkLocalTransactionState Exception: check returned 1,", shown.remarks[3])
    end)

    it("is decided by another producer of the group when the first is gone", function()
      check = function() return "commit" end
      assert(producer:send_in_transaction(message, function() return "unknown" end))
      producer:shutdown()
      local second = start { group = "tx" }
      assert(second:send { topic = "Orders", body = "so that it is known" })
      decided(1)
      assert.equal("committed", mock:transactions()[1].state)
      assert.is_true(second:stats().checks_answered >= 1)
    end)

    it("is decided a bounded number at a time, each in a coroutine of its own", function()
      set_up({ transaction_timeout = 50, transaction_check_interval = 50 },
        { check_concurrency = 3 })
      local now, most = 0, 0
      check = function()
        now = now + 1
        most = math.max(most, now)
        rocketmq.sleep(3)
        now = now - 1
        return "commit"
      end
      for i = 1, 20 do
        assert(producer:send_in_transaction({ topic = "Orders", body = tostring(i) },
          function() return "unknown" end))
      end
      decided(20)
      assert.equal(3, most)
      assert.equal(20, mock:count())
    end)

    it("waits for a slow check no longer than the limit of those that wait", function()
      set_up({ transaction_timeout = 20, transaction_check_interval = 20 },
        { check_concurrency = 1, check_request_hold_max = 2 })
      local release = false
      check = function()
        while not release do rocketmq.sleep(1) end
        return "commit"
      end
      for i = 1, 10 do
        assert(producer:send_in_transaction({ topic = "Orders", body = tostring(i) },
          function() return "unknown" end))
      end
      assert(wait(function() return producer:stats().checks_dropped > 0 end, 5000))
      release = true
      decided(10) -- those that were dropped were asked again
      assert.equal(10, mock:count())
    end)
  end)

  describe("whose end is not told", function()
    it("is asked about", function()
      asks_once()
      check = function() return "commit" end
      mock:rule { code = END, times = 1, silent = true }
      local result, err = producer:send_in_transaction(message, function() return "commit" end)
      assert.equal("commit", result.transaction_state)
      assert.is_nil(err) -- the bytes were written
      decided(1)
      assert.same({ "commit (check)" }, mock:transactions()[1].answers)
      assert.equal(1, mock:count())
    end)

    it("is told when its broker is back", function()
      local broker = mock:broker "broker-a"
      local result, err = producer:send_in_transaction(message, function()
        broker:stop()
        rocketmq.spawn(function()
          rocketmq.sleep(50)
          broker:start()
        end)
        rocketmq.sleep(10)
        return "commit"
      end)
      assert.is_nil(err)
      assert.equal("commit", result.transaction_state)
      decided(1)
      assert.equal(1, mock:count())
    end)

    it("is reported with its result", function()
      set_up(nil, { timeout = 200 })
      local broker = mock:broker "broker-a"
      local result, err = producer:send_in_transaction(message, function()
        broker:stop()
        rocketmq.sleep(5)
        return "commit"
      end)
      assert.equal("commit", result.transaction_state)
      assert.matches("could not be told to commit the transaction of message " .. result.msg_id,
        err.message, 1, true)
      assert.equal(0, producer:stats().transactions)
    end)
  end)

  it("is waited for by flush and shutdown", function()
    local finish = false
    local task = rocketmq.spawn(function()
      return producer:send_in_transaction(message, function()
        while not finish do rocketmq.sleep(1) end
        return "commit"
      end)
    end)
    assert(wait(function() return producer:stats().transactions == 1 end, 5000))
    assert.is_nil((producer:flush(1)))
    rocketmq.spawn(function()
      rocketmq.sleep(20)
      finish = true
    end)
    assert.is_true(producer:shutdown(5000))
    assert.equal("commit", task:wait().transaction_state)
    decided(1)
  end)

  it("that is open when the producer is shut down is left to the check", function()
    local finish = false
    local task = rocketmq.spawn(function()
      return producer:send_in_transaction(message, function()
        while not finish do rocketmq.sleep(1) end
        return "commit"
      end)
    end)
    assert(wait(function() return producer:stats().transactions == 1 end, 5000))
    local ok, why = producer:shutdown(20)
    assert.is_nil(ok)
    assert.matches("1 send had no answer", why.message)
    finish = true
    local result, err = task:wait()
    assert.equal("commit", result.transaction_state)
    assert.equal("state", err.kind)
    assert.equal(0, #mock:requests { code = END })
  end)

  it("wants functions where functions belong", function()
    assert.error_matches(function() rocketmq.transaction_producer { group = "g" } end,
      "rocketmq.transaction_producer: check must be a function, not nil")
    assert.error_matches(function() rocketmq.transaction_producer "g" end,
      "rocketmq.transaction_producer takes a table of settings, not string")
    assert.error_matches(function()
      rocketmq.transaction_producer { group = "g", check = print, chek_concurrency = 1 }
    end, "chek_concurrency")
    assert.error_matches(function() producer:send_in_transaction(message) end,
      "send_in_transaction: execute must be a function, not nil")
    assert.error_matches(function() producer:send_in_transaction("x", print) end,
      "the message must be a table, not string")
    assert.error_matches(function() producer.send_in_transaction(message, print) end, "colon")
    assert.error_matches(function()
      producer:send_in_transaction({ topic = "T", body = "x", tag = "y" }, print)
    end, "tag")
    local plain = rocketmq.producer { group = "g", namesrv = mock.namesrv }
    producers[#producers + 1] = plain
    assert.error_matches(function() plain:send_in_transaction(message, print) end,
      "make one with rocketmq.transaction_producer")
  end)

  it("leaves nothing of its producer behind", function()
    local weak = setmetatable({}, { __mode = "k" })
    do
      local own
      own = rocketmq.transaction_producer { group = "g", namesrv = mock.namesrv,
        check = function() return own end }
      weak[own] = true
      own:shutdown()
    end
    assert(wait(function()
      collectgarbage()
      return next(weak) == nil
    end, 5000))
  end)
end)

describe("checks that a broker makes up", function()
  local mock, producer
  local asked
  before_each(function()
    asked = 0
    mock = new_mock { topics = { Orders = 4 } }
    producer = rocketmq.transaction_producer { group = "tx", namesrv = mock.namesrv,
      check = function() asked = asked + 1 return "commit" end }
    assert(producer:send { topic = "Orders", body = "x" })
  end)
  after_each(function()
    producer:shutdown(100)
    mock:close()
  end)

  local wire = require "rocketmq.wire"
  local function stored(properties, changes)
    local message = { topic = "Orders", body = "y", properties = properties }
    for name, value in pairs(changes or {}) do message[name] = value end
    return wire.encode_stored(message)
  end
  local function ask(body, ext)
    mock:broker("broker-a"):request { code = CHECK, oneway = true, body = body,
      ext = ext or { tranStateTableOffset = 1, commitLogOffset = 2 } }
  end

  it("are ignored when they are damaged, or not for this group, and counted", function()
    ask("")
    ask("not a message")
    ask(stored("PGROUP\1other\2"))
    ask(stored("no group at all"))
    ask(stored("PGROUP\1tx\2"):sub(1, -2))
    ask(stored("PGROUP\1tx\2") .. stored("PGROUP\1tx\2"))
    ask(stored("PGROUP\1tx\2"), { tranStateTableOffset = "x", commitLogOffset = 1 })
    ask(stored("PGROUP\1tx\2"), { commitLogOffset = 1 })
    ask(stored("PGROUP\1tx\2", { sys_flag = 0x301 })) -- no zlib stream
    assert(wait(function() return producer:stats().checks_ignored == 9 end, 5000))
    assert.equal(0, asked)
    assert(producer:send { topic = "Orders", body = "the connection goes on" })
    assert.equal(1, mock:requests()[1].connection)
  end)

  it("come in a flood and leave nothing", function()
    for i = 1, 3000 do ask(stored("PGROUP\1tx\2UNIQ_KEY\1" .. i .. "\2")) end
    assert(wait(function() return #mock:requests { code = END } == 3000 end, 20000))
    assert.equal(3000, asked)
    assert.equal(3000, producer:stats().checks_answered)
  end)

  it("may ask for what no broker can name", function()
    ask(stored("PGROUP\1tx\2"), { tranStateTableOffset = "9223372036854775807",
      commitLogOffset = "-9223372036854775808" })
    assert(wait(function() return #mock:requests { code = END } == 1 end, 5000))
    local told = mock:requests({ code = END })[1].ext
    assert.equal("9223372036854775807", told.tranStateTableOffset)
    assert.equal("-9223372036854775808", told.commitLogOffset)
  end)
end)

describe("a process", function()
  local mock
  before_each(function()
    mock = new_mock { transaction_timeout = 30, transaction_check_interval = 30,
      topics = { Orders = 4 } }
  end)
  after_each(function() mock:close() end)

  local function start(script)
    return child.start { "--namesrv=" .. mock.namesrv, "-e", [[
      io.stdout:setvbuf "no"
      local rocketmq = require "rocketmq"
      local producer = rocketmq.transaction_producer { group = "tx",
        check = function() return "rollback" end }
      local message = { topic = "Orders", body = "x" }
    ]] .. script }
  end

  it("that is killed in a transaction leaves it to the next one of its group", function()
    local first = start [[
      producer:send_in_transaction(message, function()
        print "half"
        rocketmq.sleep(60000)
        return "commit"
      end)
    ]]
    assert(wait(function() return first.stdout:find "half" end, 10000))
    first:kill "sigkill"
    first:wait()
    assert.equal("prepared", mock:transactions()[1].state)
    local second = start [[
      assert(producer:send(message))
      rocketmq.sleep(60000)
    ]]
    assert(mock:wait(function() return mock:transactions()[1].state == "rolled back" end, 10000))
    second:kill "sigkill"
    second:wait()
  end)

  it("that ends in a transaction says so, and ends with status 3", function()
    local running = start [[
      rocketmq.spawn(function()
        producer:send_in_transaction(message, function()
          print "half"
          rocketmq.sleep(60000)
        end)
      end)
    ]]
    assert(wait(function() return running.stdout:find "half" end, 10000))
    running:kill "sigterm"
    local ended = running:wait()
    assert.equal(3, ended.code)
    assert.matches("1 transaction was left of producer \"tx\" undecided", ended.stderr, 1, true)
    assert.matches("1 message was not delivered", ended.stderr, 1, true)
  end)
end)
