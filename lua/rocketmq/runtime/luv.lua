--- Makes luv's functions about the loop fit a loop that runs already.
local native = ...

---@param uv table the luv module, changed in place
return function(uv)
  local handles = {}
  for name, metatable in pairs(debug.getregistry()) do
    if type(name) == "string" and name:find("^uv_") and type(metatable) == "table" then
      handles[metatable] = true
    end
  end

  ---Lets the loop run while this task waits: until nothing else is pending ("default", the default), until something
  ---has happened ("once"), or for one turn ("nowait").
  ---@param mode "default"|"once"|"nowait"|nil
  ---@return boolean # whether something is still active
  function uv.run(mode)
    mode = mode or "default"
    if mode ~= "default" and mode ~= "once" and mode ~= "nowait" then
      error("uv.run: the mode must be default, once or nowait, not " .. tostring(mode), 2)
    end
    local stopped = native.run(mode)
    if mode == "default" then return stopped end
    return uv.loop_alive()
  end

  ---Lets every uv.run return. The loop itself belongs to the runtime and goes on.
  function uv.stop()
    native.stop()
  end

  ---The loop belongs to the runtime, which closes it.
  function uv.loop_close()
    return nil, "EBUSY: the loop belongs to the runtime", "EBUSY"
  end

  ---Calls a function with each of luv's handles; the runtime's own stay out of it.
  ---@param fn fun(handle: userdata)
  function uv.walk(fn)
    local found = {}
    for _, value in pairs(debug.getregistry()) do
      if type(value) == "userdata" and handles[debug.getmetatable(value)] then
        found[#found + 1] = value
      end
    end
    for _, handle in ipairs(found) do fn(handle) end
  end

  return uv
end
