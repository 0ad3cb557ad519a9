--- What a plugin's file sees as its globals: the standard library, to be read.
---
--- A name that is not there is mostly a typing error, and a global that is written would be shared by
--- all messages unseen. So both are refused, where possible before the file runs: a typing error in a
--- branch that is seldom taken is found by --check, and not by the one message that takes it.
local util = require "jit.util"

local M = {}

local STANDARD = { "_G", "_VERSION", "assert", "bit", "collectgarbage", "coroutine", "debug",
  "dofile", "error", "gcinfo", "getfenv", "getmetatable", "io", "ipairs", "jit", "load", "loadfile",
  "loadstring", "math", "module", "newproxy", "next", "os", "package", "pairs", "pcall", "print",
  "rawequal", "rawget", "rawset", "require", "select", "setfenv", "setmetatable", "string", "table",
  "tonumber", "tostring", "type", "unpack", "xpcall" }

local is_standard = {}
for _, name in ipairs(STANDARD) do is_standard[name] = true end

local function show(name) return type(name) == "string" and "'" .. name .. "'" or tostring(name) end

local function refuse_reading(name)
  return "there is no global variable " .. show(name) .. "; a plugin sees the standard library, "
    .. "and what it declares as local"
end

local function refuse_setting(name)
  return "a plugin must not set the global variable " .. show(name) .. "; declare it as local"
end

-- A library as a file sees it: a copy, so that what it sets there is not everybody's, and a new name is
-- refused. Reading what it has costs what it costs in the library itself.
local function copy_of(library, called)
  local copy = {}
  for name, value in pairs(library) do copy[name] = value end
  return setmetatable(copy, { __newindex = function(_, name)
    error(("a plugin must not set %s.%s: nothing can be added to a library; declare it as local")
      :format(called, tostring(name)), 2)
  end })
end

--- A table of globals for one file. `package` is the real one: what is set there, such as the path, is for
--- `require`.
---@return table
function M.new()
  local standard, env = {}, {}
  for _, name in ipairs(STANDARD) do
    local value = _G[name]
    local is_library = type(value) == "table" and name ~= "_G" and name ~= "package"
    standard[name] = is_library and copy_of(value, name) or value
  end
  standard._G = env
  setmetatable(standard, { __index = function(_, name) error(refuse_reading(name), 2) end })
  -- It is empty, so that setting a name of the standard library is noticed, too.
  return setmetatable(env, {
    __index = standard,
    __newindex = function(_, name) error(refuse_setting(name), 2) end,
    __metatable = "the globals of a plugin",
  })
end

-- --- Before it runs ------------------------------------------------------------------------------

-- The code of the instruction at a place of a compiled text: their numbers differ between versions.
local function opcode(text, at)
  return bit.band(util.funcbc(assert(loadstring(text)), at), 0xff)
end
local READS, SETS = opcode("return x", 1), opcode("x = 1", 2)

-- Calls `found(opcode, name, line)` for every use of a global variable in a function and all that are
-- defined inside of it.
local function each_use(fn, found)
  local info = util.funcinfo(fn)
  for at = 1, info.bytecodes - 1 do
    local instruction = util.funcbc(fn, at)
    local code = bit.band(instruction, 0xff)
    if code == READS or code == SETS then
      found(code, util.funck(fn, -bit.rshift(instruction, 16) - 1),
        util.funcinfo(fn, at).currentline)
    end
  end
  if not info.children then return end
  for at = -1, -info.gcconsts, -1 do
    local constant = util.funck(fn, at)
    if type(constant) == "proto" then each_use(constant, found) end
  end
end

--- Says, with its line, which global variable a file must not use as it does; nil when all is well. One
--- that changes environments by itself is not judged.
---@param chunk function
---@param path string
---@return string? why
function M.check(chunk, path)
  local line, why
  local judged = true
  each_use(chunk, function(code, name, at)
    if name == "setfenv" or name == "module" then judged = false end
    if line and line <= at then return end
    if code == SETS then
      line, why = at, refuse_setting(name)
    elseif not is_standard[name] then
      line, why = at, refuse_reading(name)
    end
  end)
  return judged and why and ("%s:%d: %s"):format(path, line, why) or nil
end

return M
