--- "No route info of this topic" was the most asked question: one text for a topic that is
--- missing, a name server that is down, a default topic that is off, a permission, a missing
--- master.
local cluster = require "spec.support.cluster"

describe("a send without a route says", function()
  local c

  after_each(function() c:finish() end)

  -- The error of a send that must fail for want of a route.
  local function failure(settings, kind)
    local producer = settings and c:add_producer(settings) or c.producer
    local result, err = producer:send { topic = "Orders", body = "x" }
    assert.is_nil(result)
    assert.equal(kind or "route", err.kind)
    assert.equal("Orders", err.topic)
    assert.matches("Orders", err.message)
    assert.equal(0, c.mock:count())
    return err
  end

  local function shows(err, text)
    assert.is_truthy(err.message:find(text, 1, true),
      ("'%s' is not in '%s'"):format(text, err.message))
  end

  it("that topic and default topic are unknown, and what the name server answered", function()
    c = cluster.new { auto_create = false }
    local err = failure()
    shows(err, c.mock.namesrv)
    shows(err, "17")
    shows(err, "TOPIC_NOT_EXIST")
    shows(err, "no broker has told this name server of topic Orders")
    shows(err, 'default topic "TBW102"')
    assert.is_nil(err.message:find("auto_create_topic is off", 1, true))
    assert.equal(1, #c.mock:requests { topic = "TBW102" })
  end)

  it("that the default topic was not asked for, when it was not", function()
    c = cluster.new { auto_create = true }
    local err = failure { auto_create_topic = false }
    shows(err, "auto_create_topic is off")
    assert.equal(0, #c.mock:requests { topic = "TBW102" })
  end)

  it("which default topic is unknown, under an old server's name as well", function()
    c = cluster.new { default_topic = "AUTO_CREATE_TOPIC_KEY" }
    shows(failure(), "TBW102")
    assert(c:add_producer({ create_topic_key = "AUTO_CREATE_TOPIC_KEY" })
      :send { topic = "Orders", body = "x" })
  end)

  it("which name servers could not be reached, and why each", function()
    c = cluster.new { topics = { Orders = 1 }, namesrvs = 2 }
    c.mock:name_server(1):stop()
    c.mock:name_server(2):stop()
    local err = failure()
    shows(err, c.mock:name_server(1).addr)
    shows(err, c.mock:name_server(2).addr)
    shows(err, "refused")
    assert.is_nil(err.message:find("TBW102", 1, true))
  end)

  it("that a name server accepts and never answers", function()
    c = cluster.new { topics = { Orders = 1 } }
    c.mock:rule { at = "namesrv", silent = true }
    local err = failure({ timeout = 200 }, "timeout")
    shows(err, c.mock.namesrv)
    shows(err, "answer")
    assert.is_true(#c.mock:requests { code = "GET_ROUTEINFO_BY_TOPIC" } > 0)
  end)

  it("that a name server ends the connection", function()
    c = cluster.new { topics = { Orders = 1 } }
    c.mock:rule { at = "namesrv", close = true }
    shows(failure { timeout = 1000 }, c.mock.namesrv)
  end)

  it("what a name server answered that is not well", function()
    c = cluster.new { topics = { Orders = 1 } }
    c.mock:rule { at = "namesrv", answer = { code = 1, remark = "name server not ready" } }
    local err = failure { timeout = 1000 }
    shows(err, c.mock.namesrv)
    shows(err, "name server not ready")
  end)

  it("that all queues are read-only, and how many", function()
    c = cluster.new { brokers = 2, topics = { Orders = { perm = 4 } } }
    local err = failure()
    shows(err, "no writable queue")
    shows(err, "2 read-only")
    shows(err, "0 without a master")
  end)

  it("that brokers have no master, and how many", function()
    c = cluster.new { brokers = { { ids = { 1 } }, { ids = { 1, 2 } } }, topics = { Orders = 4 } }
    local err = failure()
    shows(err, "0 read-only")
    shows(err, "2 without a master")
  end)

  it("nothing when another name server knows the way", function()
    c = cluster.new { topics = { Orders = 1 }, namesrvs = 2 }
    c.mock:name_server(1):stop()
    for _ = 1, 4 do assert(c:add_producer():send { topic = "Orders", body = "x" }) end
    c.mock:name_server(1):start()
    c.mock:name_server(2):stop()
    for _ = 1, 4 do assert(c:add_producer():send { topic = "Orders", body = "x" }) end
    assert.equal(8, c.mock:count())
  end)
end)
