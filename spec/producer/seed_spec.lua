-- The same seeds, the same script, the same run: what a spec needs that is to fail again tomorrow.
local rocketmq = require "rocketmq"
local cluster = require "spec.support.cluster"

-- What becomes of many sends in a bad world, as texts: broker, queue and attempts of each, and the
-- requests that came.
local function run(mock_seed, seed, more)
  local settings = { seed = seed, send_msg_timeout = 60000 }
  for name, value in pairs(more or {}) do settings[name] = value end
  local c = cluster.new({ brokers = 3, namesrvs = 3, topics = { Orders = 4 }, seed = mock_seed },
    settings)
  local mock = c.mock
  -- Answers only: how soon a connection that broke is there again is a matter of time.
  mock:rule { at = "namesrv", probability = 0.5, answer = { code = 1 } }
  mock:rule { at = "broker-a", code = "SEND_MESSAGE_V2", probability = 0.3, answer = { code = 2 } }
  mock:rule { at = "broker-b", code = "SEND_MESSAGE_V2", probability = 0.2, answer = { code = 1 } }
  mock:rule { code = "SEND_MESSAGE_V2", probability = 0.1, answer = { code = 14 }, store = true }
  local lines = {}
  for number = 1, 60 do
    local result, err = c.producer:send { topic = "Orders", body = "b" .. number }
    lines[number] = result and ("%s, %d attempts"):format(tostring(result.queue), result.attempts)
      or ("%s, %d attempts"):format(err.kind, #err.tries)
  end
  -- The first route's questions, and the sends: when a broker's failure makes somebody ask again is a
  -- matter of time.
  local sends = false
  for _, request in ipairs(mock:requests()) do
    sends = sends or request.code == 310
    if request.code == 310 or request.code == 105 and not sends then
      lines[#lines + 1] = request.at .. " " .. request.name
    end
  end
  local client_id = c.producer.client_id
  c:finish()
  return table.concat(lines, "\n"), client_id
end

-- In how many ways five other seeds go.
local function distinct(run_of)
  local seen, count = {}, 0
  for seed = 10, 14 do
    local text = run_of(seed)
    if not seen[text] then seen[text], count = true, count + 1 end
  end
  return count
end

describe("a producer with a seed", function()
  it("does in each run what it did before", function()
    for _, more in ipairs { {}, { selector = "random" } } do
      local first, first_id = run(5, 7, more)
      local second, second_id = run(5, 7, more)
      assert.equal(first, second)
      assert.is_not.equal(first_id, second_id)
      assert.is_true(distinct(function(seed) return (run(5, seed, more)) end) > 2)
      assert.is_true(distinct(function(seed) return (run(seed, 7, more)) end) > 2)
    end
  end)

  it("lets selectors that draw in Lua do so, too", function()
    local s = rocketmq.selector
    for name, make in pairs {
      random = function() return function(queues) return s.random(queues) end end,
      hash_fnv1a = function() return function(queues) return s.hash_fnv1a(queues, {}, "") end end,
      round_robin = s.round_robin,
      sticky = function() return s.sticky { n = 3 } end,
      weighted = function() return s.weighted { brokers = { ["broker-a"] = 3 } } end,
    } do
      local first = run(5, 7, { selector = make() })
      assert.equal(first, (run(5, 7, { selector = make() })), name)
      assert.is_true(distinct(function(seed)
        return (run(5, seed, { selector = make() }))
      end) > 2, name)
    end
  end)

  it("is a client of its own, of the name that it is given", function()
    local c = cluster.new({}, { seed = 3, instance_name = "mine" })
    assert.matches("@mine$", c.producer.client_id)
    c:finish()
  end)

  it("says what a seed may be", function()
    assert.error_matches(function()
      rocketmq.producer { group = "g", namesrv = "127.0.0.1:1", seed = "seven" }
    end, "seed must be ")
  end)
end)
