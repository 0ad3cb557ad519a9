-- Whatever a rule says: it is refused when it is made, or the mock does something and goes on serving.
local new_mock = require "rocketmq.mock"
local random = require "spec.support.random"
local raw_client = require "spec.support.raw_client"

local RULES = 200

local SEND = { code = 310, body = ("x"):rep(300), ext = { a = "g", b = "Orders", c = "TBW102",
  d = "4", e = "0", f = "0", g = "1", h = "0", i = "UNIQ_KEY\1A\2" } }
local ROUTE = { code = 105, ext = { topic = "Orders" } }

-- Of each field some values, of which some are at their limits.
local values = {
  at = { "namesrv", "broker", "broker-a", "broker-a#0" }, on = { "connect", "request" },
  code = { 310, "SEND_MESSAGE_V2", 105 }, topic = { "Orders", "Other" }, nth = { 1, 2 },
  times = { 1, 2 }, probability = { 0.5, 1 },
  answer = { { code = 0 }, { code = 2, remark = "\195\188\0\1" }, { code = 1, remark = "\255" },
    { code = -2 ^ 31, ext = { a = 1, [""] = "", ["\0"] = "\1" }, body = "\255" },
    { code = 0, ext = { msgId = "?", queueId = "q", queueOffset = "-99999999999999999999" } } },
  go_away = { true, false }, silent = { true, false },
  raw = { "", "x", ("\0"):rep(9), "\0\0\0\5\0\0\0\1x", function(request) return request.body end,
    function() return nil end },
  garbage = { 1, 1000 }, speak = { "http", "http2", "http2-preface", "tls", "tls-handshake" },
  delay = { 0, 1 }, wrong_opaque = { true, false }, length = { 0, 3, 2 ^ 31 - 1, "huge" },
  duplicate = { true, false, 50 }, cut = { 0, 1, 30, 2 ^ 31 - 1 }, split = { 1, 2, 2 ^ 31 - 1 },
  pause = { 0, 1 }, close = { true, false }, reset = { true, false },
  half_close = { true, false }, after_read = { 0, 1, 100, 2 ^ 31 - 1 }, deaf = { 1, 2 ^ 31 - 1 },
  store = { true, false },
}
local names = {}
for name in pairs(values) do names[#names + 1] = name end
table.sort(names)

local function describe_rule(given)
  local parts = {}
  for _, name in ipairs(names) do
    if given[name] ~= nil then parts[#parts + 1] = name .. "=" .. tostring(given[name]) end
  end
  return ("{ %s }"):format(table.concat(parts, ", "))
end

for _, what in ipairs { "a mock", "a proxy" } do
  describe("the rules of " .. what, function()
    local real, mock

    setup(function()
      real = new_mock { topics = { Orders = 4 } }
      mock = what == "a proxy" and new_mock { proxy = real.namesrv } or real
    end)
    teardown(function()
      mock:close()
      real:close()
    end)

    -- A connection that has sent what a producer sends; nobody waits for answers.
    local function visit(addr, ...)
      local client = raw_client.connect(addr)
      if not client then return end
      client.raw = true
      for _, request in ipairs { ... } do client:send(request) end
      return client
    end

    local function told(addr, request)
      local client = assert(raw_client.connect(addr))
      local reply = client:request(request) or { code = client.ended or "no answer" }
      client:close()
      return reply.code == 0 and "0" or ("%s %s"):format(reply.code, reply.remark)
    end

    -- What a new client is told: "0 and 0" when all is well. A proxy knows its brokers from the first on.
    local function served()
      local route = told(mock:name_server(1).addr, ROUTE)
      return route .. " and " .. told(mock:broker("broker-a").addr, SEND)
    end

    -- A random rule, taken away again; gives how often it acted.
    local function try(source)
      local given = {}
      for _ = 1, source:int(1, 5) do
        local name = source:one_of(names)
        given[name] = source:one_of(values[name])
      end
      local ok, rule = pcall(mock.rule, mock, given)
      if not ok then
        assert.matches("rule[ a-z]*: ", rule, describe_rule(given))
        return 0
      end
      local clients = { visit(mock:name_server(1).addr, ROUTE, ROUTE),
        visit(mock:broker("broker-a").addr, SEND, SEND, SEND) }
      mock:wait(function() return rule.acted > 0 end, 5) -- it may be for nothing of this
      rule:remove()
      assert.equal("0 and 0", served(), describe_rule(given))
      for _, client in pairs(clients) do client:close() end
      return rule.acted
    end

    it("are refused, or leave it well", function()
      assert.equal("0 and 0", served())
      random.rounds(1, function(source)
        local acted = 0
        for _ = 1, RULES do acted = acted + try(source) end
        assert.is_true(acted > RULES / 10, acted)
      end)
    end)
  end)
end
