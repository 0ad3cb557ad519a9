-- The example of a script with its own spec, and what docs/testing.md says that there is.
local child = require "spec.support.child"
local assertions = require "rocketmq.mock.assert"
local description = require "rocketmq.mock.description"
local new_mock = require "rocketmq.mock"
local rules = require "rocketmq.mock.rules"

local function read(path)
  local file = assert(io.open(path))
  local text = file:read "*a"
  file:close()
  return text
end

describe("the example of testing", function()
  it("passes as its readers are told to run it", function()
    local which = assert(io.popen "command -v busted")
    local busted = which:read "*l"
    which:close()
    local ended = child.run { busted, "--ignore-lua", "-o", "TAP",
      "examples/testing/orders_spec.lua" }
    assert.equal(0, ended.code, ended.stdout .. ended.stderr)
    local _, passed = ended.stdout:gsub("\nok ", "")
    assert.equal(5, passed + (ended.stdout:find "^ok " and 1 or 0), ended.stdout)
    assert.is_nil(ended.stdout:find "not ok", ended.stdout)
  end)

  it("is a script that runs", function()
    local ended = child.run { "--mock=topics={Orders=4}", "examples/testing/orders.lua" }
    assert.equal(0, ended.code, ended.stderr)
    assert.equal("created\ttold\npaid\ttold\n", ended.stdout)
  end)
end)

describe("docs/testing.md", function()
  local text

  setup(function() text = read "docs/testing.md" end)

  it("names all that a description and a rule may say", function()
    for _, row in ipairs(description.fields) do
      assert.is_truthy(text:find("`" .. row.name .. "`", 1, true), row.name)
    end
    for _, row in ipairs(rules.fields) do
      assert.is_truthy(text:find("`" .. row.name .. "`", 1, true)
        or text:find("`" .. row.name .. " = ", 1, true), row.name)
    end
    for _, language in ipairs(rules.languages) do
      assert.is_truthy(text:find('`"' .. language .. '"`', 1, true), language)
    end
  end)

  it("names nothing that there is not", function()
    local mock = new_mock()
    finally(function() mock:close() end)
    local objects = { mock, mock:broker "broker-a", mock:name_server() }
    for name in text:gmatch "[`k]:([%l_]+)%(" do
      local found = false
      for _, object in ipairs(objects) do found = found or object[name] ~= nil end
      assert.is_true(found, name)
    end
    for name in text:gmatch "`assert%.([%l_]+)%(" do
      assert.equal("function", type(rawget(assertions, name)), name)
    end
  end)

  it("shows the example as it stands", function()
    local line = 'assert.sent(mock, { topic = "Orders", tags = "paid"'
    assert.is_truthy(text:find(line, 1, true))
    assert.is_truthy(read("examples/testing/orders_spec.lua"):find(line, 1, true))
  end)
end)
