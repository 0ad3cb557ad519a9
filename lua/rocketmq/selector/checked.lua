--- What the selectors check of what they are given.
local native = require "rocketmq.native.selector"

local checked = {}

--- Raises at the caller's caller.
local function refuse(where, what, ...)
  error(("rocketmq.selector.%s: " .. what):format(where, ...), 4)
end

-- What makes a selector was given where a selector belongs, so it is called with the list of queues.
local function refuse_queues(where, value)
  if type(value) ~= "table" or value[1] == nil then return end
  return refuse(where, "it makes a selector and is none: call it once, as in "
    .. "selector = rocketmq.selector.%s(...)", where)
end

--- Options, of which each must be in `known`: name to type.
---@param where string the selector's name
---@param options any
---@param known table<string, string>
---@return table options
function checked.options(where, options, known)
  if options == nil then return {} end
  if type(options) ~= "table" then
    refuse(where, "its options must be a table, not %s", type(options))
  end
  refuse_queues(where, options)
  for name, value in pairs(options) do
    local wanted = known[name]
    if not wanted then
      local names = {}
      for other in pairs(known) do names[#names + 1] = other end
      table.sort(names)
      refuse(where, "it has no option '%s': there are %s", tostring(name),
        #names > 0 and table.concat(names, ", ") or "none")
    end
    if type(value) ~= wanted then
      refuse(where, "option %s must be a %s, not %s", name, wanted, type(value))
    end
  end
  return options
end

--- A whole number from `least` on.
---@param where string
---@param name string
---@param value any nil: the default
---@param default integer?
---@param least integer
function checked.whole(where, name, value, default, least)
  if value == nil then return default end
  if value < least or value ~= math.floor(value) or value == math.huge then
    refuse(where, "option %s is %s; it must be a whole number from %d on", name, tostring(value),
      least)
  end
  return value
end

--- Where the script makes the selector: "orders.lua:7". For errors that come later, when C asks.
---@return string
function checked.place()
  local info = debug.getinfo(3, "Sl")
  return info and ("%s:%d"):format(info.short_src, info.currentline) or "?"
end

--- A selector: a function, a table that can be called, or a name.
---@param where string
---@param what string which of the arguments it is
---@param value any
---@return rocketmq.Selector
function checked.selector(where, what, value)
  if type(value) == "function" then return value end
  if type(value) == "string" then
    local named = native.named(value)
    for _, maker in ipairs(named and {} or require("rocketmq.selector").names()) do
      if maker == value then
        refuse(where, "%s: there is no selector '%s', but rocketmq.selector.%s { ... } makes one",
          what, value, value)
      end
    end
    if not named then
      refuse(where, "%s: %s", what, require("rocketmq.naming").unknown("selector", value,
        require("rocketmq.selector").names()))
    end
    -- Looked up at each call, for a reload may put another one in its place.
    return function(queues, message, arg, ctx)
      return (native.named(value) or named)(queues, message, arg, ctx)
    end
  end
  local metatable = debug.getmetatable(value)
  if type(metatable) == "table" and metatable.__call then return value end
  refuse_queues(where, value)
  refuse(where, "%s must be a selector or the name of one, not %s", what, type(value))
end

return checked
