-- rocketmq.hook.acl, and what it signs with
local cluster = require "spec.support.cluster"
local rocketmq = require "rocketmq"
local sha1 = require "rocketmq.hook.sha1"

local SEND = "SEND_MESSAGE_V2"

local function to_hex(bytes)
  return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

describe("SHA-1", function()
  it("agrees with its standard", function()
    assert.equal("da39a3ee5e6b4b0d3255bfef95601890afd80709", to_hex(sha1.sha1 ""))
    assert.equal("a9993e364706816aba3e25717850c26c9cd0d89d", to_hex(sha1.sha1 "abc"))
    assert.equal("84983e441c3bd26ebaae4aa1f95129e5e54670f1",
      to_hex(sha1.sha1 "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))
    assert.equal("34aa973cd4c4daa4f61eeb2bdbad27316534016f", to_hex(sha1.sha1(("a"):rep(1000000))))
  end)

  it("agrees with sha1sum for every length around its blocks", function()
    local path = os.tmpname()
    finally(function() os.remove(path) end)
    for _, length in ipairs { 1, 54, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 1000 } do
      local text = {}
      for i = 1, length do text[i] = string.char((i * 37 + length) % 256) end
      text = table.concat(text)
      local file = assert(io.open(path, "wb"))
      file:write(text)
      file:close()
      local pipe = assert(io.popen("sha1sum < " .. path))
      local expected = pipe:read "*a"
      pipe:close()
      assert.equal(expected:match "^%x+", to_hex(sha1.sha1(text)), length)
    end
  end)
end)

describe("HMAC", function()
  it("agrees with RFC 2202", function()
    assert.equal("b617318655057264e28bc0b6fb378c8ef146be00",
      to_hex(sha1.hmac(("\11"):rep(20), "Hi There")))
    assert.equal("effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
      to_hex(sha1.hmac("Jefe", "what do ya want for nothing?")))
    assert.equal("aa4ae5e15272d00e95705637ce8a3b55ed402112", to_hex(sha1.hmac(("\170"):rep(80),
      "Test Using Larger Than Block-Size Key - Hash Key First")))
  end)

  it("agrees with RocketMQ", function()
    assert.equal("IUc8rrO/0gDch8CjObLQsW2rsiA=", sha1.base64(sha1.hmac("12345678", "RocketMQ")))
  end)
end)

describe("base64", function()
  it("agrees with RFC 4648", function()
    for text, expected in pairs { [""] = "", f = "Zg==", fo = "Zm8=", foo = "Zm9v",
      foob = "Zm9vYg==", fooba = "Zm9vYmE=", foobar = "Zm9vYmFy", ["\0\255\16"] = "AP8Q" } do
      assert.equal(expected, sha1.base64(text))
    end
  end)
end)

describe("the acl hook", function()
  local function signed(ctx)
    local hook = rocketmq.hook.acl { access_key = "rocketmq2", secret_key = "12345678" }
    hook.before_request(ctx)
    return ctx.ext
  end

  it("signs as the Java client does", function()
    local ext = signed { body = "hello", ext = { a = "PG", b = "TopicTest", c = "TBW102", d = "4",
      e = "0", f = "0", g = "1700000000000", h = "0", i = "UNIQ_KEY\1ABC\2WAIT\1true\2", j = "0",
      k = "false", m = "false", n = "broker-a" } }
    assert.equal("rocketmq2", ext.AccessKey)
    assert.equal("ajV5guwv4jTOPc2OrpfhRdAZLv4=", ext.Signature)
  end)

  for _, serialize in ipairs { "rocketmq", "json" } do
    it("signs all requests with " .. serialize .. " headers", function()
      local c = cluster.new({ brokers = 1, topics = { Orders = 1 } }, { serialize = serialize })
      finally(function() c:finish() end)
      c.producer:add_hook(rocketmq.hook.acl { access_key = "me", secret_key = "secret",
        security_token = "token" })
      assert(c.producer:send { topic = "Orders", body = "body \0\255", tags = "t",
        properties = { p = "é\"\\" } })
      c.producer:shutdown()
      local codes = {}
      for _, request in ipairs(c.mock:requests()) do
        codes[request.name] = true
        local names, content = {}, {}
        for name in pairs(request.ext) do
          if name ~= "Signature" then names[#names + 1] = name end
        end
        table.sort(names)
        for i, name in ipairs(names) do content[i] = request.ext[name] end
        content[#content + 1] = request.body
        assert.equal(sha1.base64(sha1.hmac("secret", table.concat(content))),
          request.ext.Signature, request.name)
        assert.same({ "me", "token" }, { request.ext.AccessKey, request.ext.SecurityToken })
      end
      for _, code in ipairs { SEND, "HEART_BEAT", "GET_ROUTEINFO_BY_TOPIC", "UNREGISTER_CLIENT" } do
        assert.is_true(codes[code], code)
      end
      assert.equal(0, c.producer:stats().hook_errors)
    end)
  end

  it("must be given both keys", function()
    assert.error_matches(function() rocketmq.hook.acl { access_key = "x" } end,
      "secret_key must be given")
    assert.error_matches(function() rocketmq.hook.acl { access_key = " ", secret_key = "x" } end,
      "access_key must be given")
    assert.error_matches(function() rocketmq.hook.acl { acces_key = "x" } end,
      "unknown name 'acces_key', did you mean 'access_key'")
  end)
end)
