-- rocketmq.hook.audit
local cjson = require "cjson"
local child = require "spec.support.child"
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"
local wait = require "rocketmq.mock.wait"

local SEND = "SEND_MESSAGE_V2"

describe("the audit hook", function()
  local c, producer, path
  before_each(function()
    c = cluster.new { brokers = 1, topics = { Orders = 1 } }
    producer = c.producer
    path = os.tmpname()
  end)
  after_each(function()
    c:finish()
    os.remove(path)
    os.remove(path .. ".1")
  end)

  local function lines(name)
    local list = {}
    for line in io.lines(name or path) do list[#list + 1] = cjson.decode(line) end
    return list
  end

  local function audit(options)
    options.path = options.path or path
    options.flush_ms = options.flush_ms or 0
    producer:add_hook(rocketmq.hook.audit(options))
  end

  local message = { topic = "Orders", body = "x\0\255", tags = "t", keys = { "k1", "k2" } }

  it("writes a line for what is stored", function()
    audit {}
    local result = assert(producer:send(message))
    local record = lines()[1]
    assert.matches("^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ$", record.time)
    assert.same({ "spec", "sync", "Orders", result.msg_id, "normal", "t", 3, "broker-a", 0, 1, 0 },
      { record.group, record.mode, record.topic, record.msg_id, record.type, record.tags,
        record.body_bytes, record.broker, record.queue, record.attempt, record.queue_offset })
    assert.same({ "k1", "k2" }, record.keys)
    assert.same({ "SEND_OK", result.offset_msg_id }, { record.status, record.offset_msg_id })
    assert.is_nil(record.error)
    assert.is_nil(record.will_retry)
  end)

  it("writes a line for what is not", function()
    audit {}
    c.mock:rule { code = SEND, close = true }
    local _, err = producer:send(message, { retries = 1 })
    local all = lines()
    assert.equal(1, #all)
    assert.same({ kind = "closed", code = 0, message = err.message, maybe_stored = true },
      all[1].error)
    assert.equal(2, all[1].attempt)
    assert.is_nil(all[1].status)
  end)

  it("writes a line for what another hook has spoiled", function()
    producer:add_hook { before = function(ctx) ctx.message.body = 5 end }
    audit {}
    local _, err = producer:send(message)
    local record = lines()[1]
    assert.same({ "hook", err.message, 3 },
      { record.error.kind, record.error.message, record.body_bytes })
  end)

  it("writes a line for each attempt", function()
    audit { attempts = true }
    c.mock:rule { code = SEND, times = 1, close = true }
    assert(producer:send(message))
    local all = lines()
    assert.same({ true, 1, "closed" }, { all[1].will_retry, all[1].attempt, all[1].error.kind })
    assert.same({ 2, "SEND_OK" }, { all[2].attempt, all[2].status })
  end)

  it("writes what is added", function()
    audit { more = function(record, ctx) record.customer = ctx.message.tags .. "!" end }
    assert(producer:send(message))
    assert.equal("t!", lines()[1].customer)
  end)

  it("adds to what the file has", function()
    local file = assert(io.open(path, "w"))
    file:write '{"first":true}\n'
    file:close()
    audit {}
    assert(producer:send(message))
    assert.same({ true, "SEND_OK" }, { lines()[1].first, lines()[2].status })
  end)

  it("gathers lines and writes them after a while", function()
    audit { flush_ms = 20 }
    for _ = 1, 10 do assert(producer:send(message)) end
    assert(wait(function() return #lines() == 10 end, 10000))
  end)

  for _, flush_ms in ipairs { 0, 20 } do
    it("opens a file anew that was moved away, with flush_ms = " .. flush_ms, function()
      audit { flush_ms = flush_ms }
      assert(producer:send(message))
      assert(wait(function() return #lines() == 1 end, 10000))
      assert(os.rename(path, path .. ".1"))
      local after = 0
      assert(wait(function()
        assert(producer:send(message))
        after = after + 1
        local file = io.open(path)
        if file then file:close() end
        return file ~= nil
      end, 10000))
      assert(wait(function() return #lines(path .. ".1") + #lines() == 1 + after end, 10000))
      assert.is_true(#lines() > 0)
    end)
  end

  it("writes what is left when the process ends", function()
    local ended = child.run { "--mock=default", "-e", ([[
      local rocketmq = require "rocketmq"
      local producer = rocketmq.producer { group = "g" }
      producer:add_hook(rocketmq.hook.audit { path = %q, flush_ms = 3600000 })
      for _ = 1, 5 do assert(producer:send { topic = "T", body = "x" }) end
    ]]):format(path) }
    assert.equal(0, ended.code, ended.stderr)
    assert.equal(5, #lines())
  end)

  it("tells that it cannot write: at once, and later", function()
    assert.error_matches(function() rocketmq.hook.audit { path = "/nowhere/audit" } end,
      "audit: cannot write: /nowhere/audit: No such file")
    audit { path = "/dev/full" }
    assert(producer:send(message)) -- the message goes on
    assert.equal(1, producer:stats().hook_errors)
  end)

  it("that is strict fails what it cannot write", function()
    audit { path = "/dev/full", strict = true }
    local result, err = producer:send(message)
    assert.is_nil(result)
    assert.same({ "hook", true }, { err.kind, err.maybe_stored })
    assert.matches("strict hook audit: rocketmq.hook.audit: cannot write to /dev/full: No space",
      err.message)
  end)

  it("that gathers lines logs at once that they are lost, counts it, and raises later", function()
    local ended = child.run { "--mock=default", "-e", [[
      local rocketmq = require "rocketmq"
      local producer = rocketmq.producer { group = "g" }
      local hook, audit = rocketmq.hook.audit { path = "/dev/full", flush_ms = 1 }
      producer:add_hook(hook)
      local function send() assert(producer:send { topic = "T", body = "x" }) end
      local wait = require "rocketmq.mock.wait"
      print(audit:errors())
      send()
      assert(wait(function() return audit:errors() == 1 end, 20000))
      print(audit:errors())
      print(producer:stats().hook_errors)
      io.stderr:write "now the next one\n"
      send()
      print(producer:stats().hook_errors)
      assert(wait(function() return audit:errors() == 2 end, 20000))
    ]] }
    assert.equal(0, ended.code, ended.stderr)
    assert.equal("0\tnil\n1\tNo space left on device\n0\n1\n", ended.stdout)
    local before = ended.stderr:match "^(.*)now the next one"
    assert.matches("error hook audit: cannot write to /dev/full: No space left on device; "
      .. "up to 1 line is lost%. ", before)
    local _, told = ended.stderr:gsub("told once until", "")
    assert.equal(1, told, ended.stderr)
  end)

  it("tells at the end of the process what it could not write", function()
    local ended = child.run { "--mock=default", "-e", [[
      local rocketmq = require "rocketmq"
      local producer = rocketmq.producer { group = "g" }
      producer:add_hook(rocketmq.hook.audit { path = "/dev/full", flush_ms = 3600000 })
      for _ = 1, 3 do assert(producer:send { topic = "T", body = "x" }) end
    ]] }
    assert.equal(0, ended.code, ended.stderr)
    assert.matches("error hook audit: cannot write to /dev/full: No space left on device; "
      .. "up to 3 lines are lost", ended.stderr)
  end)

  it("writes when it is asked to, and says whether it could", function()
    local full, full_audit = rocketmq.hook.audit { path = "/dev/full", flush_ms = 3600000 }
    local hook, own = rocketmq.hook.audit { path = path, flush_ms = 3600000 }
    producer:add_hook(full)
    producer:add_hook(hook)
    assert.is_true(full_audit:flush()) -- nothing is gathered
    assert(producer:send(message))
    assert.equal(0, #lines())
    assert.is_true(own:flush())
    assert.equal(1, #lines())
    assert.same({ nil, "No space left on device" }, { full_audit:flush() })
    assert.is_true(full_audit:flush())
    assert.same({ 1, "No space left on device" }, { full_audit:errors() })
    assert.same({ 0 }, { own:errors() })
  end)

  it("goes on when there is room again", function()
    local hook, own = rocketmq.hook.audit { path = "/dev/full", flush_ms = 0 }
    producer:add_hook(hook)
    assert(producer:send(message))
    assert.same({ 1, 1 }, { (own:errors()), producer:stats().hook_errors })
    own.of.path = path -- as if it had been mended
    for _ = 1, 2 do assert(producer:send(message)) end
    assert.equal(2, #lines())
    assert.same({ 1, 1 }, { (own:errors()), producer:stats().hook_errors })
  end)

  it("must be given a path", function()
    assert.error_matches(function() rocketmq.hook.audit {} end, "path must be given")
    assert.error_matches(function() rocketmq.hook.audit { path = 1 } end, "path must be a string")
    assert.error_matches(function() rocketmq.hook.audit { path = "" } end, "path must be given")
  end)

  it("must be given a time that a timer can have", function()
    for _, ms in ipairs { -1, 0 / 0, 1 / 0, 86400001 } do
      assert.error_matches(function() rocketmq.hook.audit { path = path, flush_ms = ms } end,
        "flush_ms must be a number from 0 to 86400000, not ")
    end
    audit { flush_ms = 0.25 }
    for count = 1, 3 do
      assert(producer:send(message))
      assert(wait(function() return #lines() == count end, 10000))
    end
  end)

  it("says how what it gives is called", function()
    local _, own = rocketmq.hook.audit { path = path }
    assert.error_matches(function() own.flush() end, "audit.flush: call it with a colon")
    local _, metrics = rocketmq.hook.metrics()
    assert.error_matches(function() metrics.rows() end, "metrics.rows: call it with a colon")
  end)

  it("lets a hook that is not used any more go", function()
    local weak = setmetatable({}, { __mode = "v" })
    weak.hook = rocketmq.hook.audit { path = path, flush_ms = 1 }
    rocketmq.sleep(5)
    collectgarbage()
    collectgarbage()
    assert.is_nil(weak.hook)
  end)
end)
