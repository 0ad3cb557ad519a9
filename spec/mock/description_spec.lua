local new_mock = require "rocketmq.mock"

-- The message of the error that a description raises.
local function refusal(description)
  local ok, why = pcall(function()
    local mock = new_mock(description)
    return mock
  end)
  if ok then why:close() end
  assert.is_false(ok)
  return why
end

describe("a mock's description", function()
  it("needs nothing", function()
    local mock = new_mock()
    finally(function() mock:close() end)
    assert.matches("^127%.0%.0%.1:%d+$", mock.namesrv)
    assert.equal(0, mock:broker("broker-a").id)
  end)

  it("names brokers by number, by name and in full", function()
    local mock = new_mock { brokers = { "east", { name = "west", slaves = 2 } }, namesrvs = 2 }
    finally(function() mock:close() end)
    assert.matches("^127%.0%.0%.1:%d+;127%.0%.0%.1:%d+$", mock.namesrv)
    assert.equal("east", mock:broker("east").name)
    assert.equal(2, mock:broker("west", 2).id)
    assert.has_error(function() mock:broker("west", 3) end,
      "mock: broker west has no id 3; ids are numbers, and it has 0, 1, 2")
    assert.has_error(function() mock:broker("wset") end,
      "mock broker: unknown name 'wset', did you mean 'west'?")
  end)

  it("refuses unknown names and says which one was meant", function()
    assert.matches("mock: unknown name 'broker', did you mean 'brokers'%?",
      refusal { broker = 2 })
    assert.matches("mock topic 'Orders': unknown name 'queus', did you mean 'queues'%?",
      refusal { topics = { Orders = { queus = 4 } } })
    assert.matches("mock broker 1: unknown name 'slave', did you mean 'slaves'%?",
      refusal { brokers = { { slave = 1 } } })
    assert.matches("mock name server 1: unknown name 'revers', did you mean 'reverse'%?",
      refusal { namesrvs = { { revers = true } } })
  end)

  it("refuses what is of the wrong kind", function()
    assert.matches("'brokers' must be a whole number from 1 to 2147483647 or a table, not 0",
      refusal { brokers = 0 })
    assert.matches("mock: 'brokers' is 1e%+09; at most 1000 are possible",
      refusal { brokers = 1e9 })
    assert.matches("mock: 'namesrvs' is 1001; at most 1000 are possible",
      refusal { namesrvs = 1001 })
    assert.matches("'auto_create' must be true or false, not 'yes'",
      refusal { auto_create = "yes" })
    assert.matches("must be given a table, not string", refusal("two brokers"))
    assert.matches("two brokers are called b", refusal { brokers = { "b", "b" } })
    assert.matches("topic 'T': there is no broker 'b'",
      refusal { topics = { T = { brokers = { "b" } } } })
  end)

  it("points at the line that gave it", function()
    assert.matches("description_spec%.lua:%d+: mock:", refusal { broker = 2 })
  end)
end)

describe("what the mock gives to scripts", function()
  local mock

  setup(function() mock = new_mock() end)
  teardown(function() mock:close() end)

  it("says how a method is called when a dot stands for the colon", function()
    local rule = mock:rule { silent = true, times = 1 }
    local wrong = { [mock] = { "mock", "rule" }, [mock:broker("broker-a")] = { "broker", "stop" },
      [mock:name_server()] = { "name_server", "stop" }, [rule] = { "rule", "remove" } }
    for object, names in pairs(wrong) do
      local ok, err = pcall(function() object[names[2]] { silent = true } end)
      assert.is_false(ok)
      assert.equal(("%s.%s: call it with a colon, as in %s:%s(...)"):format(names[1], names[2],
        names[1], names[2]), err:match "description_spec.lua:%d+: (.*)")
    end
  end)

  it("refuses numbers that no field of the protocol can hold", function()
    for _, given in ipairs { { version = 1e18 }, { keep = 2 ^ 31 }, { topics = { T = 2 ^ 40 } } } do
      assert.error_matches(function() new_mock(given) end, "must be a whole number .*2147483647")
    end
    assert.error_matches(function() mock:rule { answer = { code = 1e18 } } end, "32 bits")
  end)
end)
