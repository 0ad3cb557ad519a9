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
  if row[1] ~= "number" then return true end
  return value <= (row.most or math.huge) and (value > 0 or (row.zero and value == 0))
end

local function wanted(row)
  if row[1] ~= "number" then return "a " .. row[1] end
  if row.most then return ("a number from %d to %d"):format(row.zero and 0 or 1, row.most) end
  return row.zero and "a number from 0 on" or "a number over 0"
end

--- A copy of what is given, with defaults; raises at the caller's caller.
---@param hook string the hook's name
---@param given? table
---@param rows table<string, table> for each option its type, its default, whether 0 will do
--- (`zero`), and the greatest that does (`most`)
---@return table options
function M.read(hook, given, rows)
  if given ~= nil and type(given) ~= "table" then
    error(("rocketmq.hook.%s takes a table of options, not a %s"):format(hook, type(given)), 3)
  end
  local options = {}
  for name, value in pairs(given or {}) do
    local row = rows[name]
    if not row then
      error(require("rocketmq.naming").unknown("rocketmq.hook." .. hook, name, names(rows)), 3)
    end
    if not is_good(row, value) then
      error(("rocketmq.hook.%s: %s must be %s, not %s"):format(hook, name, wanted(row),
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
