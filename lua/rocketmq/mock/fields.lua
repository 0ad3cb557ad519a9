--- Checks tables that a user writes: every name known, every value of its type.
local naming = require "rocketmq.naming"
local wire = require "rocketmq.wire"

local fields = {}

---One row of a table of fields.
---@class rocketmq.mock.Field
---@field name string
---@field type string what values are allowed, see `tests` below; several joined by "|"
---@field choices string[]? the texts that are allowed, when only some are
---@field help string one sentence

-- Whole numbers go into fields of 32 bits sooner or later.
local LEAST, MOST = -2 ^ 31, 2 ^ 31 - 1

local function is_whole(value, least)
  return type(value) == "number" and value >= least and value <= MOST and value % 1 == 0
end

local MOST_PERM = 7 -- inherit, write and read

local tests = {
  count = function(value) return is_whole(value, 1) end,
  integer = function(value) return is_whole(value, 0) end,
  code = function(value) return is_whole(value, LEAST) end,
  string = function(value) return type(value) == "string" and value ~= "" end,
  bytes = function(value) return type(value) == "string" end,
  fraction = function(value) return type(value) == "number" and value >= 0 and value <= 1 end,
  boolean = function(value) return type(value) == "boolean" end,
  ["function"] = function(value) return type(value) == "function" end,
  ["nil"] = function(value) return value == nil end,
  perm = function(value) return is_whole(value, 0) and value <= MOST_PERM end,
  -- Inf would never be over, and nothing is less than NaN.
  milliseconds = function(value)
    return type(value) == "number" and value >= 0 and value <= MOST
  end,
  table = function(value) return type(value) == "table" end,
  times = function(value)
    if type(value) ~= "string" then return false end
    local others = value:gsub("%f[%w]%d+[smhd]%f[%W]", "")
    return #others < #value and not others:find "%S"
  end,
}

local wanted = {
  count = "a whole number from 1 to 2147483647", integer = "a whole number from 0 to 2147483647",
  code = "a whole number of 32 bits", fraction = "a number from 0 to 1",
  string = "a text", bytes = "a string of bytes", boolean = "true or false", table = "a table",
  ["function"] = "a function", ["nil"] = "nil", perm = "a whole number from 0 to 7",
  milliseconds = "a number from 0 to 2147483647",
  times = "times with a blank between them, as '1s 5s 10m 2h'",
}

local function allowed(kinds, value)
  for kind in kinds:gmatch("[^|]+") do
    if tests[kind](value) then return true end
  end
  return false
end

local function describe(kinds)
  return (kinds:gsub("[^|]+", wanted):gsub("|", " or "))
end

---A value for an error message.
---@param value any
---@return string
function fields.show(value)
  if value == "" then return "an empty one" end
  if type(value) == "string" then return "'" .. value .. "'" end
  if type(value) == "number" or type(value) == "boolean" or value == nil then
    return tostring(value)
  end
  return "a " .. type(value)
end

local function check_value(what, row, value)
  if not allowed(row.type, value) then
    error(("%s: '%s' must be %s, not %s"):format(what, row.name, describe(row.type),
      fields.show(value)), 0)
  end
  if not row.choices or type(value) ~= "string" then return end
  for _, choice in ipairs(row.choices) do
    if choice == value then return end
  end
  error(naming.unknown(("%s: '%s'"):format(what, row.name), value, row.choices), 0)
end

---Raises (without a position) unless every name in `given` is in `rows` and its value is of the
---row's type.
---@param what string
---@param given table
---@param rows rocketmq.mock.Field[]
function fields.check(what, given, rows)
  if type(given) ~= "table" then
    error(("%s: must be a table, not %s"):format(what, fields.show(given)), 0)
  end
  local by_name, names = {}, {}
  for index, row in ipairs(rows) do by_name[row.name], names[index] = row, row.name end
  for name, value in pairs(given) do
    local row = by_name[name]
    if not row then error(naming.unknown(what, name, names), 0) end
    check_value(what, row, value)
  end
end

---Raises, at the line that called the caller, unless an argument is of its type.
---@param what string the method
---@param name string the argument
---@param kinds string as in `rocketmq.mock.Field`
---@param value any
function fields.argument(what, name, kinds, value)
  if allowed(kinds, value) then return end
  error(("%s: '%s' must be %s, not %s"):format(what, name, describe(kinds), fields.show(value)), 3)
end

---The ext fields that a user gave, as texts. Raises, without a position, for what cannot be one.
---@param what string
---@param given table<string, string|number|boolean>?
---@return table<string, string>
function fields.ext(what, given)
  local ext = {}
  for name, value in pairs(given or {}) do
    if type(name) ~= "string" then
      error(("%s: names must be texts, not %s"):format(what, fields.show(name)), 0)
    end
    if not allowed("bytes|boolean", value) and type(value) ~= "number" then
      error(("%s '%s': must be a text, a number or a boolean, not %s"):format(what, name,
        fields.show(value)), 0)
    end
    ext[name] = tostring(value)
  end
  return ext
end

---Raises, without a position, for a command that could not be sent: not all texts fit into a header.
---@param what string
---@param command table `code`, `remark`, `ext`, `body`
function fields.check_command(what, command)
  local ok, why = pcall(wire.encode, command)
  if not ok then error(what .. ": " .. why:gsub("^.*wire%.encode: ", ""), 0) end
end

return fields
