--- Lists of name servers with commas, blanks, a semicolon at the end or "http://" in front were
--- accepted and then failed much later, as a topic without a route.
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"
local wire = require "rocketmq.wire"

describe("a list of name servers", function()
  local c

  before_each(function()
    c = cluster.new { topics = { Orders = 1 }, namesrvs = 2 }
  end)

  after_each(function() c:finish() end)

  it("is read in every spelling that people use", function()
    for list, expected in pairs {
      ["a:9876,b:9876"] = { "a:9876", "b:9876" },
      ["a:9876; b:9876 ;"] = { "a:9876", "b:9876" },
      [";; a:9876 , ;b:1"] = { "a:9876", "b:1" },
      ["http://a:9876"] = { "a:9876" },
      ["https://a:9876/x;http://b:9876"] = { "a:9876", "b:9876" },
      ["name-0.svc:9876;name-1.svc:9876"] = { "name-0.svc:9876", "name-1.svc:9876" },
      ["[::1]:9876"] = { "[::1]:9876" },
    } do
      assert.same(expected, wire.namesrv_list(list))
    end
  end)

  it("works in every spelling", function()
    local first, second = c.mock:name_server(1), c.mock:name_server(2)
    first:stop()
    for index, form in ipairs { "%s;%s", "%s,%s", " %s ; %s ; ", "http://%s;http://%s/",
      ";;%s,,%s" } do
      local producer = c:add_producer { namesrv = form:format(first.addr, second.addr) }
      assert(producer:send { topic = "Orders", body = "x" })
      assert.equal(index, c.mock:count())
    end
  end)

  it("may have names", function()
    local producer = c:add_producer { namesrv = "localhost:" .. c.mock:name_server().port }
    assert(producer:send { topic = "Orders", body = "x" })
  end)

  -- What is wrong, and what of it the error must show.
  for list, shown in pairs {
    ["a"] = "a", ["a:9876;b"] = "b", ["a:0"] = "a:0", ["a:65536"] = "a:65536", ["a:x"] = "a:x",
    [":9876"] = ":9876", ["::1:9876x"] = "::1:9876x", ["[::1:9876"] = "[::1:9876",
    [" ; , "] = "namesrv", ["ftp://a:9876"] = "ftp",
  } do
    it("is refused at once when it has '" .. list .. "'", function()
      local ok, why = pcall(function()
        return rocketmq.producer { group = "spec", namesrv = list }
      end)
      assert.is_false(ok)
      assert.is_truthy(why:find(shown, 1, true))
      assert.matches("namesrv", why)
      local _, hints = why:gsub("write host:port;host:port", "")
      assert.equal(1, hints)
      assert.is_nil(why:find("write host:port; ", 1, true)) -- what to write is said once
    end)
  end
end)
