---@meta rocketmq.native.plugins
-- luacheck: ignore 212

--- What C gives to `rocketmq.plugins`.
---@class rocketmq.native.plugins
---@field state rocketmq.native.plugins.state
local native = {}

--- Belongs to the worker, so that it outlives the modules.
---@class rocketmq.native.plugins.state
---@field selectors table<string, rocketmq.Selector> by name, also those that C has itself; asked at each call
---@field hooks rocketmq.Hook[] that every producer has
---@field producers table<rocketmq.Producer, true> all that there are; weak in its keys
---@field checking boolean? the process is to run nothing (--check)
---@field loaded rocketmq.Plugin[] in the order of their loading
---@field sources rocketmq.PluginSource[] in the order of their loading

--- Loads a file with these globals, never to be compiled by the JIT.
---@param what string what it is said to be in errors
---@param path string
---@param globals table
---@return function? chunk
---@return string? why
---@return integer? status for the process to end with: 2 it cannot be read, 1 it is no Lua
function native.load(what, path, globals) end

--- Calls a function where nothing can wait.
---@param chunk function
---@return boolean ok
---@return any value what it returns first, or the error with its traceback
function native.run(chunk) end

--- True inside of a selector, a hook or the file of a plugin.
---@return boolean
function native.inside() end

--- Which files are which plugins, for when Lua cannot be asked.
---@param plugins rocketmq.Plugin[]
function native.name(plugins) end

---@param level "debug"|"info"|"warn"|"error"
---@param text string
function native.log(level, text) end

--- What SIGHUP does from now on. Before the first call it ends the process.
---@param reload fun()
function native.on_hangup(reload) end

return native
