--- rocketmq.selector: ready-made selectors, each in a file of its own beside this one.
---
--- A selector is a function `(queues, message, arg, ctx)` that gives one of the queues or its number.
--- What is a selector itself is written without braces, what makes one with them:
---
---     { selector = selector.hash, arg = "order-1" }         -- or selector = "hash"
---     { selector = selector.round_robin {} }                -- make it once, it remembers
---
--- Those that were loaded from files (`--selector`) are here by their names, too.
---@class rocketmq.selector
---@field hash rocketmq.Selector as Java's SelectMessageQueueByHash
---@field hash_fnv1a rocketmq.Selector as client-go's hash selector
---@field random rocketmq.Selector
---@field best rocketmq.Selector the producer's own choice
---@field round_robin fun(options?: table): rocketmq.Selector
---@field machine_room fun(options: table): rocketmq.MachineRoom
---@field consistent_hash fun(options?: table): rocketmq.Selector
---@field sticky fun(options?: table): rocketmq.Selector
---@field weighted fun(options: table): rocketmq.Selector
---@field available fun(selector: rocketmq.Selector|string): rocketmq.Selector
---@field fallback fun(first: rocketmq.Selector|string, second: rocketmq.Selector|string): rocketmq.Selector
---@field by fun(key: function, selector: rocketmq.Selector|string): rocketmq.Selector
local selector = {}

local native = require "rocketmq.native.selector"

local files = {
  best = true,
  hash = true,
  hash_fnv1a = true,
  random = true,
  round_robin = true,
  machine_room = true,
  consistent_hash = true,
  sticky = true,
  weighted = true,
  available = true,
  fallback = true,
  by = true,
}

--- All names that there are: of the files here, and of those that were loaded.
---@return string[]
function selector.names()
  local names = {}
  for name in pairs(files) do names[#names + 1] = name end
  for name in pairs(require("rocketmq.native.plugins").state.selectors) do
    if not files[name] then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

--- Says whether a name is that of a selector in here, which a file must not take.
---@param name string
---@return boolean
function selector.is_ready_made(name) return files[name] == true end

-- For a name that there is not: mostly a typing error, which as nil would be a send without a selector.
local function unknown(name)
  return require("rocketmq.naming").unknown("rocketmq.selector", name, selector.names())
end

return setmetatable(selector, {
  __index = function(self, name)
    if type(name) ~= "string" then return nil end
    if not files[name] then
      -- One from a file is looked up each time: a reload puts another function in its place.
      return native.named(name) or error(unknown(name), 2)
    end
    local value = require("rocketmq.selector." .. name)
    rawset(self, name, value)
    return value
  end,
})
