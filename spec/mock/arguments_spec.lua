-- What the mock's methods say when they are given something else than they take.
local new_mock = require "rocketmq.mock"
local child = require "spec.support.child"
local raw_client = require "spec.support.raw_client"

local NAN = 0 / 0

local function no_callback() end

describe("a method of the mock", function()
  local mock, broker, name_server

  before_each(function()
    mock = new_mock { topics = { Orders = 4 } }
    broker, name_server = mock:broker "broker-a", mock:name_server()
    local client = assert(raw_client.connect(broker.addr))
    assert(client:request { code = 310, body = "x", ext = { a = "g", b = "Orders", c = "TBW102",
      d = "4", e = "0", f = "0", g = "1", h = "0" } })
    client:close()
  end)

  after_each(function() mock:close() end)

  -- Raises a text that begins so, at this file's line.
  local function refuses(pattern, fn)
    local ok, why = pcall(fn)
    assert.is_false(ok, pattern)
    assert.matches("^[^:]*arguments_spec%.lua:%d+: " .. pattern, why)
  end

  it("that tells what came refuses what names nothing", function()
    refuses("messages: 'topic' must be a text or nil, not 5", function() mock:messages(5) end)
    refuses("messages: 'topic' must be a text or nil, not a table",
      function() mock:messages { topic = "Orders" } end)
    refuses("messages: unknown name 'broker%-z', did you mean 'broker%-a'%?",
      function() mock:messages("Orders", "broker-z") end)
    refuses("messages: 'queue_id' must be a whole number .*, not '1'",
      function() mock:messages("Orders", "broker-a", "1") end)
    refuses("messages: 'queue_id' must be a whole number .*, not nan",
      function() mock:messages(nil, nil, NAN) end)
    refuses("requests: must be a table, not 'SEND_MESSAGE_V2'",
      function() mock:requests "SEND_MESSAGE_V2" end)
    refuses("requests: unknown name 'broker%-z', did you mean 'broker%-a'%?",
      function() mock:requests { broker = "broker-z" } end)
    refuses("traces: 'topic' must be a text or nil, not a table", function() mock:traces {} end)
    refuses("transactions: must be a table, not 5", function() mock:transactions(5) end)
    refuses("transactions: 'state': unknown name 'commited', did you mean 'committed'%?",
      function() mock:transactions { state = "commited" } end)
  end)

  it("that waits refuses what would never end, or end at once", function()
    refuses("wait: a number of messages must be a whole number .*, not nan",
      function() mock:wait(NAN, 1) end)
    refuses("wait: 'timeout_ms' must be .*, not nan", function() mock:wait(2, NAN) end)
    refuses("wait: 'timeout_ms' must be .*, not %-5", function() mock:wait(2, -5) end)
    refuses("wait: 'timeout_ms' must be .*, not '10'", function() mock:wait(2, "10") end)
    assert.equal(1, mock:wait(1, 0.5))
  end)

  it("that changes a broker refuses what no broker can be", function()
    for _, perm in ipairs { "6", NAN, -1, 1.5, 99, 1 / 0 } do
      refuses("set_perm: 'perm' must be a whole number from 0 to 7, not",
        function() broker:set_perm(perm) end)
    end
    refuses("set_topic: 'name' must be a text, not nil", function() broker:set_topic() end)
    refuses("set_topic: 'name' must be a text, not 5", function() broker:set_topic(5, {}) end)
    refuses("topic 'T': must be a table, not 4", function() broker:set_topic("T", 4) end)
    refuses("topic 'T': 'perm' must be a whole number from 0 to 7, not 99",
      function() broker:set_topic("T", { perm = 99 }) end)
    refuses("remove_topic: 'name' must be a text, not nil", function() broker:remove_topic() end)
    for _, server in ipairs { broker, name_server } do
      refuses("write: 'bytes' must be a string of bytes, not nil", function() server:write() end)
      refuses("write: 'bytes' must be a string of bytes, not 5", function() server:write(5) end)
      refuses("disconnect: 'reset' must be true or false or nil, not 'rst'",
        function() server:disconnect "rst" end)
    end
    refuses("request ext 'a': must be a text, a number or a boolean, not a table",
      function() broker:request { code = 39, ext = { a = {} } } end)
    refuses("broker: 'name' must be a text, not nil", function() mock:broker() end)
    refuses("rule code: a number is written without quotes, 310",
      function() mock:rule { code = "310", silent = true } end)
    refuses("rule: 'topic' must be a text, not an empty one",
      function() mock:rule { topic = "", silent = true } end)
    refuses("mock: there is no name server 'x'", function() mock:name_server "x" end)
    refuses("mock: broker broker%-a has no id '0'; ids are numbers, and it has 0",
      function() mock:broker("broker-a", "0") end)
  end)

  it("that sets a route refuses what is none", function()
    refuses("set_route: .*unknown field 'foo'",
      function() name_server:set_route("T", { foo = 1 }) end)
  end)

  it("that makes a rule refuses what cannot be sent", function()
    refuses("rule answer ext 'a': must be a text, a number or a boolean, not a table",
      function() mock:rule { answer = { code = 0, ext = { a = {} } } } end)
    refuses("rule answer ext: names must be texts, not 1",
      function() mock:rule { answer = { code = 0, ext = { "x" } } } end)
    refuses("rule: 'on' says connect; give it raw, garbage, speak, close, .* or deaf",
      function() mock:rule { on = "connect", delay = 5 } end)
    refuses("rule: 'cut' needs raw, garbage or speak when 'on' says connect",
      function() mock:rule { on = "connect", cut = 5, close = true } end)
    refuses("rule: 'garbage' is 2147483647; at most 67108864 bytes are possible",
      function() mock:rule { garbage = 2 ^ 31 - 1 } end)
    refuses("rule: 'duplicate' is 2147483647; at most 10000 are possible",
      function() mock:rule { duplicate = 2 ^ 31 - 1 } end)
  end)

  it("that makes brokers refuses ids that no broker has", function()
    for _, ids in ipairs { { "1" }, { -1 }, { NAN }, { {} } } do
      refuses("mock broker 1: 'ids' must be whole numbers",
        function() new_mock { brokers = { { ids = ids } } } end)
    end
    refuses("mock broker 1: 'ids' has 0 twice",
      function() new_mock { brokers = { { ids = { 0, 0 } } } } end)
    refuses("mock broker 1: 'ids' and 'slaves' exclude each other",
      function() new_mock { brokers = { { ids = { 0 }, slaves = 2 } } } end)
    refuses("mock broker 1: 'slaves' is 1e%+09; at most 1000 are possible",
      function() new_mock { brokers = { { slaves = 1e9 } } } end)
    refuses("mock broker 1: 'perm' must be a whole number from 0 to 7, not 99",
      function() new_mock { brokers = { { perm = 99 } } } end)
  end)

  it("that makes brokers refuses names that rules have for others", function()
    for _, name in ipairs { "broker", "namesrv", "namesrv-1", "a#1" } do
      refuses("mock broker 1: 'name' cannot be '" .. name:gsub("-", "%%-") .. "'",
        function() new_mock { brokers = { name } } end)
    end
  end)

  it("that makes topics refuses lists that are none", function()
    refuses("mock topic 'T': 'brokers' must be a list of names",
      function() new_mock { topics = { T = { brokers = { ["broker-a"] = true } } } } end)
    refuses("mock: 'brokers' must be a list",
      function() new_mock { brokers = { a = {} } } end)
  end)

  it("that listens or goes between refuses addresses that are none", function()
    refuses("mock: 'listen' must be an IPv4 address and a port",
      function() new_mock { listen = "999.0.0.1:0" } end)
    refuses("mock: 'proxy': 'a:99999' is not host:port",
      function() new_mock { proxy = "a:99999" } end)
    refuses("mock: 'proxy': 'http://a:1' is not host:port",
      function() new_mock { proxy = "http://a:1" } end)
    refuses("mock: 'proxy' names no address", function() new_mock { proxy = " ; " } end)
  end)

  it("that makes a rule refuses an answer that no header can hold", function()
    refuses("rule answer: the remark is not valid UTF%-8 %(byte 3%)",
      function() mock:rule { answer = { code = 1, remark = "ab\255" } } end)
    refuses("rule answer: ext field 'a' is not valid UTF%-8 %(byte 1%)",
      function() mock:rule { answer = { code = 1, ext = { a = "\255" } } } end)
    refuses("rule answer: the name of an ext field is not valid UTF%-8",
      function() mock:rule { answer = { code = 1, ext = { ["\255"] = "a" } } } end)
    refuses("rule answer: the frame is longer than 16777216 bytes",
      function() mock:rule { answer = { code = 1, body = ("x"):rep(2 ^ 24) } } end)
    refuses("request: ext field 'a' is not valid UTF%-8",
      function() broker:request { code = 39, ext = { a = "\255" } } end)
    refuses("request: the remark is not valid UTF%-8",
      function() broker:request { code = 39, remark = "\255" } end)
  end)

  it("that makes a rule refuses parts that contradict each other", function()
    refuses("rule: 'silent' and 'delay' exclude each other",
      function() mock:rule { silent = true, delay = 5 } end)
    refuses("rule: 'silent' and 'split' exclude each other",
      function() mock:rule { silent = true, split = 5 } end)
    refuses("rule: 'cut' of 0 and 'duplicate' exclude each other",
      function() mock:rule { cut = 0, duplicate = true, close = true } end)
    refuses("rule: 'cut' of 0 and 'delay' exclude each other",
      function() mock:rule { cut = 0, delay = 5 } end)
    refuses("rule: 'store' of false, which leaves no answer, and 'delay' exclude each other",
      function() mock:rule { store = false, delay = 5 } end)
    refuses("rule: 'store' of false, which leaves no answer, and 'cut' exclude each other",
      function() mock:rule { store = false, cut = 5, close = true } end)
    refuses("rule: 'pause' needs split", function() mock:rule { pause = 5, delay = 5 } end)
    refuses("rule: 'close' ends the connection, so 'deaf' would have nothing to do$",
      function() mock:rule { deaf = 5, close = true } end)
    refuses("rule: 'speak' ends the connection, so 'deaf' would have nothing to do; close = false",
      function() mock:rule { deaf = 5, speak = "http" } end)
  end)

  it("that makes a rule takes parts that go together", function()
    for _, given in ipairs {
      { silent = true, store = true }, { silent = true, close = true },
      { silent = true, delay = 5, close = true }, { silent = true, delay = 5, deaf = 5 },
      { cut = 0, close = true }, { cut = 0, delay = 5, reset = true },
      { store = false, answer = { code = 0 }, delay = 5 }, { store = false, raw = "x", split = 2 },
      { store = false, delay = 5, close = true }, { deaf = 5, half_close = true },
      { deaf = 5, speak = "http", close = false }, { go_away = true, store = true, delay = 1 },
      { split = 2, pause = 5 }, { answer = { code = 1, remark = "\195\188" } },
    } do
      mock:rule(given):remove()
    end
  end)

  it("whose function fails says why, and goes on", function()
    local wrong = {
      { "rule: the function 'raw' must give a string of bytes or nil, not a table",
        "rule = mock:rule { code = 310, raw = function() return {} end }" },
      { "rule: the function 'raw' failed: %(command line%):3: here",
        "rule = mock:rule { code = 310, raw = function() error 'here' end }" },
      { "set_route: the function for topic 'T' gave 5; it must give a route, a body, false or nil",
        "mock:name_server():set_route('T', function() return 5 end)" },
      { "rule: the function 'raw' failed: %(error object is a nil value%)",
        "rule = mock:rule { code = 310, raw = function() error() end }" },
      { "rule: the function 'raw' failed: %(command line%):3: torn",
        "rule = mock:rule { code = 310, raw = function(request) "
        .. "for name in pairs(request) do request[name] = nil end error 'torn' end }" },
      { "set_route: the function for topic 'T' gave no route: wire.encode_route: .*'brokers' must",
        "mock:name_server():set_route('T', function() return { brokers = 5 } end)" },
      { "set_route: the function for topic 'T' failed: %(command line%):3: here",
        "mock:name_server():set_route('T', function() error 'here' end)" },
    }
    for _, given in ipairs(wrong) do
      local ended = child.run { "-e", [[
        local rocketmq, rule = require "rocketmq"
        local mock = rocketmq.mock {}
        ]] .. given[2] .. [[

        local settings = { group = "g", namesrv = mock.namesrv, retries = 0 }
        print(select(2, rocketmq.producer(settings):send { topic = "T", body = "x" }))
        print(rule and rule.failed)
      ]] }
      assert.equal(0, ended.code, ended.stderr)
      assert.matches("error mock: [^:]*: " .. given[1], ended.stderr)
      assert.matches(given[1], ended.stdout)
      if given[2]:find "^rule" then
        assert.matches("\n[^\n]*" .. given[1] .. "[^\n]*\n$", ended.stdout)
      end
    end
  end)

  it("whose function fails as a client connects, or asks for no answer, goes on", function()
    local ended = child.run { "-e", [[
      local rocketmq = require "rocketmq"
      local mock = rocketmq.mock { topics = { T = 1 } }
      mock:rule { on = "connect", at = "broker", raw = function(request) return request.code end }
      local rule = mock:rule { code = 310, times = 1, raw = function() error "oneway" end }
      local producer = rocketmq.producer { group = "g", namesrv = mock.namesrv }
      producer:send_oneway { topic = "T", body = "x" }
      producer:flush()
      assert(mock:wait(function() return rule.failed end))
      assert(producer:send { topic = "T", body = "x" })
    ]] }
    assert.equal(0, ended.code, ended.stderr)
    assert.matches("attempt to index local 'request'", ended.stderr)
    assert.matches("oneway", ended.stderr)
  end)

  it("whose replier fails goes on", function()
    local ended = child.run { "-e", [[
      local rocketmq = require "rocketmq"
      local mock = rocketmq.mock { topics = { T = 1 } }
      mock:reply("T", function() return 5 end)
      local producer = rocketmq.producer { group = "g", namesrv = mock.namesrv }
      print(select(2, producer:request({ topic = "T", body = "x" }, { timeout = 500 })).kind)
    ]] }
    assert.equal("timeout\n", ended.stdout, ended.stderr)
    assert.equal(0, ended.code)
    assert.matches("reply: the function for topic 'T' must give the body of its reply, or nil, not "
      .. "a number", ended.stderr)
  end)

  it("hands a function a route of its own, also a frozen one", function()
    name_server:freeze()
    name_server:set_route("Orders", function(route)
      route.queues[1].write_queue_nums = route.queues[1].write_queue_nums * 2
      return route
    end)
    for _ = 1, 3 do
      assert.equal(8, name_server:route("Orders").queues[1].write_queue_nums)
    end
  end)

  it("does not end over bytes of a client that no answer can hold", function()
    local client = assert(raw_client.connect(mock:name_server().addr))
    local reply = client:request { serialize = "rocketmq", code = 105, ext = { topic = "\255" } }
    assert.equal(1, reply.code)
    assert.matches("mock: the answer cannot be sent: the remark is not valid UTF%-8", reply.remark)
    client:close()
  end)

  it("that replies refuses what is no function", function()
    refuses("reply: ", function() mock:reply(nil, no_callback) end)
  end)
end)
