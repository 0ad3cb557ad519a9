-- before_request and after_response: they see every request, and add fields to its header.
local cluster = require "spec.support.cluster"

local SEND = "SEND_MESSAGE_V2"

for _, serialize in ipairs { "rocketmq", "json" } do
  describe("with " .. serialize .. " headers", function()
    local c, producer
    before_each(function()
      c = cluster.new({ brokers = 1, topics = { Orders = 2 } }, { serialize = serialize })
      producer = c.producer
    end)
    after_each(function() c:finish() end)

    local message = { topic = "Orders", body = "body \0\255", properties = { p = "\"v\"" } }

    -- What the mock got, by the name of the code.
    local function requests(code) return c.mock:requests { code = code } end

    it("before_request sees all requests", function()
      local seen = {}
      producer:add_hook { before_request = function(ctx)
        seen[#seen + 1] = { ctx.code_name, ctx.code, ctx.addr, ctx.oneway, ctx.body, ctx.ext }
      end }
      assert(producer:send(message))
      assert(producer:send_oneway(message))
      assert(producer:queues "Unknown" or true)
      producer:shutdown()
      local by_code = {}
      for _, request in ipairs(seen) do
        by_code[request[1]] = by_code[request[1]] or request
        assert.equal("string", type(request[1]))
      end
      assert.same({ c.mock.namesrv, "Orders" }, { by_code.GET_ROUTEINFO_BY_TOPIC[3],
        by_code.GET_ROUTEINFO_BY_TOPIC[6].topic })
      local broker = c.mock:broker("broker-a").addr
      assert.equal(broker, by_code.HEART_BEAT[3])
      assert.matches("producerDataSet", by_code.HEART_BEAT[5])
      assert.equal(broker, by_code.UNREGISTER_CLIENT[3])
      local send = by_code[SEND]
      assert.same({ 310, broker, false, "body \0\255" }, { send[2], send[3], send[4], send[5] })
      assert.equal("Orders", send[6].b)
      assert.matches("p\1\"v\"\2", send[6].i)
    end)

    it("before_request adds fields to all of them", function()
      producer:add_hook { before_request = function(ctx)
        ctx.ext.AccessKey = "me"
        ctx.ext.Signature = ("%d/%d \"\\\1é"):format(ctx.code, #ctx.body)
      end }
      local result = assert(producer:send(message))
      assert(producer:send_oneway(message))
      assert(c.mock:wait(2))
      for _, code in ipairs { SEND, "GET_ROUTEINFO_BY_TOPIC", "HEART_BEAT" } do
        local list = requests(code)
        assert.is_true(#list > 0, code)
        for _, request in ipairs(list) do
          assert.equal("me", request.ext.AccessKey)
          assert.equal(("%d/%d \"\\\1é"):format(request.code, #request.body),
            request.ext.Signature)
        end
      end
      local stored = c.mock:messages("Orders")[1]
      assert.equal(message.body, stored.body)
      assert.equal(message.properties.p, stored.properties.p)
      assert.equal(result.msg_id, stored.properties.UNIQ_KEY)
      assert.equal(0, producer:stats().hook_errors)
    end)

    it("several add, the later ones see what the earlier added", function()
      producer:add_hook { before_request = function(ctx) ctx.ext.one = "1" end }
      producer:add_hook { before_request = function(ctx) ctx.ext.two = ctx.ext.one .. "2" end }
      assert(producer:send(message))
      assert.equal("12", requests(SEND)[1].ext.two)
      assert.equal(0, producer:stats().hook_errors)
    end)

    it("a request that is not touched goes out as it was", function()
      producer:add_hook { before_request = function(ctx) return ctx.ext.b, ctx.body end }
      assert(producer:send(message))
      assert.equal(message.body, c.mock:messages("Orders")[1].body)
    end)

    local wrong = {
      { "changes a field", function(ctx) ctx.ext.b = "Other" end },
      { "adds a number", function(ctx) ctx.ext.n = 1 end },
      { "adds a name that is a number", function(ctx) ctx.ext[1] = "x" end },
      { "adds an empty name", function(ctx) ctx.ext[""] = "x" end },
      { "adds too much", function(ctx) ctx.ext.n = ("x"):rep(70000) end },
      { "adds too many", function(ctx)
        for i = 1, 200 do ctx.ext["n" .. i] = "x" end
      end },
      { "replaces ext", function(ctx)
        assert(ctx.ext)
        ctx.ext = "x"
      end },
      { "raises", function() error "broken" end },
    }
    for _, case in ipairs(wrong) do
      it("one that " .. case[1] .. " is counted, and the request goes out", function()
        producer:add_hook { before_request = function(ctx)
          if ctx.code_name == SEND then case[2](ctx) end
        end }
        assert(producer:send(message))
        assert.equal(1, producer:stats().hook_errors)
        assert.equal("Orders", c.mock:messages("Orders")[1].topic)
      end)
    end

    it("one that sets what would not be sent is told", function()
      local texts = {}
      local function try(ctx)
        if ctx.code_name ~= SEND then return end
        for _, name in ipairs { "body", "addr", "code", "ext" } do
          local _, text = pcall(function() ctx[name] = "y" end)
          texts[#texts + 1] = text
        end
        ctx.mine = "kept"
        assert(ctx.mine == "kept")
      end
      producer:add_hook { before_request = try, after_response = try }
      assert(producer:send(message))
      assert.equal(0, producer:stats().hook_errors)
      assert.equal(8, #texts)
      for i, name in ipairs { "body", "addr", "code", "ext" } do
        assert.matches("ctx." .. name .. " cannot be set; a before_request hook adds fields to "
          .. "ctx.ext", texts[i])
      end
    end)

    it("after_response sees the answers", function()
      local seen = {}
      producer:add_hook { after_response = function(ctx)
        seen[ctx.code_name] = { ctx.code, ctx.response_code, ctx.response_code_name, ctx.addr,
          type(ctx.elapsed_ms), type(ctx.ext), ctx.remark, #ctx.body > 0 }
        if ctx.code_name == SEND then seen.offset = ctx.ext.queueOffset end
      end }
      c.mock:rule { code = SEND, times = 1, answer = { code = "SYSTEM_BUSY", remark = "too much" } }
      local _, err = producer:send(message, { retries = 0 })
      local broker = c.mock:broker("broker-a").addr
      assert.equal("broker", err.kind)
      assert.same({ 310, 2, "SYSTEM_BUSY", broker, "number", "table", "too much", false },
        seen[SEND])
      assert.same({ 105, 0, "SUCCESS", c.mock.namesrv, "number", "table", "", true },
        seen.GET_ROUTEINFO_BY_TOPIC)
      assert(producer:send(message))
      assert.equal("0", seen.offset)
    end)

    it("hooks of requests may send", function()
      local sent = 0
      local function send_once(ctx)
        if ctx.code_name ~= SEND or sent == 3 then return end
        sent = sent + 1
        assert(producer:send_oneway { topic = "Orders", body = "from the hook" })
      end
      producer:add_hook { before_request = send_once, after_response = send_once }
      assert(producer:send(message))
      assert(c.mock:wait(4))
      assert.is_true(producer:flush())
      assert.equal(0, producer:stats().hook_errors)
      assert.equal(4, #c.mock:messages "Orders")
    end)
  end)
end
