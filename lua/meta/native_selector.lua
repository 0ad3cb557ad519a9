---@meta rocketmq.native.selector
-- luacheck: ignore 212

--- What C gives to `rocketmq.selector`. The four selectors are recognized when a send is given them: C
--- then chooses by itself and calls no Lua.
---@class rocketmq.native.selector
---@field best rocketmq.Selector
---@field hash rocketmq.Selector
---@field hash_fnv1a rocketmq.Selector
---@field random rocketmq.Selector
local native = {}

--- A random whole number.
---@param n integer
---@return integer from 1 to n
function native.draw(n) end

--- A hash whose 32 bits depend on each byte, for points of a ring. No other client has it.
---@param text string
---@return integer from 0 to 2^32 - 1
function native.spread(text) end

--- The selector with a name: one of the four, or one that was loaded from a file.
---@param name string
---@return rocketmq.Selector?
function native.named(name) end

return native
