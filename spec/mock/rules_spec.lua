local new_mock = require "rocketmq.mock"
local raw_client = require "spec.support.raw_client"

local SEND = { code = 310, body = "x", ext = { a = "g", b = "Orders", c = "TBW102", d = "4",
  e = "0", f = "0", g = "1", h = "0", i = "UNIQ_KEY\1A\2" } }

describe("a rule of the mock", function()
  local mock, client, namesrv

  before_each(function()
    mock = new_mock { brokers = { { name = "broker-a", slaves = 1 }, "broker-b" },
      topics = { Orders = 4, Other = 4 } }
    client = assert(raw_client.connect(mock:broker("broker-a").addr))
    namesrv = assert(raw_client.connect(mock.namesrv))
  end)

  after_each(function()
    client:close()
    namesrv:close()
    mock:close()
  end)

  local function send_code(fields)
    local request = {}
    for name, value in pairs(SEND) do request[name] = value end
    for name, value in pairs(fields or {}) do request[name] = value end
    local reply = client:request(request)
    return reply and reply.code
  end

  it("answers instead of the broker, which then stores nothing", function()
    local rule = mock:rule { code = "SEND_MESSAGE_V2", answer = { code = "SYSTEM_BUSY",
      remark = "full", ext = { hint = 7 } } }
    local reply = client:request(SEND)
    assert.same({ 2, "full", { hint = "7" } }, { reply.code, reply.remark, reply.ext })
    assert.equal(0, mock:count())
    assert.same({ 1, 1 }, { rule.seen, rule.acted })
    rule:remove()
    assert.equal(0, send_code())
  end)

  it("lets the broker store what the answer says is stored, with its place", function()
    for _, code in ipairs { 10, 11, 12 } do
      local rule = mock:rule { answer = { code = code } }
      local reply = client:request(SEND)
      assert.equal(code, reply.code)
      assert.equal(mock:messages()[mock:count()].offset_msg_id, reply.ext.msgId)
      rule:remove()
    end
    assert.equal(3, mock:count())
  end)

  it("gives a body of its own", function()
    mock:rule { at = "namesrv", answer = { code = 0, body = "{" } }
    local reply = namesrv:request { code = 105, ext = { topic = "Orders" } }
    assert.same({ 0, "{" }, { reply.code, reply.body })
  end)

  it("stores, or does not, when it says so", function()
    mock:rule { times = 1, answer = { code = 1 }, store = true }
    mock:rule { times = 1, answer = { code = 0 }, store = false }
    assert.equal(1, send_code())
    assert.equal(1, mock:count())
    assert.equal(0, send_code())
    assert.equal(1, mock:count())
  end)

  it("chooses by place", function()
    mock:rule { at = "broker-a#1", answer = { code = 201 } }
    mock:rule { at = "broker-b", answer = { code = 202 } }
    mock:rule { at = "namesrv", answer = { code = 203 } }
    local slave = assert(raw_client.connect(mock:broker("broker-a", 1).addr))
    local other = assert(raw_client.connect(mock:broker("broker-b").addr))
    finally(function()
      slave:close()
      other:close()
    end)
    assert.equal(0, send_code())
    assert.equal(201, slave:request(SEND).code)
    assert.equal(202, other:request(SEND).code)
    assert.equal(203, namesrv:request({ code = 105, ext = { topic = "Orders" } }).code)
    mock:rule { at = "broker-a", answer = { code = 204 } }
    assert.same({ 204, 201 }, { send_code(), slave:request(SEND).code })
  end)

  it("chooses by code and topic, whichever header names it", function()
    mock:rule { topic = "Orders", code = 310, answer = { code = 201 } }
    mock:rule { topic = "Other", answer = { code = 202 } }
    assert.same({ 201, 3 }, { send_code(), send_code { code = 999 } })
    assert.equal(202, namesrv:request({ code = 105, ext = { topic = "Other" } }).code)
    assert.equal(0, namesrv:request({ code = 105, ext = { topic = "Orders" } }).code)
  end)

  it("acts from the nth request, so many times", function()
    mock:rule { nth = 2, times = 2, answer = { code = 1 } }
    assert.same({ 0, 1, 1, 0 }, { send_code(), send_code(), send_code(), send_code() })
  end)

  it("gives way to those made before it", function()
    mock:rule { times = 1, answer = { code = 201 } }
    mock:rule { answer = { code = 202 } }
    assert.same({ 201, 202 }, { send_code(), send_code() })
  end)

  it("delays an answer while later ones go before", function()
    mock:rule { times = 1, delay = 30 }
    local slow = client:send(SEND)
    local quick = client:send(SEND)
    assert.equal(0, client:reply(slow).code)
    assert.same({ quick, slow }, client.order)
    assert.equal(2, mock:count())
  end)

  it("never answers when it is silent; the connection goes on", function()
    mock:rule { times = 1, silent = true }
    local lost = client:send(SEND)
    assert.equal(0, send_code())
    assert.is_nil(client.replies[lost])
    assert.equal(1, mock:count())
  end)

  it("stores and is silent when it says both", function()
    mock:rule { times = 1, silent = true, store = true }
    client:send(SEND)
    send_code()
    assert.equal(2, mock:count())
  end)

  it("closes instead of answering, or after an answer", function()
    mock:rule { times = 1, close = true }
    assert.is_nil(send_code())
    assert.equal("end", client.ended)
    client = assert(raw_client.connect(mock:broker("broker-a").addr))
    mock:rule { times = 1, close = true, answer = { code = 14 } }
    assert.equal(14, send_code())
    assert.equal("end", client:wait_end())
    assert.equal(0, mock:count())
  end)

  it("closes after having stored", function()
    mock:rule { close = true, store = true }
    assert.is_nil(send_code())
    assert.equal(1, mock:count())
  end)

  it("sends all of what is long before it closes", function()
    client.raw = true
    local bytes = ("0123456789abcdef"):rep(2 ^ 19)
    mock:rule { raw = bytes, close = true }
    client:send(SEND)
    assert.equal("end", client:wait_end())
    assert.is_true(client.bytes == bytes)
  end)

  it("resets", function()
    mock:rule { reset = true }
    client:send(SEND)
    assert.equal("ECONNRESET", client:wait_end())
  end)

  it("sends bytes of any kind", function()
    client.raw = true
    mock:rule { raw = "HTTP/1.1 400 Bad Request\r\n\r\n", close = true }
    client:send(SEND)
    client:wait_end()
    assert.equal("HTTP/1.1 400 Bad Request\r\n\r\n", client.bytes)
  end)

  it("does not outlive its connection or the mock while it delays", function()
    mock:rule { delay = 20 }
    client:send(SEND)
    mock:wait(1)
    client:close()
    mock:close()
    assert.equal(1, mock:count())
  end)

  it("is refused when it makes no sense", function()
    local function refuses(pattern, given)
      local ok, why = pcall(mock.rule, mock, given)
      assert.is_false(ok)
      assert.matches(pattern, why)
    end
    refuses("rule: unknown name 'nht', did you mean 'nth'%?", { nht = 1, silent = true })
    refuses("rule at: unknown name 'broker%-c'", { at = "broker-c", silent = true })
    refuses("rule code: unknown name 'SEND_MESAGE_V2', did you mean 'SEND_MESSAGE_V2'%?",
      { code = "SEND_MESAGE_V2", silent = true })
    refuses("answer code: unknown name 'SYSTEM_BUSSY', did you mean 'SYSTEM_BUSY'%?",
      { answer = { code = "SYSTEM_BUSSY" } })
    refuses("rule answer: needs a code", { answer = {} })
    refuses("says nothing to do", { at = "broker-a" })
    refuses("'answer' and 'silent' exclude each other", { answer = { code = 1 }, silent = true })
    refuses("'close' and 'reset' exclude each other", { close = true, reset = true })
    refuses("'raw' and 'duplicate' exclude each other", { raw = "x", duplicate = true })
    refuses("'silent' and 'cut' exclude each other", { silent = true, cut = 1 })
    refuses("'after_read' needs close or reset", { after_read = 1, cut = 1 })
    refuses("'after_read' and 'delay' exclude each other",
      { after_read = 1, close = true, delay = 1 })
    refuses("'code' is about requests", { on = "connect", code = 310, close = true })
    refuses("'on': unknown name 'conect', did you mean 'connect'", { on = "conect", close = true })
    refuses("'speak': unknown name 'htp', did you mean 'http'", { speak = "htp" })
    refuses("'probability' must be a number from 0 to 1", { probability = 2, silent = true })
    refuses("'length' must be a whole number or 'huge'", { length = "long" })
    refuses("'nth' must be a whole number from 1", { nth = 0, silent = true })
    refuses("must be a table", "silent")
  end)
end)
