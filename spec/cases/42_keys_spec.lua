--- Several keys arrived with a blank at the end, as the text "[a, b]", or under a name that
--- nobody looks for.
local cluster = require "spec.support.cluster"

describe("keys", function()
  local c

  before_each(function() c = cluster.new { topics = { Orders = 1 } } end)
  after_each(function() c:finish() end)

  -- The properties that arrive for these keys.
  local function arriving(keys)
    assert(c.producer:send { topic = "Orders", body = "x", keys = keys, tags = "paid" })
    local messages = c.mock:messages("Orders")
    return messages[#messages].properties, messages[#messages]
  end

  it("are joined by one blank and nothing else", function()
    assert.equal("k1 k2", arriving({ "k1", "k2" }).KEYS)
    assert.equal("k1 k2 k3", arriving({ "k1", "k2", "k3" }).KEYS)
    assert.equal("k1", arriving({ "k1" }).KEYS)
    assert.equal("k1", arriving("k1").KEYS)
  end)

  it("and tags have the names that consumers look for", function()
    local properties, message = arriving { "k1", "k2" }
    assert.equal("paid", properties.TAGS)
    assert.is_nil(properties.Keys)
    assert.is_nil(properties.Tags)
    assert.same({ { "k1", "k2" }, "paid" }, { message.keys, message.tags })
  end)

  it("of a list are refused when they have a blank, for they would be two", function()
    for _, keys in ipairs { { "a b" }, { "k1", "a b" } } do
      local result, err = c.producer:send { topic = "Orders", body = "x", keys = keys }
      assert.is_nil(result)
      assert.equal("message", err.kind)
      assert.matches("keys", err.message)
      assert.matches("a b", err.message)
      assert.equal(0, #c.mock:requests())
    end
  end)

  it("as one text may have blanks: that is how several are written", function()
    assert.equal("a b", arriving("a b").KEYS)
  end)

  it("must be texts", function()
    for _, keys in ipairs { { 1 }, { {} }, { true }, 7 } do
      assert.error_matches(function()
        c.producer:send { topic = "Orders", body = "x", keys = keys }
      end, "keys")
    end
    assert.equal(0, #c.mock:requests())
  end)
end)
