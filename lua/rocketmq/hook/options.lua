--- The options of the hooks that are ready to use: every name known, every value of its type.

local M = {}

local function names(rows)
  local list = {}
  for name in pairs(rows) do list[#list + 1] = name end
  table.sort(list)
  return list
end

-- A number must be over 0 unless the row says otherwise; a NaN is no number.
local function is_good(row, value)
  if type(value) ~= row[1] then return false end
  return row[1] ~= "number" or value > 0 or (row.zero and value == 0)
end

--- A copy of what is given, with defaults; raises at the caller's caller.
---@param hook string the hook's name
---@param given? table
---@param rows table<string, table> for each option its type, its default, whether 0 will do (`zero`)
---@return table options
function M.read(hook, given, rows)
  if given ~= nil and type(given) ~= "table" then
    error(("rocketmq.hook.%s takes a table of options, not a %s"):format(hook, type(given)), 3)
  end
  local options = {}
  for name, value in pairs(given or {}) do
    local row = rows[name]
    if not row then
      error(require("rocketmq.mock.fields").unknown("rocketmq.hook." .. hook, name, names(rows)), 3)
    end
    if not is_good(row, value) then
      local wanted = row[1] == "number" and (row.zero and "a number from 0 on" or "a number over 0")
        or "a " .. row[1]
      error(("rocketmq.hook.%s: %s must be %s, not %s"):format(hook, name, wanted,
        type(value) == "number" and tostring(value) or type(value)), 3)
    end
    options[name] = value
  end
  for name, row in pairs(rows) do
    if options[name] == nil then options[name] = row[2] end
  end
  return options
end

return M
