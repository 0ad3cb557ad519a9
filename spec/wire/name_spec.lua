local wire = require "rocketmq.wire"

describe("a name server list", function()
  it("is split at ; and , and trimmed", function()
    local two = { "a:9876", "b:9876" }
    for _, text in ipairs { "a:9876;b:9876", "a:9876,b:9876", "a:9876; b:9876 ;",
      " a:9876 , b:9876\n", ";;a:9876;,;b:9876;;",
      "http://a:9876;HTTPS://b:9876/path/x", "http://a:9876/,b:9876" } do
      assert.same(two, wire.namesrv_list(text), text)
    end
    assert.same({}, wire.namesrv_list "")
    assert.same({}, wire.namesrv_list " ; ,")
  end)

  it("takes names and addresses of both kinds", function()
    local text = "name-0.svc_x:9876;10.0.0.1:1;[::1]:65535;[fe80::1%eth0]:9876"
    assert.same({ "name-0.svc_x:9876", "10.0.0.1:1", "[::1]:65535", "[fe80::1%eth0]:9876" },
      wire.namesrv_list(text))
  end)

  it("names the part that is wrong", function()
    local function refused(text, part, pattern)
      local list, err = wire.namesrv_list(text)
      assert.is_nil(list, text)
      assert.matches("'" .. part .. "'", err, 1, true)
      assert.matches(pattern, err)
    end
    refused("a:9876;b", "b", "port is missing")
    refused("a:9876;b:;c:1", "b:", "1 to 65535")
    refused(":9876", ":9876", "host is missing")
    refused("a:0", "a:0", "1 to 65535")
    refused("a:65536", "a:65536", "1 to 65535")
    refused("a:99999999999", "a:99999999999", "1 to 65535")
    refused("a:4294967297", "a:4294967297", "1 to 65535")
    refused("a:-1", "a:-1", "1 to 65535")
    refused("a:98x", "a:98x", "1 to 65535")
    refused("::1:9876", "::1:9876", "host is missing")
    refused("fe80::1:9876", "fe80::1:9876", "more than one ':'")
    refused("[::1]", "[::1]", "port is missing")
    refused("[::1", "[::1", "']'")
    refused("[]:1", "[]:1", "no IPv6 address")
    refused("[abc]:1", "[abc]:1", "no IPv6 address")
    refused("a b:1", "a b:1", "no host name has")
    refused("a:9876/path", "a:9876/path", "1 to 65535")
    refused("http://", "http://", "empty")
    refused("http:///x", "http:///x", "empty")
    refused("主机:1", "主机:1", "no host name has")
    refused("a\0b:1", "a", "no host name has")
  end)

  it("gives host and port apart", function()
    assert.same({ "a", 9876 }, { wire.host_port "a:9876" })
    assert.same({ "::1", 1 }, { wire.host_port "[::1]:1" })
    local host, err = wire.host_port "a"
    assert.is_nil(host)
    assert.matches("'a': the port is missing", err)
  end)
end)

describe("UTF-8", function()
  it("is checked as RFC 3629 says", function()
    for _, text in ipairs { "", "a", "é", "订单", "😀", "\0", "\127", "\194\128", "\224\160\128",
      "\237\159\191", "\238\128\128", "\240\144\128\128", "\244\143\191\191" } do
      assert.is_true(wire.valid_utf8(text), text)
    end
    local wrong = {
      { "\128", 1 }, { "a\255", 2 }, { "\192\128", 1 }, { "\193\191", 1 }, { "\224\159\191", 1 },
      { "\237\160\128", 1 }, { "\240\143\191\191", 1 }, { "\244\144\128\128", 1 },
      { "\245\128\128\128", 1 }, { "ok\195", 3 }, { "\226\130", 1 }, { "\240\159\152", 1 },
    }
    for _, case in ipairs(wrong) do
      assert.same({ false, case[2] }, { wire.valid_utf8(case[1]) })
    end
  end)
end)
