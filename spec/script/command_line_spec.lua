local child = require "spec.support.child"
local folder = require "spec.support.folder"

local function run(...) return child.run { ... } end

describe("a script", function()
  it("gets its arguments, and arg as in lua", function()
    local where = folder { ["a b.lua"] = [[
      print(...)
      print(arg[0], arg[1], arg[2], arg[3], arg[-1], #arg)]] }
    local ended = run("--log-level", "error", where .. "/a b.lua", "-x", "y z")
    assert.equal(("-x\ty z\n%s/a b.lua\t-x\ty z\tnil\terror\t2\n"):format(where), ended.stdout)
  end)

  it("may start with a line for the shell", function()
    local where = folder {
      ["s.lua"] = "#!/usr/bin/env rmqlua\nprint(debug.getinfo(1).currentline)",
    }
    assert.equal("2\n", run(where .. "/s.lua").stdout)
  end)

  it("finds modules beside it first, wherever it was called from", function()
    local where = folder {
      ["s.lua"] = "print(require 'beside', require 'lib', require 'cjson' ~= nil)",
      ["beside.lua"] = "return ...",
      ["lib/init.lua"] = "return 'a package'",
    }
    assert.equal("beside\ta package\ttrue\n", run(where .. "/s.lua").stdout)
    assert.equal("beside\ta package\ttrue\n", child.run({ "s.lua", cwd = where }).stdout)
  end)

  it("comes from stdin as -, and reads what follows from there", function()
    assert.equal("a\tb\n", child.run({ "-", "a", "b", stdin = "print(...)" }).stdout)
    local where = folder { ["s.lua"] = "print(io.read '*l', io.read '*a')" }
    assert.equal("one\ttwo\n\n", child.run({ where .. "/s.lua", stdin = "one\ntwo\n" }).stdout)
  end)

  it("that is not there, is a folder, or is no Lua is refused with its name", function()
    local where = folder { ["bad.lua"] = "print 'never'\nx = = 1" }
    local ended = run(where .. "/none.lua")
    assert.same({ 2, "" }, { ended.code, ended.stdout })
    assert.matches("cannot read the script '.*none.lua': No such file", ended.stderr)
    ended = run(where)
    assert.equal(2, ended.code)
    assert.matches("Is a directory", ended.stderr)
    ended = run(where .. "/bad.lua")
    assert.same({ 1, "" }, { ended.code, ended.stdout })
    assert.matches("bad.lua:2: unexpected symbol near '='", ended.stderr)
  end)
end)

describe("options", function()
  it("run pieces and modules in their order, before the script", function()
    local where = folder {
      ["s.lua"] = "print('script', ...)",
      ["m.lua"] = "print 'module'",
    }
    local ended = child.run {
      "-e", "print(1)", "-l", "m", "-e", "print(2)", "s.lua", "x", cwd = where,
    }
    assert.equal("1\nmodule\n2\nscript\tx\n", ended.stdout)
    assert.equal(0, ended.code)
  end)

  it("stop at a piece that fails", function()
    local ended = run("-e", "error 'boom'", "-e", "print 'never'")
    assert.same({ 1, "" }, { ended.code, ended.stdout })
    assert.matches("boom\nstack traceback:", ended.stderr)
    ended = run("-e", "print 'never'", "-e", "= 1")
    assert.same({ 1, "" }, { ended.code, ended.stdout })
  end)

  it("tell versions", function()
    for _, option in ipairs { "-v", "--version" } do
      local ended = run(option)
      assert.equal(0, ended.code)
      assert.matches("^rmqlua %d+%.%d+%.%d+\nLuaJIT 2%.1.*\nlibuv %d+%.%d+%.%d+\nluv .+\n$",
        ended.stdout)
    end
  end)

  it("tell every option and every setting", function()
    local ended = run "--help"
    assert.equal(0, ended.code)
    for _, text in ipairs { "--namesrv", "--mock", "--log-level", "retry_times_when_send_failed",
      "retries", "send_msg_timeout, timeout (ms, 1 to ", "default 3000; in Java sendMsgTimeout" } do
      assert.is_truthy(ended.stdout:find(text, 1, true), text)
    end
  end)

  it("that are unknown name the nearest one", function()
    local ended = run("--namesvr", "x")
    assert.same({ 2, "" }, { ended.code, ended.stdout })
    assert.matches("unknown option '%-%-namesvr'; did you mean %-%-namesrv%?", ended.stderr)
    ended = run "--qqqqqqqqqqqq"
    assert.matches("unknown option '%-%-qqqqqqqqqqqq'; %-%-help lists them", ended.stderr)
  end)

  it("that lack or have a value wrongly are refused", function()
    for _, wrong in ipairs {
      { {}, "no script" }, { { "-e" }, "%-e needs a value: CHUNK" },
      { { "--namesrv" }, "%-%-namesrv needs a value" },
      { { "--help=1" }, "%-%-help takes no value" },
      { { "--log-level", "loud", "s" }, "'loud' is not one of debug, info, warn, error, off" },
      { { "--namesrv", "here", "s" }, "%-%-namesrv: 'here' is not an address" },
      { { "--namesrv", " ; ", "s" }, "%-%-namesrv: the list is empty" },
      { { "-e", "print(1)", env = { "NAMESRV_ADDR=here" } },
        "NAMESRV_ADDR: 'here' is not an address" },
    } do
      local ended = child.run(wrong[1])
      assert.same({ 2, "" }, { ended.code, ended.stdout })
      assert.matches(wrong[2], ended.stderr)
    end
  end)

  it("end at --", function()
    local where = folder { ["-s.lua"] = "print 'dashed'" }
    assert.equal("dashed\n", child.run({ "--", "-s.lua", cwd = where }).stdout)
  end)
end)

describe("--mock", function()
  local SEND = [[
    local producer = require("rocketmq").producer { group = "g" %s }
    local result, err = producer:send({ topic = "Orders", body = "x" }, { timeout = 500 })
    print(result and result.status or err.kind)]]

  it("says on stderr that it is one, and answers", function()
    local ended = run("--mock", "--log-level", "off", "-e", SEND:format "")
    assert.same({ 0, "SEND_OK\n" }, { ended.code, ended.stdout })
    assert.matches("^mock: [^\n]*nothing is sent to a real RocketMQ\n$", ended.stderr)
  end)

  it("replaces the name servers that a script names; =default does not", function()
    local named = SEND:format ", namesrv = '127.0.0.1:1'"
    assert.equal("SEND_OK\n", run("--mock", "-e", named).stdout)
    assert.equal("route\n", run("--mock=default", "-e", named).stdout)
    assert.equal("SEND_OK\n", run("--mock=default", "-e", SEND:format "").stdout)
    local ended = run("--mock=default", "--namesrv", "127.0.0.1:1", "-e", SEND:format "")
    assert.equal("route\n", ended.stdout)
  end)

  it("takes a shape, and refuses a wrong one", function()
    local ended = run("--mock=brokers=3", "-e", "")
    assert.matches("3 brokers", ended.stderr)
    assert.equal(0, ended.code)
    for _, wrong in ipairs { "brokers=", "os.exit()", "brokers=-1" } do
      ended = run("--mock=" .. wrong, "-e", "print 'never'")
      assert.same({ 2, "" }, { ended.code, ended.stdout })
      assert.matches("rmqlua: %-%-mock: ", ended.stderr)
    end
  end)
end)
