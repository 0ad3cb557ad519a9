--- What is said of names that nobody knows, of methods that are called without their object, and of
--- arguments that nobody takes.
local naming = {}

-- The number of letters to insert, delete, replace or swap to make one name from the other.
local function distance(from, to)
  local before, previous = {}, {}
  for column = 0, #to do previous[column] = column end
  for row = 1, #from do
    local current = { [0] = row }
    for column = 1, #to do
      local letter, other = from:byte(row), to:byte(column)
      local best = math.min(previous[column] + 1, current[column - 1] + 1,
        previous[column - 1] + (letter == other and 0 or 1))
      if row > 1 and column > 1 and letter == to:byte(column - 1)
        and other == from:byte(row - 1) then
        best = math.min(best, before[column - 2] + 1)
      end
      current[column] = best
    end
    before, previous = previous, current
  end
  return previous[#to]
end

---The known name that looks most like a wrong one; nil when none is near.
---@param name string
---@param known string[]
---@return string?
function naming.nearest(name, known)
  local best, best_distance = nil, math.max(2, math.ceil(#name / 2)) + 1
  for _, candidate in ipairs(known) do
    local this = distance(name:lower(), candidate:lower())
    if this < best_distance then best, best_distance = candidate, this end
  end
  return best
end

---The text for a name that nobody knows.
---@param what string the thing that has the names: "mock", "rule"
---@param name any
---@param known string[]
---@return string
function naming.unknown(what, name, known)
  local nearest = type(name) == "string" and naming.nearest(name, known)
  return ("%s: unknown name '%s'%s"):format(what, tostring(name),
    nearest and (", did you mean '" .. nearest .. "'?")
    or "; known are " .. table.concat(known, ", "))
end

---Lets a table say what is meant when a field is read that it does not have. Names that begin with an
---underscore are nil: libraries ask the metatable of whatever they are given for `__eq` or `_name`.
---@param class table its metatable is this function's from here on
---@param hint fun(name: any): string the sentence
function naming.guard_names(class, hint)
  setmetatable(class, { __index = function(_, name)
    if type(name) == "string" and name:find "^_" then return nil end
    error(hint(name), 2)
  end })
end

-- The names of a function's parameters, without `self`, and whether it has that.
local function parameters_of(fn)
  local names, has_self = {}, debug.getlocal(fn, 1) == "self"
  for index = has_self and 2 or 1, debug.getinfo(fn, "u").nparams do
    names[#names + 1] = debug.getlocal(fn, index)
  end
  return names, has_self
end

---The text for an argument that a function does not take.
---@param called string how scripts call the function: "producer:send"
---@param takes string[] the names of those that it takes
---@param surplus any
---@return string
function naming.surplus(called, takes, surplus)
  return ("%s takes %s: argument %d, a %s, is one too many"):format(called,
    #takes == 0 and "no arguments" or "(" .. table.concat(takes, ", ") .. ")", #takes + 1,
    type(surplus))
end

---Lets a function raise, where it is called, for an argument that it would not look at: mostly one that
---belongs to another function, or into a table. One that is nil is none.
---@generic F: function
---@param called string as for `surplus`
---@param fn F
---@return F
function naming.limit_arguments(called, fn)
  if debug.getinfo(fn, "u").isvararg then return fn end
  local takes, has_self = parameters_of(fn)
  local first_surplus = #takes + (has_self and 2 or 1)
  return function(...)
    if select("#", ...) >= first_surplus then
      local surplus = select(first_surplus, ...)
      if surplus ~= nil then error(naming.surplus(called, takes, surplus), 2) end
    end
    return fn(...) -- a tail call: the function's own errors name the caller's line
  end
end

---Lets every method of a class say how it is called when it is called without its object, or with
---an argument too many.
---@param what string what scripts call the object: "mock"
---@param class table
---@param names string[]? of the methods; default: all
function naming.guard_methods(what, class, names)
  local is_meant = {}
  for _, name in ipairs(names or {}) do is_meant[name] = true end
  for name, method in pairs(class) do
    if type(method) == "function" and (not names or is_meant[name]) then
      method = naming.limit_arguments(what .. ":" .. name, method)
      class[name] = function(self, ...)
        if getmetatable(self) ~= class then
          error(("%s.%s: call it with a colon, as in %s:%s(...)"):format(what, name, what, name), 2)
        end
        return method(self, ...) -- a tail call: the method's own errors name the caller's line
      end
    end
  end
end

return naming
