--- The options of a command, such as `rmqlua mock`.
local naming = require "rocketmq.naming"

local options = {}

---@class rocketmq.Option
---@field name string "--listen"
---@field value string? how the help shows its value; nil: it has none
---@field many boolean? it may be given several times: its values become a list
---@field help string[] lines

local function names_of(rows)
  local names = {}
  for index, row in ipairs(rows) do names[index] = row.name end
  return names
end

---Reads a command's arguments.
---@param command string for the errors
---@param rows rocketmq.Option[] with one for --help
---@param arguments string[]
---@return table<string, string|boolean|string[]>? given by name, without the dashes; nil when they are wrong
---@return string? why
function options.read(command, rows, arguments)
  local by_name, given, at = {}, {}, 1
  for _, row in ipairs(rows) do by_name[row.name] = row end
  while arguments[at] do
    local name, value = arguments[at]:match "^(%-%-[^=]+)=(.*)$"
    name = name or arguments[at]
    local row = by_name[name]
    if not row then return nil, naming.unknown("rmqlua " .. command, name, names_of(rows)) end
    if not row.value and value then return nil, name .. " takes no value" end
    if row.value and not value then
      at = at + 1
      value = arguments[at]
      if not value then return nil, ("%s needs a value: %s"):format(name, row.value) end
    end
    local key = name:sub(3)
    if row.many then
      given[key] = given[key] or {}
      table.insert(given[key], value)
    else
      given[key] = value or true
    end
    at = at + 1
  end
  return given
end

---The lines of the help about the options.
---@param rows rocketmq.Option[]
---@return string
function options.help(rows)
  local lines = {}
  for _, row in ipairs(rows) do
    local left = row.value and row.name .. " " .. row.value or row.name
    for index, text in ipairs(row.help) do
      lines[#lines + 1] = ("  %-22s  %s"):format(index == 1 and left or "", text)
    end
  end
  return table.concat(lines, "\n") .. "\n"
end

return options
