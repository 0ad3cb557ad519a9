-- Name servers and brokers that send everything malformed, whatever the client is just doing: each send still
-- ends, once and in time, with an error that says what was met; sends to healthy brokers go on; and memory
-- stays where it was.
local cluster = require "spec.support.cluster"
local malformed = require "spec.support.malformed"
local rocketmq = require "rocketmq"
local uv = require "luv"

local HEALTHY = 20000 -- milliseconds that a send has which nothing should hinder
local HOSTILE = 250   -- that one has whose answer may never come

local function on(broker, more)
  local options = { queue = { broker = broker, id = 0 }, timeout = HEALTHY, retries = 0 }
  for name, value in pairs(more or {}) do options[name] = value end
  return options
end

local MESSAGE = { topic = "Orders", body = "x" }

local function rule_of(form, more)
  local rule = {}
  for name, value in pairs(form.rule) do rule[name] = value end
  for name, value in pairs(more) do rule[name] = value end
  return rule
end

-- Runs `fn` for each form of the lists; a failure names its form.
local function each(lists, fn)
  for _, list in ipairs(lists) do
    for _, form in ipairs(list) do
      local ok, err = pcall(fn, form)
      if not ok then
        error(form.name .. ": " .. tostring(type(err) == "table" and err.message or err), 0)
      end
    end
  end
end

local function check_error(form, err)
  if form.says and not tostring(err):find(form.says) then
    error(("the error %q does not say %q"):format(tostring(err), form.says), 0)
  end
end

local all_frames = { malformed.frames, malformed.headers, malformed.nonsense }

local function resident()
  collectgarbage()
  collectgarbage()
  return uv.resident_set_memory()
end

-- Generous: the sanitizers keep what was freed for a while.
local MOST_GROWTH = os.getenv "ASAN_OPTIONS" and 600 * 2 ^ 20 or 96 * 2 ^ 20

-- Within a describe: memory is in its end where it was in its beginning.
local function keeps_memory()
  local before
  setup(function() before = resident() end)
  teardown(function()
    local growth = resident() - before
    assert.is_true(growth < MOST_GROWTH, ("memory grew by %d bytes"):format(growth))
  end)
end

describe("a client of a broker that sends malformed", function()
  local c

  keeps_memory()

  before_each(function()
    c = cluster.new({ brokers = 2, topics = { Orders = 1, Questions = 1 },
      transaction_timeout = 30, transaction_check_interval = 30 }, { send_msg_timeout = HEALTHY })
    assert(c.producer:send(MESSAGE, on "broker-a"))
    assert(c.producer:send(MESSAGE, on "broker-b"))
  end)

  after_each(function() c:finish() end)

  local function healthy_goes_on()
    assert(c.producer:send(MESSAGE, on "broker-b"))
  end

  -- The broker is itself again: the client comes back to it, perhaps after a pause.
  local function recovers()
    assert(c.mock:wait(function()
      return c.producer:send(MESSAGE, on "broker-a")
    end, HEALTHY))
  end

  it("answers to a request ends that request and says what it was", function()
    each({ malformed.frames, malformed.headers, malformed.nonsense }, function(form)
      local rule = c.mock:rule(rule_of(form, { at = "broker-a", code = 310, times = 1 }))
      local result, err = c.producer:send(MESSAGE, on("broker-a",
        { timeout = form.says and HEALTHY or HOSTILE }))
      assert.equal(1, rule.acted)
      assert.is_true(result ~= nil or err.kind ~= nil)
      if form.says then
        assert.is_nil(result)
        assert.equal("closed", err.kind)
        check_error(form, err)
        check_error(form, err.tries[1].message)
        assert.equal(not (form.rule.close or form.rule.reset or form.rule.half_close),
          err.message:find("Check that this is the address of a broker", 1, true) ~= nil)
      end
      healthy_goes_on()
      recovers()
    end)
  end)

  it("answers that claim a place end well or badly, never both", function()
    each({ malformed.send_replies }, function(form)
      c.mock:rule(rule_of(form, { at = "broker-a", code = 310, times = 1 }))
      local result, err = c.producer:send(MESSAGE, on("broker-a", { timeout = HEALTHY }))
      assert.is_true((result ~= nil) ~= (err ~= nil))
      if result then assert.is_truthy(tostring(result)) else assert.is_truthy(err.message) end
      healthy_goes_on()
      recovers()
    end)
  end)

  it("bytes as the connection is made ends what waits for it", function()
    each({ malformed.frames }, function(form)
      local rule = rule_of(form, { at = "broker-a", on = "connect", times = 1 })
      -- What changes an answer has nothing to change yet.
      if rule.cut or rule.length then return end
      rule = c.mock:rule(rule)
      c.mock:broker("broker-a"):disconnect()
      local err
      assert(c.mock:wait(function() -- until it has noticed that the old one has gone
        err = select(2, c.producer:send(MESSAGE, on "broker-a"))
        return rule.acted == 1
      end, HEALTHY))
      if err then check_error(form, err) end
      healthy_goes_on()
      recovers()
    end)
  end)

  it("bytes on an idle connection costs nothing but the connection", function()
    local fake = { opaque = 5, code = 310 }
    each(all_frames, function(form)
      local raw = form.rule.raw
      if not raw then return end
      c.mock:broker("broker-a"):write(type(raw) == "function" and raw(fake) or raw)
      rocketmq.sleep(2)
      recovers()
      healthy_goes_on()
    end)
  end)

  it("answers among many ends each of them exactly once", function()
    each(all_frames, function(form)
      c.mock:rule(rule_of(form, { at = "broker-a", code = 310, nth = 20, times = 1 }))
      local calls, ended, stored = {}, 0, 0
      for index = 1, 64 do
        local options = on("broker-a", { timeout = form.says and HEALTHY or HOSTILE })
        assert(c.producer:send_async(MESSAGE, options, function(result)
          calls[index] = (calls[index] or 0) + 1
          ended = ended + 1
          if result then stored = stored + 1 end
        end))
      end
      for _ = 1, 4 do healthy_goes_on() end
      assert(c.mock:wait(function() return ended == 64 end, HEALTHY))
      for index = 1, 64 do assert.equal(1, calls[index]) end
      assert.is_true(stored >= 19, stored .. " of 64 were acknowledged")
      recovers()
    end)
  end)

  it("bytes during a shutdown does not hold it up", function()
    local fake = { opaque = 5, code = 310 }
    each(all_frames, function(form)
      local producer = c:add_producer { send_msg_timeout = HEALTHY }
      local rule = c.mock:rule { at = "broker-a", code = 310, silent = true }
      local ended = 0
      for _ = 1, 8 do
        assert(producer:send_async(MESSAGE, on "broker-a", function() ended = ended + 1 end))
      end
      assert(c.mock:wait(function() return rule.acted == 8 end, HEALTHY))
      local leaving = rocketmq.spawn(function() return producer:shutdown(HEALTHY) end)
      local raw = form.rule.raw or "HTTP/1.1 400 Bad Request\r\n\r\n"
      c.mock:broker("broker-a"):write(type(raw) == "function" and raw(fake) or raw)
      -- What the bytes do not end, the broker does.
      c.mock:broker("broker-a"):disconnect()
      leaving:wait()
      assert.equal(8, ended)
      rule:remove()
    end)
  end)

  it("answers to heartbeats does not keep sends from it", function()
    each({ malformed.frames, malformed.headers, malformed.nonsense }, function(form)
      local rule = c.mock:rule(rule_of(form, { at = "broker-a", code = "HEART_BEAT", times = 2 }))
      local producer = c:add_producer { send_msg_timeout = HEALTHY, retries = 0 }
      assert(c.mock:wait(function() return producer:send(MESSAGE, on "broker-a") end, HEALTHY))
      assert(producer:send(MESSAGE, on "broker-b"))
      producer:shutdown()
      rule:remove()
    end)
  end)

  local queue = { topic = "Orders", broker = "broker-a", id = 0 }

  -- What is asked of a broker that is no send: its code, the call, and the wrong fields that an answer
  -- may have.
  local questions = {
    { 30, function(options) return c.producer:max_offset(queue, options) end, malformed.offsets },
    { 31, function(options) return c.producer:min_offset(queue, options) end, malformed.offsets },
    { 29, function(options) return c.producer:search_offset(queue, 1, options) end,
      malformed.offsets },
    { 32, function(options) return c.producer:earliest_time(queue, options) end,
      malformed.offsets },
    { 17, function(options)
      return c.producer:create_topic { topic = "New", queues = 1, brokers = { "broker-a" },
        timeout = options and options.timeout }
    end },
    { 33, function(options)
      local sent = assert(c.producer:send(MESSAGE, on "broker-a"))
      return c.producer:view_message(sent.offset_msg_id, options)
    end },
    { 370, function(options)
      local sent = assert(c.producer:send({ topic = "Orders", body = "x", delay_seconds = 600 },
        on "broker-a"))
      return c.producer:recall("Orders", sent.recall_handle, options)
    end, malformed.recalls },
  }

  for _, question in ipairs(questions) do
    local code, ask, wrong = unpack(question)
    it("answers to a request of code " .. code .. " ends it and says what it was", function()
      each({ malformed.frames, malformed.headers, wrong }, function(form)
        local rule = c.mock:rule(rule_of(form, { at = "broker-a", code = code }))
        local value, err = ask { timeout = HEALTHY }
        assert.is_nil(value)
        assert.equal("closed", err.kind)
        check_error(form, err)
        assert.is_true(rule.acted > 0)
        rule:remove()
        healthy_goes_on()
        assert(c.mock:wait(function() return ask() end, HEALTHY))
      end)
      each({ malformed.nonsense }, function(form)
        local rule = c.mock:rule(rule_of(form, { at = "broker-a", code = code }))
        local value, err = ask { timeout = HOSTILE }
        assert.is_true(value ~= nil or err.kind ~= nil)
        rule:remove()
        healthy_goes_on()
        assert(c.mock:wait(function() return ask() end, HEALTHY))
      end)
    end)
  end

  it("messages as those that were looked for ends the search, well or badly", function()
    local sent = assert(c.producer:send(MESSAGE, on "broker-a"))
    each({ malformed.stored }, function(form)
      local rule = c.mock:rule { at = "broker", code = 12, answer = { code = 0,
        body = form.body } }
      local found, err = c.producer:query_message("Orders", "k", { timeout = HEALTHY })
      assert.is_true(type(found) == "table" or err ~= nil)
      for _, message in ipairs(found or {}) do assert.equal("string", type(message.topic)) end
      rule:remove()
      rule = c.mock:rule { at = "broker-a", code = 33, answer = { code = 0, body = form.body } }
      found, err = c.producer:view_message(sent.offset_msg_id, { timeout = HEALTHY })
      assert.is_nil(found)
      assert.is_truthy(err.message)
      rule:remove()
      healthy_goes_on()
    end)
  end)

  it("answers while a request waits for its reply lets it have that, once", function()
    local arrived, go
    c.mock:reply("Questions", function(asked)
      arrived = true
      assert(c.mock:wait(function() return go end, HEALTHY))
      return "re: " .. asked.body
    end)
    each(all_frames, function(form)
      arrived, go = false, false
      local ends, reply, err = 0, nil, nil
      assert(c.producer:request_async({ topic = "Questions", body = form.name }, on "broker-a",
        function(...)
          ends = ends + 1
          reply, err = ...
        end))
      assert(c.mock:wait(function() return arrived end, HEALTHY))
      local rule = c.mock:rule(rule_of(form, { at = "broker-a", code = 310, times = 1 }))
      c.producer:send(MESSAGE, on("broker-a", { timeout = form.says and HEALTHY or HOSTILE }))
      assert.equal(1, rule.acted)
      assert.equal(0, ends)
      recovers() -- and is connected again, so that the reply finds it
      go = true
      assert(c.mock:wait(function() return ends > 0 end, HEALTHY))
      assert.is_nil(err)
      assert.equal("re: " .. form.name, reply.body)
      healthy_goes_on()
      assert.equal(1, ends)
      assert.equal(0, c.producer:stats().requests)
    end)
  end)

  it("answers while a transaction is open keeps nobody from committing it", function()
    local producer = rocketmq.transaction_producer { group = "tx", namesrv = c.mock.namesrv,
      send_msg_timeout = HEALTHY, check = function() return "commit" end }
    c.producers[#c.producers + 1] = producer
    local function committed() return #c.mock:transactions { state = "committed" } end
    each(all_frames, function(form)
      local before = committed()
      local rule
      local result, err = producer:send_in_transaction(MESSAGE, function()
        rule = c.mock:rule(rule_of(form, { at = "broker-a", code = 310, times = 1 }))
        producer:send(MESSAGE, on("broker-a", { timeout = form.says and HEALTHY or HOSTILE }))
        return "commit"
      end, nil, on "broker-a")
      assert.equal(1, rule.acted)
      assert.equal("commit", result.transaction_state)
      -- Whom it could not be told asks.
      assert.is_true(err == nil or err.kind ~= nil)
      assert(c.mock:wait(function() return committed() > before end, HEALTHY))
      healthy_goes_on()
      recovers()
    end)
    -- The end itself is answered so, though nobody asks for an answer.
    each(all_frames, function(form)
      local before = committed()
      local rule = c.mock:rule(rule_of(form, { at = "broker-a", code = 37, times = 1 }))
      local result = assert(producer:send_in_transaction(MESSAGE, function() return "commit" end,
        nil, on "broker-a"))
      assert.equal("commit", result.transaction_state)
      assert(c.mock:wait(function()
        producer:send(MESSAGE, on "broker-a") -- so that the broker has somebody to ask
        return committed() > before and rule.acted == 1
      end, HEALTHY))
      healthy_goes_on()
      recovers()
    end)
    -- A half message that is not acknowledged begins no transaction.
    each({ malformed.frames, malformed.headers }, function(form)
      local rule = c.mock:rule(rule_of(form, { at = "broker-a", code = 310, times = 1 }))
      local result, err = producer:send_in_transaction(MESSAGE, function()
        error("execute is called", 0)
      end, nil, on "broker-a")
      assert.is_nil(result)
      check_error(form, err)
      assert.equal(1, rule.acted)
      recovers()
    end)
  end)

  it("requests that make no sense gets answers, or none, and sends go on", function()
    local broker = c.mock:broker "broker-a"
    for _, request in ipairs(malformed.requests) do
      request.oneway, request.timeout = nil, 50
      broker:request(request)
      request.oneway = true
      broker:request(request)
      assert(c.producer:send(MESSAGE, on "broker-a"))
    end
    assert.equal(1, #broker.server:open_connections())
  end)

  it("answers with go-away without end is not asked without end", function()
    local rule = c.mock:rule { at = "broker-a", code = 310, go_away = true }
    local _, err = c.producer:send(MESSAGE, on("broker-a", { timeout = 1000, retries = 3 }))
    assert.is_truthy(err.message)
    assert.is_true(rule.acted <= 20, rule.acted)
    healthy_goes_on()
  end)

  it("requests without end, and reads no answers, is hung up on", function()
    local broker = c.mock:broker "broker-a"
    local connection = broker.server:open_connections()[1]
    connection:pause_reading(60000)
    local request = "\0\0\0\32\0\0\0\28" .. '{"code":9999,"opaque":12345}'
    local flood = request:rep(20000)
    for _ = 1, 40 do
      if connection.closed then break end
      broker:write(flood)
      rocketmq.sleep(1)
    end
    healthy_goes_on()
    recovers()
    local sends = c.mock:requests { at = "broker-a", code = 310 }
    assert.are_not.equal(connection.number, sends[#sends].connection)
  end)
end)

describe("a client of a name server that sends malformed", function()
  local c

  keeps_memory()

  before_each(function()
    c = cluster.new({ namesrvs = 2, topics = { Orders = 1 } })
  end)

  after_each(function() c:finish() end)

  it("answers says what was met there, where the other one is no better", function()
    each({ malformed.frames, malformed.headers }, function(form)
      if not form.says then return end
      local rule = c.mock:rule(rule_of(form, { at = "namesrv" }))
      local producer = c:add_producer { send_msg_timeout = HEALTHY, retries = 0 }
      local _, err = producer:send(MESSAGE)
      assert.equal("route", err.kind)
      check_error(form, err)
      assert.matches("Check the setting namesrv", err.message)
      producer:shutdown()
      rule:remove()
    end)
  end)

  it("answers, or as it is connected to, is passed over for the other one", function()
    for index = 1, 2 do
      for _, when in ipairs { "request", "connect" } do
        each({ malformed.frames, malformed.headers }, function(form)
          local rule = rule_of(form, { at = "namesrv-" .. index, on = when })
          if when == "connect" and (rule.cut or rule.length
            or type(rule.raw) == "function") then return end
          rule = c.mock:rule(rule)
          local producer = c:add_producer { send_msg_timeout = HEALTHY }
          assert(producer:send(MESSAGE))
          producer:shutdown()
          rule:remove()
        end)
      end
    end
  end)

  it("routes says so, and is forgiven when it tells a good one", function()
    each({ malformed.routes }, function(form)
      for index = 1, 2 do c.mock:name_server(index):set_route("Orders", form.body) end
      local producer = c:add_producer { send_msg_timeout = 1000, retries = 0 }
      local result, err = producer:send(MESSAGE)
      assert.is_nil(result)
      assert.is_true(err.kind == "route" or err.kind == "connect" or err.kind == "timeout",
        err.kind)
      assert.is_true(#err.message < 3000, #err.message)
      for index = 1, 2 do c.mock:name_server(index):set_route("Orders", nil) end
      assert(c.mock:wait(function() return producer:send(MESSAGE) end, HEALTHY))
      producer:shutdown()
    end)
  end)

  it("routes while it sends leaves it with the one that it has", function()
    local producer = c:add_producer { send_msg_timeout = HEALTHY, poll_name_server_interval = 10 }
    assert(producer:send(MESSAGE))
    for _, form in ipairs(malformed.routes) do
      for index = 1, 2 do c.mock:name_server(index):set_route("Orders", form.body) end
      local asked = #c.mock:requests { code = 105 }
      assert(c.mock:wait(function()
        local result, err = producer:send(MESSAGE)
        -- A route that can be read is believed.
        assert.is_true(result ~= nil or err.kind == "route" or err.kind == "connect"
          or err.message:find("closed by this side", 1, true) ~= nil, -- it has moved
          form.name .. ": " .. tostring(err))
        return #c.mock:requests { code = 105 } > asked + 1
      end, HEALTHY), form.name)
    end
    for index = 1, 2 do c.mock:name_server(index):set_route("Orders", nil) end
    assert(c.mock:wait(function() return producer:send(MESSAGE) end, HEALTHY))
  end)

  it("one byte after the other is waited for", function()
    c.mock:rule { code = 105, split = 100000, pause = 0 }
    c.mock:rule { code = 310, split = 100000, pause = 0 }
    assert(c.producer:send(MESSAGE, { timeout = HEALTHY }))
  end)
end)
