--- Plugins: selectors and hooks that are files of their own, for an operator to read, change and
--- load again. docs/plugins.md tells how they are used.
---
--- What is loaded is kept by C, not here: this module may be loaded anew at any time.

local errors = require "rocketmq.error"
local globals = require "rocketmq.plugins.globals"
local native = require "rocketmq.native.plugins"
local util = require "jit.util"

---@class rocketmq.Plugin
---@field is "selector"|"hook"
---@field name string
---@field path string the file
---@field value rocketmq.Selector|rocketmq.Hook the function of a selector, the table of a hook

--- Where plugins come from.
---@class rocketmq.PluginSource
---@field is "selector"|"hook"|"plugins" a file that is said to be the one or the other, or a folder
---@field path string

local state = native.state
--- All that have names, also those that C has itself.
local selectors = state.selectors

local M = {}

-- The reason why something is not loaded travels as an error, so that it comes out of everything
-- between; this tells it from a mistake in here.
local function refuse(message, status) error({ refusal = message, status = status or 1 }, 0) end

-- --- One file ------------------------------------------------------------------------------------

-- Where a file returns: its last return, which is what an operator has to mend when it is not what was
-- wanted.
local function place_of(chunk, path)
  local line = util.funcinfo(chunk, util.funcinfo(chunk).bytecodes - 1).currentline
  return line and line > 0 and ("%s:%d"):format(path, line) or path -- bytecode has no lines
end

-- A file that is loaded as what it is not: it has a hook's function, a selector's, or both.
local function refuse_kind(place, hooks, selects)
  if hooks and selects then
    refuse(("%s: the table has 'select' and '%s'; a selector and a hook are two files"):format(
      place, hooks))
  end
  local is = hooks and "hook" or "selector"
  refuse(("%s: the table has '%s', so it is a %s: load it with --%s, in a script with "
    .. "rocketmq.load_%s"):format(place, hooks or "select", is, is, is))
end

-- The name of a function that only hooks have.
local function hook_function(value)
  local has_function = require("rocketmq.hook").has_function
  for name in pairs(value) do
    if has_function(name) then return name end
  end
end

local function check_selector(place, value)
  local hooks = hook_function(value)
  if hooks then refuse_kind(place, hooks, value.select ~= nil) end
  for name, part in pairs(value) do
    if name ~= "name" and name ~= "select" then
      refuse(require("rocketmq.naming").unknown(place .. ": the table of the selector", name,
        { "name", "select" }))
    end
    local wanted = name == "name" and "string" or "function"
    if type(part) ~= wanted then
      refuse(("%s: %s of the selector must be a %s, not %s"):format(place, name, wanted,
        type(part)))
    end
  end
  if value.name == "" then refuse(place .. ": the name of the selector is empty") end
  if not value.select then
    refuse(("%s: the table of the selector must have the function select"):format(place))
  end
end

local function check(is, place, value)
  if is == "selector" then return check_selector(place, value) end
  if type(value) == "table" and value.select ~= nil then
    refuse_kind(place, hook_function(value), true)
  end
  local why = require("rocketmq.hook").check(value, place .. ": the hook")
  if why then refuse(why) end
end

-- What a file returns, as a table of its own that says nothing else later.
local function as_table(is, value)
  if type(value) == "function" then return is == "selector" and { select = value } or value end
  local plain = {}
  for name, part in pairs(value) do plain[name] = part end
  return plain
end

-- What the file of a folder is: its table says.
local function guess(place, value)
  if type(value) == "function" then
    refuse(("%s: a file of --plugins must say what it is: return {select = function} for a "
      .. "selector, or a table of a hook's functions"):format(place))
  end
  return value.select ~= nil and "selector" or "hook"
end

-- An error that came out of a file, with the file in front.
local function told(path, text)
  if text:find(path, 1, true) ~= 1 then text = path .. ": " .. text end
  return (text:gsub("^[^\n]*attempt to yield across C%-call boundary",
    "%0: the file of a plugin has to answer at once, it cannot yield or wait"))
end

--- Reads a file; raises what is wrong with it.
---@param is "selector"|"hook"|"plugins" what it is said to be
---@param path string
---@return rocketmq.Plugin
local function read(is, path)
  local chunk, why, status = native.load(is == "plugins" and "plugin" or is, path, globals.new())
  if not chunk then refuse(why, status) end
  local unfit = globals.check(chunk, path)
  if unfit then refuse(unfit) end
  local ok, value = native.run(chunk)
  if not ok then refuse(told(path, value)) end
  local place = place_of(chunk, path)
  if type(value) ~= "table" and type(value) ~= "function" then
    refuse(("%s: the file must return %s, not %s"):format(place,
      is == "selector" and "a function or a table" or "a table",
      value == nil and "nothing" or "a " .. type(value)))
  end
  value = as_table(is, value)
  if is == "plugins" then is = guess(place, value) end
  check(is, place, value)
  value.name = value.name or path:match("[^/]*$"):gsub("%.lua$", "")
  if is == "selector" and require("rocketmq.selector").is_ready_made(value.name) then
    refuse(("%s: there is a ready-made selector '%s'; give this one another name"):format(place,
      value.name))
  end
  return { is = is, name = value.name, path = path, value = value.select or value }
end

-- --- All files -----------------------------------------------------------------------------------

-- The Lua files of a folder, in the order of their names.
local function files_of(folder)
  local uv = require "luv"
  local scan, why = uv.fs_scandir(folder)
  if not scan then refuse(("cannot read the folder of --plugins: %s"):format(why), 2) end
  local files = {}
  folder = folder:gsub("/+$", "")
  for name in uv.fs_scandir_next, scan do
    if name:find "^[^.].*%.lua$" then files[#files + 1] = folder .. "/" .. name end
  end
  table.sort(files)
  return files
end

-- Puts a plugin into a list, in the place of what its file gave before.
local function put(list, plugin)
  local at = #list + 1
  for i, other in ipairs(list) do
    if other.path == plugin.path then
      if other.is ~= plugin.is then
        refuse(("%s is loaded as a %s already; a file is one thing"):format(plugin.path, other.is))
      end
      at = i
    elseif other.name == plugin.name and other.is == plugin.is then
      refuse(("two %ss are called '%s': %s and %s; give one of them another name"):format(
        plugin.is, plugin.name, other.path, plugin.path))
    end
  end
  list[at] = plugin
end

local function read_source(list, source)
  if source.is ~= "plugins" then return put(list, read(source.is, source.path)) end
  for _, path in ipairs(files_of(source.path)) do put(list, read("plugins", path)) end
end

-- From here on this is what is loaded. Tables that others hold stay the same tables.
local function use(list)
  for _, plugin in ipairs(state.loaded) do
    if plugin.is == "selector" then selectors[plugin.name] = nil end
  end
  for i = #state.hooks, 1, -1 do state.hooks[i] = nil end
  for _, plugin in ipairs(list) do
    if plugin.is == "selector" then
      selectors[plugin.name] = plugin.value
    else
      state.hooks[#state.hooks + 1] = plugin.value
    end
  end
  state.loaded = list
  native.name(list)
  for producer in pairs(state.producers) do producer:replace_loaded_hooks(state.hooks) end
end

local function copy(list)
  local new = {}
  for i, item in ipairs(list) do new[i] = item end
  return new
end

-- Runs `work` with a list of plugins to change, and uses that when nothing was refused.
---@param list rocketmq.Plugin[]
---@param work fun(list: rocketmq.Plugin[])
---@return boolean? ok
---@return rocketmq.Error? err
---@return integer? status to exit with
local function change(list, work)
  if native.inside() then
    return nil, errors.new("state", "a selector, a hook or the file of a plugin cannot load "
      .. "plugins"), 1
  end
  local ok, why = pcall(work, list)
  if ok then
    use(list)
    return true
  end
  if type(why) ~= "table" or not why.refusal then error(why, 0) end
  return nil, errors.new("state", why.refusal), why.status
end

local function reload_at_hangup()
  local ok, err = M.reload()
  if ok then
    native.log("info", ("SIGHUP: %d plugin%s loaded again"):format(#state.loaded,
      #state.loaded == 1 and "" or "s"))
  else
    native.log("error", "SIGHUP: the plugins stay as they are: " .. err.message)
  end
end

--- Loads what one source gives, and lets SIGHUP load everything again from then on. Loading a file
--- once more replaces what it gave.
---@param source rocketmq.PluginSource
---@return boolean? ok
---@return rocketmq.Error? err what is wrong, with the file and the line
---@return integer? status for the process to end with, when this was at its start
function M.load(source)
  local ok, err, status = change(copy(state.loaded), function(list) read_source(list, source) end)
  if not ok then return nil, err, status end
  local known = false
  for _, other in ipairs(state.sources) do
    known = known or other.is == source.is and other.path == source.path
  end
  if not known then state.sources[#state.sources + 1] = source end
  native.on_hangup(reload_at_hangup)
  return true
end

--- Reads all files again; nothing is changed unless all of them are well. Messages that are under way
--- keep what they have.
---@param ... any is not looked at: what calls it back may give the name of a signal, or of a file
---@return true? ok
---@return rocketmq.Error? err
function M.reload(...) -- luacheck: no unused args
  local ok, err = change({}, function(list)
    for _, source in ipairs(state.sources) do read_source(list, source) end
  end)
  if not ok then return nil, err end
  return true
end

--- What is loaded, in the order of its loading. A copy.
---@return rocketmq.Plugin[]
function M.list() return copy(state.loaded) end

local function load_file(is, path)
  if type(path) ~= "string" then
    error(("load_%s: the file must be a string, not %s"):format(is, type(path)), 2)
  end
  local ok, err = M.load { is = is, path = path }
  if not ok then return nil, err end
  for _, plugin in ipairs(state.loaded) do
    if plugin.path == path then return plugin.name end
  end
end

--- Loads a selector from a file, as --selector does. Its name then works wherever a selector does.
---@param path string
---@return string? name
---@return rocketmq.Error? err
function M.load_selector(path) return load_file("selector", path) end

--- Loads a hook from a file, as --hook does. Every producer has it from then on.
---@param path string
---@return string? name
---@return rocketmq.Error? err
function M.load_hook(path) return load_file("hook", path) end

return M
