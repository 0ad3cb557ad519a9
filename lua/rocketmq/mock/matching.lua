--- Which of the things that a mock has seen are like what a spec describes, and what is said when
--- none is.
local naming = require "rocketmq.naming"
local task = require "rocketmq.native.task"

local matching = {}

local SHOWN = 5       -- so many candidates
local TEXT_SHOWN = 60 -- so many bytes of a text

---One field that a description may have: its name, and how a value of it is compared.
---@class rocketmq.mock.Comparison
---@field name string
---@field compare "equal"|"subset"|"list" `subset`: a table, all of which must be there; `list`: a value or
--- several, all of which must be in the list

---A value for an error message: a text shortened, with what is not printable as escapes.
---@param value any
---@return string
function matching.show(value)
  if type(value) == "string" then
    local text = #value > TEXT_SHOWN and value:sub(1, TEXT_SHOWN) or value
    text = text:gsub('[%c"\\\127]', function(c)
      return c == '"' and '\\"' or c == "\\" and "\\\\" or ("\\x%02x"):format(c:byte())
    end)
    return '"' .. text .. '"' .. (#value > TEXT_SHOWN and (" (%d bytes)"):format(#value) or "")
  end
  if type(value) ~= "table" then return tostring(value) end
  local parts, names = {}, {}
  for index, one in ipairs(value) do parts[index] = matching.show(one) end
  for name in pairs(value) do
    if type(name) == "string" then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    parts[#parts + 1] = name .. " = " .. matching.show(value[name])
  end
  return #parts == 0 and "{}" or "{ " .. table.concat(parts, ", ") .. " }"
end

-- A function, or one of luassert's matchers, decides itself.
local function is_predicate(wanted)
  if type(wanted) == "function" then return true end
  local metatable = type(wanted) == "table" and getmetatable(wanted)
  return type(metatable) == "table" and metatable.__call ~= nil
end

local function equal(wanted, value)
  if is_predicate(wanted) then return wanted(value) and true or false end
  return wanted == value
end

local compare = { equal = equal }

function compare.subset(wanted, value)
  if is_predicate(wanted) then return equal(wanted, value) end
  for name, one in pairs(wanted) do
    if not equal(one, (value or {})[name]) then return false end
  end
  return true
end

local function contains(list, wanted)
  for _, one in ipairs(list) do
    if equal(wanted, one) then return true end
  end
  return false
end

function compare.list(wanted, value)
  if is_predicate(wanted) then return equal(wanted, value) end
  if type(wanted) ~= "table" then wanted = { wanted } end
  for _, one in ipairs(wanted) do
    if not contains(value or {}, one) then return false end
  end
  return true
end

-- What is wrong with one field of a candidate, as a text.
local function difference(row, wanted, value)
  if row.compare == "subset" and type(wanted) == "table" and not is_predicate(wanted) then
    local names = {}
    for name, one in pairs(wanted) do
      if not equal(one, (value or {})[name]) then names[#names + 1] = name end
    end
    table.sort(names)
    for index, name in ipairs(names) do
      local there = (value or {})[name]
      names[index] = ("%s.%s is %s"):format(row.name, name, matching.show(there))
    end
    return table.concat(names, ", ")
  end
  return ("%s is %s"):format(row.name, matching.show(value))
end

---Raises, without a position, for a name that no description has, or a value that makes no sense.
---@param what string
---@param wanted table
---@param rows rocketmq.mock.Comparison[]
function matching.check(what, wanted, rows)
  if type(wanted) ~= "table" then
    error(("%s: what is wanted must be a table, not %s"):format(what, type(wanted)), 0)
  end
  local names, by_name = {}, {}
  for index, row in ipairs(rows) do names[index], by_name[row.name] = row.name, row end
  for name, value in pairs(wanted) do
    local row = by_name[name]
    if not row then error(naming.unknown(what, name, names), 0) end
    if row.compare == "subset" and type(value) ~= "table" and type(value) ~= "function" then
      error(("%s: '%s' must be a table, not %s"):format(what, name, type(value)), 0)
    end
  end
end

-- Whether one field is as wanted. A function of a script's may raise; then it is said whose it is.
local function is_like(row, wanted, value)
  local ok, holds = pcall(compare[row.compare], wanted, value)
  if ok then return holds end
  error(("the function for '%s' failed: %s"):format(row.name, task.error_text(holds)), 0)
end

---Which candidates are as wanted.
---@param wanted table
---@param rows rocketmq.mock.Comparison[]
---@param candidates table[]
---@return table[] found
---@return table[] others the others, each `candidate` and `differences` (texts), the nearest first
function matching.pick(wanted, rows, candidates)
  local found, others = {}, {}
  for number, candidate in ipairs(candidates) do
    local differences = {}
    for _, row in ipairs(rows) do
      local one = wanted[row.name]
      if one ~= nil and not is_like(row, one, candidate[row.name]) then
        differences[#differences + 1] = difference(row, one, candidate[row.name])
      end
    end
    if #differences == 0 then
      found[#found + 1] = candidate
    else
      others[#others + 1] = { candidate = candidate, differences = differences, number = number }
    end
  end
  table.sort(others, function(a, b)
    if #a.differences ~= #b.differences then return #a.differences < #b.differences end
    return a.number < b.number
  end)
  return found, others
end

-- Lines, at most SHOWN of them, and how many more there are.
local function lines_of(list, line)
  local lines = {}
  for index = 1, math.min(#list, SHOWN) do lines[index] = "  " .. line(list[index]) end
  if #list > SHOWN then lines[#lines + 1] = ("  and %d more"):format(#list - SHOWN) end
  return table.concat(lines, "\n")
end

---What was found instead.
---@param plural string what the candidates are: "messages"
---@param found table[]
---@param others table[] as `pick` gives them
---@param describe fun(candidate: table): string one line
---@return string
function matching.explain(plural, found, others, describe)
  local parts = {}
  if #found > 0 then
    parts[1] = ("These %s are as wanted:\n%s"):format(plural, lines_of(found, describe))
  end
  if #others > 0 then
    parts[#parts + 1] = ("These %s are not, the nearest first:\n%s"):format(plural,
      lines_of(others, function(other)
        return ("%s: %s"):format(describe(other.candidate), table.concat(other.differences, ", "))
      end))
  end
  return table.concat(parts, "\n")
end

return matching
