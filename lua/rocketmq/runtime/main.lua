--- The main task: what the command line asks for, in its order, then the script.
local native = require "rocketmq.native.task"

--- Starts the mock. False when that failed, which has been said then.
local function start_mock(mock, quiet)
  local ok, address = pcall(function()
    return require "rocketmq.runtime.mock"(mock.spec, quiet)
  end)
  if ok then
    native.serve(address, mock.forced)
  else
    native.refuse("--mock: " .. native.error_text(address))
  end
  return ok
end

--- Runs under a handler, because only that still sees the line of every frame.
local function run(fn, ...)
  local failure
  local ok = xpcall(fn, function(err)
    failure = { err = err, traceback = native.traceback(err) }
  end, ...)
  if not ok then
    failure = failure or { err = "no stack left", traceback = "no stack left" }
    native.uncaught(failure.err, failure.traceback)
  end
  return ok
end

--- Loads the plugins. False when one cannot be loaded, which has been said then.
local function load_plugins(sources)
  if not sources[1] then return true end
  local plugins = require "rocketmq.plugins"
  for _, source in ipairs(sources) do
    local ok, err, status = plugins.load(source)
    if not ok then
      native.refuse(err.message, status)
      return false
    end
  end
  return true
end

--- What --check lists.
local function list()
  for _, plugin in ipairs(require("rocketmq.plugins").list()) do
    local parts = {}
    if plugin.is == "hook" then
      for name, value in pairs(plugin.value) do
        if type(value) == "function" then parts[#parts + 1] = name end
      end
      table.sort(parts)
    end
    print(("%-8s  %-16s  %s%s"):format(plugin.is, plugin.name, plugin.path,
      parts[1] and ": " .. table.concat(parts, ", ") or ""))
  end
end

--- What the command line asks for.
---@class rocketmq.Orders
---@field mock? {spec: string?, forced: boolean} what --mock says
---@field plugins rocketmq.PluginSource[]
---@field steps (string|function)[] a module to require, or a chunk
---@field check boolean nothing is to be run

---@param orders rocketmq.Orders
---@param script function?
---@param ... string the script's arguments
return function(orders, script, ...)
  -- With --check, too: the files of plugins may make producers, and are to find what they will find.
  if orders.mock and not start_mock(orders.mock, orders.check) then return end
  require("rocketmq.native.plugins").state.checking = orders.check
  if not load_plugins(orders.plugins) then return end
  if orders.check then
    list()
    if script then print(("%-8s  %s"):format("script", arg[0])) end
    return
  end
  for _, step in ipairs(orders.steps) do
    local ok
    if type(step) == "string" then ok = run(require, step) else ok = run(step) end
    if not ok then return end
  end
  if script then run(script, ...) end
end
