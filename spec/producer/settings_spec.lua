-- What rocketmq.producer{...} takes, and what it says to what it does not take.
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"

describe("a producer's settings", function()
  local c
  setup(function() c = cluster.new() end)
  teardown(function() c:finish() end)

  local function raises(settings, pattern)
    local ok, why = pcall(function()
      local producer = rocketmq.producer(settings)
      return producer
    end)
    assert.is_false(ok)
    assert.truthy(why:find("settings_spec.lua:%d+: rocketmq.producer", 1), why)
    assert.truthy(why:find(pattern), why)
  end

  local function with(fields)
    local settings = { group = "g", namesrv = c.mock.namesrv }
    for name, value in pairs(fields) do settings[name] = value end
    return settings
  end

  local function made(fields)
    local producer = rocketmq.producer(with(fields))
    local settings = producer:settings()
    producer:shutdown()
    return settings
  end

  it("have RocketMQ's defaults", function()
    local settings = made {}
    assert.equal(3000, settings.send_msg_timeout)
    assert.equal(2, settings.retry_times_when_send_failed)
    assert.equal(4 * 1024 * 1024, settings.max_message_size)
    assert.equal("TBW102", settings.create_topic_key)
    assert.equal(4, settings.default_topic_queue_nums)
    assert.is_false(settings.retry_another_broker_when_not_store_ok)
    assert.equal("g", settings.group)
  end)

  it("have RocketMQ's names in Lua's spelling, short forms, and Java's names", function()
    for _, name in ipairs { "retry_times_when_send_failed", "retries",
      "retryTimesWhenSendFailed" } do
      assert.equal(7, made { [name] = 7 }.retry_times_when_send_failed)
    end
    local producer = rocketmq.producer { producerGroup = "java", namesrvAddr = c.mock.namesrv,
      sendMsgTimeout = 1234 }
    assert.equal("java", producer.group)
    assert.equal(1234, producer:settings().send_msg_timeout)
    producer:shutdown()
  end)

  it("of an unknown name raise with the nearest one", function()
    raises(with { retrys = 3 }, "unknown setting 'retrys': did you mean 'retries'%?")
    raises(with { send_timeout_msg = 3 }, "unknown setting 'send_timeout_msg'")
    raises(with { zzzzzzzzzzzz = 3 }, "unknown setting 'zzzzzzzzzzzz'")
    raises(with { zzzzzzzzzzzz = 3, retries = 1 }, "unknown setting 'zzzzzzzzzzzz'")
  end)

  it("that only Java has raise with what there is in their place", function()
    for name, hint in pairs {
      namespace = "write names of topics and groups with it", useTLS = "there is no TLS yet",
      topics = "producer:queues%(topic%)", rpcHook = "producer:add_hook",
      callbackExecutor = "callbacks and checks run as tasks", vipChannelEnabled = "Leave it out",
      transactionListener = "rocketmq.transaction_producer takes it as check",
      enableBackpressureForAsyncMode = "max_inflight", use_tls = "there is no TLS yet",
      access_key = "producer:add_hook adds it", namespace_v2 = "a hook's before_request can",
    } do
      raises(with { [name] = true }, "unknown setting '" .. name .. "': .*" .. hint)
    end
    raises({ "g" }, "names of settings must be strings, not number")
  end)

  it("of a wrong type raise with their name", function()
    raises(with { retries = "3" }, "setting retries must be a number, not string")
    raises(with { unit_mode = 1 }, "setting unit_mode must be a boolean, not number")
    raises(with { group = 5 }, "setting group must be a string, not number")
    raises(with { namesrv = 5 }, "namesrv must be a string or a list of strings, not number")
    raises(with { namesrv = { "a:1", 5 } }, "namesrv.*element 2 is a number")
    raises("g", "takes a table of settings, not string")
    raises(nil, "takes a table of settings, not nil")
  end)

  it("of a wrong value raise with their name", function()
    raises(with { retries = -1 }, "retry_times_when_send_failed .* %-1")
    raises(with { retries = 1.5 }, "retry_times_when_send_failed .* 1.5")
    raises(with { send_msg_timeout = 0 }, "send_msg_timeout")
    raises(with { sendMsgTimeout = 0 / 0 }, "[tT]imeout")
    raises(with { serialize = "xml" }, "serialize.*rocketmq.*json")
  end)

  it("of latency_fault are a boolean or a text, and lists of numbers", function()
    assert.is_false(made {}.latency_fault)
    assert.is_nil(made {}.latency_max)
    assert.is_true(made { latency_fault = true }.latency_fault)
    assert.is_true(made { sendLatencyFaultEnable = true }.latency_fault)
    assert.is_false(made { latency_fault = false }.latency_fault)
    local settings = made { latency_fault = "5.x", latency_max = { 50, 100 },
      not_available_duration = { 0, 2000 }, startDetectorEnable = true }
    assert.equal("5.x", settings.latency_fault)
    assert.same({ 50, 100 }, settings.latency_max)
    assert.same({ 0, 2000 }, settings.not_available_duration)
    assert.is_true(settings.start_detector_enable)
    assert.same({ 2000, 200 }, { settings.detect_interval, settings.detect_timeout })
    raises(with { latency_fault = "yes" }, "latency_fault must be one of: false true 5.x")
    raises(with { latency_fault = 1 },
      "setting latency_fault must be a boolean or a string, not number")
    raises(with { latency_max = "50,100" }, "setting latency_max must be a list of whole numbers")
    raises(with { latency_max = { 50, "x" } }, "setting latency_max .* element 2 is a string")
    raises(with { latency_max = { 50, 100 } }, "latency_max has 2 steps .* give both, equally long")
    raises(with { latency_max = { 100, 50 }, not_available_duration = { 0, 1 } },
      "latency_max must ascend: step 2 is 50 ms after 100 ms")
    raises(with { detect_interval = 0 }, "detect_interval")
  end)

  it("given under two names raise", function()
    raises(with { retries = 1, retryTimesWhenSendFailed = 2 }, "are the same one")
  end)

  it("without a group or with an illegal one raise", function()
    raises({ namesrv = c.mock.namesrv }, "group")
    raises(with { group = "" }, "group")
    raises(with { group = "a b" }, "group has a space at position 2")
    raises(with { group = ("g"):rep(256) }, "group is 256 bytes")
  end)

  it("with a malformed name server list raise with the part that is wrong", function()
    raises(with { namesrv = "localhost" }, "localhost")
    raises(with { namesrv = "a:9876;b:0" }, "b:0")
    raises(with { namesrv = "a:99999" }, "a:99999")
    raises(with { namesrv = ";; " }, "name")
    raises(with { namesrv = "" }, "name")
    raises(with { namesrv = {} }, "namesrv")
    raises(with { namesrv = { "a:9876", "nonsense" } }, "nonsense")
  end)

  it("take a list of name servers in every usual spelling", function()
    local addr = c.mock.namesrv
    for _, given in ipairs { addr .. ";", " " .. addr .. " ; ", addr .. "," .. addr,
      "http://" .. addr, { addr }, { addr, addr } } do
      local producer = rocketmq.producer(with { namesrv = given })
      assert(producer:send { topic = "Orders", body = "x" })
      producer:shutdown()
    end
  end)

  it("do not change the table that was given", function()
    local given = with { retries = 1 }
    rocketmq.producer(given):shutdown()
    assert.same(with { retries = 1 }, given)
  end)
end)
