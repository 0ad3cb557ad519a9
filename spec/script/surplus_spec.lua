-- An argument that nobody looks at is a mistake that stays unseen: mostly a callback where none is
-- called, or a timeout that belongs into a table.
local rocketmq = require "rocketmq"

describe("an argument too many", function()
  local mock, producer

  before_each(function()
    mock = rocketmq.mock { topics = { Orders = 2 } }
    producer = rocketmq.transaction_producer { group = "spec", namesrv = mock.namesrv,
      check = function() return "commit" end }
  end)

  after_each(function()
    producer:shutdown()
    mock:close()
  end)

  -- Raises this, at this file's line.
  local function refuses(text, fn, ...)
    local arguments, count = { ... }, select("#", ...)
    local ok, why = pcall(function() fn(unpack(arguments, 1, count)) end)
    assert.is_false(ok, text)
    assert.matches("^%S*surplus_spec%.lua:%d+: (.*)$", why)
    assert.equal(text, (why:match "^%S* (.*)$"))
  end

  local message = { topic = "Orders", body = "x" }
  local function callback() end

  it("is named by the methods that send", function()
    refuses("producer:send takes (message, options): argument 3, a function, is one too many; "
      .. "send_async calls back, send waits", producer.send, producer, message, nil, callback)
    refuses("producer:send takes (message, options): argument 3, a number, is one too many",
      producer.send, producer, message, {}, 500)
    refuses("producer:send_async takes (message, options, callback): argument 4, a table, is one "
      .. "too many", producer.send_async, producer, message, {}, callback, {})
    refuses("producer:send_async takes (message, options, callback): argument 4, a function, is "
      .. "one too many; the one callback gets the result or the error", producer.send_async,
      producer, message, {}, callback, callback)
    refuses("producer:send_oneway takes (message, options): argument 3, a function, is one too "
      .. "many; send_async calls back, send waits", producer.send_oneway, producer, message, nil,
      callback)
    refuses("producer:send_batch takes (messages, options): argument 3, a function, is one too "
      .. "many", producer.send_batch, producer, { message }, nil, callback)
    assert.equal(0, mock:count())
    assert.equal(0, producer:stats().sent)
  end)

  it("may be nil", function()
    assert(producer:send(message, nil, nil))
    assert(producer:send_batch({ message }, nil, nil, nil))
    assert.is_true(producer:flush(nil, nil))
    assert.equal(2, mock:count(nil))
    assert.is_true(producer:create_topic({ topic = "New" }, nil))
  end)

  it("may be what a maker of hooks gives besides", function()
    local function maker() return { before = callback }, callback end
    local hook = producer:add_hook(maker())
    assert.is_true(producer:remove_hook(hook))
  end)

  it("may be what calls reload back gives it", function()
    assert.is_true((pcall(rocketmq.reload, "sigusr1"))) -- whatever becomes of the files
  end)

  -- How many arguments each has besides the object. A method that is new has to be put here.
  local takes = {
    producer = { earliest_time = 2, faults = 0, flush = 1, max_offset = 2,
      min_offset = 2, query_message = 3, queues = 1, recall = 3, remove_hook = 1, request = 2,
      request_async = 3, search_offset = 3, send = 2, send_async = 3, send_batch = 2,
      send_batch_async = 3, send_batch_oneway = 2, send_in_transaction = 4, send_oneway = 2,
      set_namesrv = 1, settings = 0, shutdown = 1, stats = 0, view_message = 3 },
    mock = { attempts = 0, bad_input = 0, broker = 2, clear = 0, clients = 0, close = 0, count = 0,
      messages = 3, name_server = 1, reply = 2, requests = 1, rule = 1, set_order_conf = 2,
      traces = 1, transactions = 1, wait = 2 },
    broker = { clients = 0, disconnect = 1, join_routes = 0, leave_routes = 0, move = 0,
      remove_topic = 1, request = 1, set_perm = 1, set_topic = 2, start = 0, stop = 0, write = 1 },
    name_server = { disconnect = 1, freeze = 0, route = 2, set_route = 2, start = 0, stop = 0,
      thaw = 0, write = 1 },
    rule = { remove = 0 },
    task = { status = 0, wait = 1 },
    rocketmq = { gather = 1, load_hook = 1, load_selector = 1, message_id = 2, mock = 1,
      on_error = 1, producer = 1, reply = 2, sleep = 1, transaction_producer = 1 },
  }

  local function objects()
    local task = rocketmq.spawn(function() end)
    task:wait()
    return { producer = producer, mock = mock, broker = mock:broker "broker-a",
      name_server = mock:name_server(), rule = mock:rule { code = 1, silent = true }, task = task }
  end

  it("is refused by every method and function", function()
    local all = objects()
    for what, counts in pairs(takes) do
      for name, count in pairs(counts) do
        local fn = (all[what] or rocketmq)[name]
        local arguments = { message, callback, {} }
        if name == "send_in_transaction" then arguments[4] = {} end
        if what ~= "rocketmq" then table.insert(arguments, 1, all[what]) end
        local last = count + (what == "rocketmq" and 1 or 2)
        arguments[last] = true
        local ok, why = pcall(function() fn(unpack(arguments, 1, last)) end)
        assert.is_false(ok, name)
        assert.matches(("^%%S*surplus_spec%%.lua:%%d+: %s%s%s takes .*: argument %d, a boolean, is "
          .. "one too many"):format(what, what == "rocketmq" and "%." or ":", name, count + 1), why)
      end
    end
  end)

  it("is looked for in all that there are", function()
    -- Looked for otherwise, or not a script's.
    local others = { producer = " add_hook create_topic replace_loaded_hooks ",
      broker = " connection_of_client connections_of_group handle note place store stored_answer ",
      name_server = " handle ", rule = " takes " }
    for what, object in pairs(objects()) do
      local class = getmetatable(object)
      if type(class.__index) == "table" then class = class.__index end
      for name, value in pairs(class) do
        local known = takes[what][name]
          or (others[what] or ""):find(" " .. name .. " ", 1, true) or name:find "^__"
        assert.is_truthy(type(value) ~= "function" or known, what .. ":" .. name)
      end
    end
  end)
end)
