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

--- Says whether a name is that of a selector in here, which a file must not take.
---@param name string
---@return boolean
function selector.is_ready_made(name) return files[name] == true end

return setmetatable(selector, {
  __index = function(self, name)
    -- One from a file is looked up each time: a reload puts another function in its place.
    if not files[name] then return type(name) == "string" and native.named(name) or nil end
    local value = require("rocketmq.selector." .. name)
    rawset(self, name, value)
    return value
  end,
})
