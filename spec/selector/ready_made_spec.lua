-- The other selectors and the combinators, called as functions.
local queues = require "spec.support.queues"
local selector = require("rocketmq").selector

local list = queues.list { ["hz@broker-a"] = 4, ["sh@broker-b"] = 4 }
local ctx = queues.ctx()

local function name_of(of, choice)
  local queue = type(choice) == "number" and of[choice] or choice
  return queue.broker .. "#" .. queue.id
end

local function counts(count, chosen, of, given)
  of = of or list
  return queues.counts(count, function(i)
    return name_of(of, chosen(of, { n = i }, i, given or ctx))
  end)
end

local function brokers(of_queues)
  local sums = {}
  for name, count in pairs(of_queues) do
    local broker = name:match "^(.*)#"
    sums[broker] = (sums[broker] or 0) + count
  end
  return sums
end

local function all_equal(counted, expected, count)
  local n = 0
  for _, got in pairs(counted) do
    n = n + 1
    assert.equal(expected, got)
  end
  assert.equal(count, n)
end

describe("the selector random", function()
  it("takes each queue about as often as any other", function()
    local counted = counts(8000, selector.random)
    for i = 1, 8 do
      local got = counted[name_of(list, i)]
      assert.is_true(got > 800 and got < 1200, got)
    end
    assert.equal(1, selector.random { list[1] })
    assert.error_matches(function() return (selector.random {}) end, "random: the list .* is empty")
  end)
end)

describe("the selector round_robin", function()
  it("takes the queues in turn, those of each list by themselves", function()
    local in_turn = selector.round_robin {}
    local other = queues.list { x = 3 }
    local at = in_turn(list)
    local others = in_turn(other)
    for _ = 1, 20 do
      local next_at, next_other = in_turn(list), in_turn(other)
      assert.equal(at % 8 + 1, next_at)
      assert.equal(others % 3 + 1, next_other)
      at, others = next_at, next_other
    end
  end)

  it("takes no options", function()
    -- luassert takes the place off a text.
    local _, err = pcall(function() selector.round_robin { n = 1 } end)
    assert.matches("^spec/selector/ready_made_spec.lua:%d+: rocketmq.selector.round_robin: it has "
      .. "no option 'n': there are none$", err)
    assert.error_matches(function() selector.round_robin(5) end, "its options must be a table")
  end)
end)

describe("the selector machine_room", function()
  it("takes the queues of its rooms in turn", function()
    all_equal(counts(40, selector.machine_room { rooms = { "hz" } }), 10, 4)
    assert.same({ ["hz@broker-a"] = 40 },
      brokers(counts(40, selector.machine_room { rooms = { "hz", "no" } })))
    all_equal(counts(40, selector.machine_room { rooms = { "hz", "sh" } }), 5, 8)
  end)

  it("has rooms that can be asked for and replaced", function()
    local near = selector.machine_room { rooms = { "sh", "hz" } }
    assert.same({ "hz", "sh" }, near:get_rooms())
    near:set_rooms { "sh" }
    assert.same({ "sh" }, near:get_rooms())
    assert.same({ ["sh@broker-b"] = 8 }, brokers(counts(8, near)))
  end)

  it("says what to do without a queue in them", function()
    local far = queues.list { ["sh@broker-b"] = 2, ["plain"] = 2, ["@x"] = 1 }
    local near = selector.machine_room { rooms = { "hz", "bj" } }
    assert.error_matches(function() return (near(far)) end, "machine_room: .*" ..
      "no queue is in the rooms %(bj, hz%); the brokers, named room@broker, are @x, plain, sh@br")
    assert.error_matches(function() return (selector.machine_room { rooms = {} } (far)) end,
      "no queue is in the rooms %(none%)")
    all_equal(counts(10, selector.machine_room { rooms = { "hz" }, otherwise = "all" }, far), 2, 5)
    assert.is_nil(selector.machine_room { rooms = { "hz" }, otherwise = "none" } (far))
  end)

  it("refuses what are no rooms", function()
    local wrong = {
      { {}, "option rooms is missing" },
      { { rooms = "hz" }, "option rooms must be a table, not string" },
      { { rooms = { 5 } }, "rooms%[1%] must be a room's name, not number" },
      { { rooms = { "" } }, "rooms%[1%] must be a room's name, not empty" },
      { { rooms = { hz = true } }, "rooms must be a list; it has a key 'hz'" },
      { { rooms = { "hz" }, otherwise = "nil" }, "option otherwise is 'nil'" },
      { { rooms = { "hz" }, otherwize = "all" },
        "no option 'otherwize': there are otherwise, rooms" },
    }
    for _, case in ipairs(wrong) do
      assert.error_matches(function() selector.machine_room(case[1]) end, case[2])
    end
    local near = selector.machine_room { rooms = { "hz" } }
    assert.error_matches(function() near:set_rooms "hz" end, "rooms must be a list of names")
    assert.error_matches(function() near.set_rooms { "hz" } end, "call it with a colon, as in "
      .. "machine_room:set_rooms")
    assert.error_matches(function() near.get_rooms() end, "call it with a colon")
    assert.same({ "hz" }, near:get_rooms())
  end)
end)

describe("the selector consistent_hash", function()
  local function keys_of(chosen, of)
    local places = {}
    for i = 1, 4000 do places[i] = name_of(of, chosen(of, nil, "order-" .. i)) end
    return places
  end

  local function moved(chosen, before, after)
    local a, b, n = keys_of(chosen, before), keys_of(chosen, after), 0
    for i = 1, #a do n = n + (a[i] ~= b[i] and 1 or 0) end
    return n / #a
  end

  local eight, nine = queues.list { a = 4, b = 4 }, queues.list { a = 5, b = 4 }
  local four = queues.list { a = 4 }

  it("moves few keys when queues come or go, where hash moves nearly all", function()
    local ring = selector.consistent_hash {}
    -- Of nine queues one is new: a ninth of the keys has to move, and no other does.
    assert.is_true(moved(ring, eight, nine) < 0.16)
    assert.is_true(moved(ring, eight, nine) > 0.05)
    assert.is_true(moved(selector.hash, eight, nine) > 0.8)
    -- Half of the queues go: only their keys move.
    local before, after = keys_of(ring, eight), keys_of(ring, four)
    for i = 1, #before do
      if before[i]:find "^a" then assert.equal(before[i], after[i]) end
    end
    assert.is_true(moved(ring, eight, four) < 0.65)
  end)

  it("spreads keys, and tells the same everywhere", function()
    local ring, again = selector.consistent_hash {}, selector.consistent_hash { points = 128 }
    local counted = queues.counts(8000, function(i)
      return name_of(eight, ring(eight, nil, "key" .. i))
    end)
    for i = 1, 8 do
      local got = counted[name_of(eight, i)]
      assert.is_true(got > 600 and got < 1400, got)
    end
    assert.same(keys_of(ring, eight), keys_of(again, eight))
    assert.equal(ring(eight, nil, 5), ring(eight, nil, "5"))
  end)

  it("depends on nothing but brokers' names and ids", function()
    -- A value that must stay: all producers with this selector have to agree.
    local text = {}
    for i = 1, 12 do
      text[i] = name_of(eight, selector.consistent_hash {} (eight, nil, "order-" .. i))
    end
    assert.equal("a#0 b#3 b#2 b#0 a#2 b#3 b#3 b#2 a#0 b#0 b#2 b#0", table.concat(text, " "))
  end)

  it("is made for very many queues, too", function()
    local many = queues.list { a = 10000 }
    local ring = selector.consistent_hash {}
    local seen = {}
    for i = 1, 2000 do seen[ring(many, nil, "k" .. i)] = true end
    local n = 0
    for _ in pairs(seen) do n = n + 1 end
    assert.is_true(n > 1500, n)
  end)

  it("refuses what it cannot hash, and wrong points", function()
    local ring = selector.consistent_hash()
    assert.error_matches(function() return (ring(eight, nil, nil)) end,
      "consistent_hash: its argument must be a string or a number, not nil")
    for _, points in ipairs { 0, 1.5, 1 / 0 } do
      assert.error_matches(function() selector.consistent_hash { points = points } end,
        "option points is .*; it must be a whole number from 1 on")
    end
  end)
end)

describe("the selector sticky", function()
  it("stays with one queue for n messages", function()
    local sticky = selector.sticky { n = 3 }
    local runs, last = {}, nil
    for _ = 1, 30 do
      local at = sticky(list, nil, nil, ctx)
      if at ~= last then runs[#runs + 1] = 0 end
      runs[#runs] = runs[#runs] + 1
      last = at
    end
    for i = 1, 10 do assert.equal(3, runs[i]) end
  end)

  it("stays for ever without n, until the broker fails or is avoided", function()
    local sticky, given = selector.sticky {}, { failures = {}, avoided = {} }
    local moving = queues.ctx(given)
    local first = sticky(list, nil, nil, moving)
    for _ = 1, 100 do assert.equal(first, sticky(list, nil, nil, moving)) end
    local broker = list[first].broker
    given.failures[broker] = 1
    local second = sticky(list, nil, nil, moving)
    assert.are_not.equal(broker, list[second].broker)
    for _ = 1, 100 do assert.equal(second, sticky(list, nil, nil, moving)) end
    given.avoided[list[second].broker] = true
    local third = sticky(list, nil, nil, moving)
    assert.equal(broker, list[third].broker)
    for _ = 1, 100 do assert.equal(third, sticky(list, nil, nil, moving)) end
  end)

  it("goes on in turn when no other broker is there", function()
    local lone, given = queues.list { a = 3 }, { failures = { a = 0 } }
    local sticky = selector.sticky {}
    local at = sticky(lone, nil, nil, queues.ctx(given))
    for i = 1, 6 do
      given.failures.a = i
      local next_at = sticky(lone, nil, nil, queues.ctx(given))
      assert.equal(at % 3 + 1, next_at)
      at = next_at
    end
  end)

  it("refuses a wrong n", function()
    for _, n in ipairs { 0, -1, 2.5 } do
      assert.error_matches(function() selector.sticky { n = n } end, "option n is ")
    end
    assert.error_matches(function() selector.sticky { n = "3" } end, "must be a number, not string")
  end)
end)

describe("the selector weighted", function()
  it("shares by the weights of brokers, and evenly among their queues", function()
    local chosen = selector.weighted { brokers = { ["hz@broker-a"] = 3 } }
    local counted = counts(4000, chosen)
    local sums = brokers(counted)
    assert.is_true(math.abs(sums["hz@broker-a"] - 3000) <= 5)
    for i = 1, 4 do assert.is_true(math.abs(counted[name_of(list, i)] - 750) <= 5) end
    -- The share holds in short runs as well.
    for _ = 1, 10 do
      assert.is_true(math.abs(brokers(counts(40, chosen))["hz@broker-a"] - 30) <= 3)
    end
  end)

  it("shares by the weights of queues; 0 gets nothing", function()
    local counted = counts(1000, selector.weighted {
      queues = { ["hz@broker-a#0"] = 1, ["sh@broker-b#3"] = 4 }, default = 0 })
    assert.is_true(math.abs(counted["hz@broker-a#0"] - 200) <= 5)
    assert.is_true(math.abs(counted["sh@broker-b#3"] - 800) <= 5)
    assert.equal(1000, counted["hz@broker-a#0"] + counted["sh@broker-b#3"])
  end)

  it("refuses what are no weights", function()
    local wrong = {
      { {}, "give the weights of either brokers or queues" },
      { { brokers = {}, queues = {} }, "either brokers or queues" },
      { { brokers = { a = -1 } }, "the weight of a is %-1; it must be a number from 0 on" },
      { { brokers = { a = "1" } }, "the weight of a is 1" },
      { { queues = { ["a#0"] = 0 / 0 } }, "the weight of a#0 is nan" },
      { { queues = {}, default = -1 }, "the weight of default is %-1" },
    }
    for _, case in ipairs(wrong) do
      assert.error_matches(function() selector.weighted(case[1]) end, case[2])
    end
    assert.error_matches(function()
      return (selector.weighted { queues = {}, default = 0 } (list))
    end, "weighted: all queues have the weight 0")
  end)
end)

describe("the combinator available", function()
  it("leaves out brokers that are avoided, and the one that has just failed", function()
    local some = selector.available(selector.random)
    assert.same({ ["hz@broker-a"] = 40 }, brokers(counts(40, some, list,
      queues.ctx { avoided = { ["sh@broker-b"] = true } })))
    assert.same({ ["sh@broker-b"] = 40 }, brokers(counts(40, some, list,
      queues.ctx { last_broker = "hz@broker-a" })))
    local all = counts(400, some)
    for i = 1, 8 do assert.truthy(all[name_of(list, i)]) end
  end)

  it("takes all when that leaves none", function()
    local avoided = { ["sh@broker-b"] = true, ["hz@broker-a"] = true }
    all_equal(counts(80, selector.available(selector.round_robin {}), list,
      queues.ctx { avoided = avoided }), 10, 8)
  end)

  it("keeps what the inner one remembers of a part", function()
    local some = selector.available(selector.round_robin {})
    local given = queues.ctx { avoided = { ["sh@broker-b"] = true } }
    all_equal(counts(40, some, list, given), 10, 4)
  end)

  it("takes queues, too, and passes on what is no choice", function()
    local given = queues.ctx { avoided = { ["hz@broker-a"] = true } }
    local second = selector.available(function(part) return part[2] end)
    assert.equal(list[6], second(list, nil, nil, given))
    assert.is_nil(selector.available(function() end)(list, nil, nil, given))
    assert.equal(99, selector.available(function() return 99 end)(list, nil, nil, given))
  end)
end)

describe("the combinator fallback", function()
  local none = function() end
  local first, last = function() return 1 end, function(of) return of[#of] end

  it("asks the second when the first gives nothing, or the broker that failed", function()
    assert.equal(1, selector.fallback(first, last)(list, nil, nil, ctx))
    assert.equal(list[8], selector.fallback(none, last)(list, nil, nil, ctx))
    local failed = queues.ctx { last_broker = "hz@broker-a" }
    assert.equal(list[8], selector.fallback(first, last)(list, nil, nil, failed))
    assert.equal(list[8], selector.fallback(function(of) return of[2] end, last)(list, nil, nil,
      failed))
    assert.equal(list[8], selector.fallback(last, first)(list, nil, nil, failed))
  end)

  it("does not hide an error, and takes names and tables that can be called", function()
    assert.error_matches(function()
      return (selector.fallback(function() error "broken" end, last)(list, nil, nil, ctx))
    end, "broken")
    local near = selector.machine_room { rooms = { "bj" }, otherwise = "none" }
    local chosen = selector.fallback(near, "hash")
    assert.equal(selector.hash(list, nil, "k"), chosen(list, nil, "k", ctx))
    assert.error_matches(function() selector.fallback(first, "hsh") end,
      "rocketmq.selector.fallback: its second argument: selector: unknown name 'hsh', "
      .. "did you mean 'hash'%?")
    local ok, text = pcall(selector.available, "round_robin")
    assert.is_false(ok)
    assert.matches("there is no selector 'round_robin', but rocketmq.selector.round_robin "
      .. "{ ... } makes one", text, 1, true)
    assert.error_matches(function() selector.fallback(first) end,
      "its second argument must be a selector or the name of one, not nil")
  end)
end)

describe("the combinator by", function()
  it("works out the argument", function()
    local chosen = selector.by(function(message, arg) return message.customer .. arg end, "hash")
    assert.equal(selector.hash(list, nil, "c-7x"),
      chosen(list, { customer = "c-7" }, "x", ctx))
    assert.error_matches(function() selector.by("customer", "hash") end,
      "rocketmq.selector.by: its first argument must be a function, not string")
  end)
end)

describe("what fails when it is asked", function()
  it("says where it was made", function()
    local made = {
      selector.machine_room { rooms = { "bj" } },
      selector.consistent_hash {},
      selector.weighted { queues = {}, default = 0 },
    }
    for _, one in ipairs(made) do
      local ok, err = pcall(one, list, nil, nil, ctx)
      assert.is_false(ok)
      assert.matches("^spec/selector/ready_made_spec.lua:%d+: %l", err)
    end
  end)
end)

describe("rocketmq.selector", function()
  it("names what is missing when it is called with less than a selector gets", function()
    assert.error_matches(function() return (selector.best(list)) end,
      "best: call it with all that a selector is given")
  end)

  it("has no other names than it has, and names the nearest", function()
    local ok, why = pcall(function() return selector.hsh, 1 end)
    assert.is_false(ok)
    assert.matches("^[^:]*ready_made_spec.lua:%d+: rocketmq.selector: unknown name 'hsh', did you "
      .. "mean 'hash'%?$", why)
    assert.error_matches(function() return selector.round_robbin {} end,
      "did you mean 'round_robin'%?$")
    assert.error_matches(function() return selector[("zq"):rep(30)] end,
      "; known are available, best, by, consistent_hash, fallback, hash, hash_fnv1a, machine_room")
  end)

  it("says so when what makes a selector is given as one", function()
    for _, name in ipairs { "round_robin", "sticky", "weighted", "available", "fallback",
      "consistent_hash", "machine_room" } do
      assert.error_matches(function() selector[name](list, {}, nil, ctx) end,
        "rocketmq.selector." .. name .. ": it makes a selector and is none: call it")
    end
  end)

  it("can be gone through, printed and asked for what is no name", function()
    assert.is_nil(selector[1])
    assert.is_nil(rawget(selector, "hsh"))
    assert.is_false((pcall(function() return selector.checked end))) -- a file, but no selector
    assert.equal("function", type(selector.hash))
    local found = false
    for name in pairs(selector) do found = found or name == "hash" end
    assert.is_true(found)
    assert.equal("table", type(require "rocketmq.selector"))
  end)
end)
