--- A folder with files that goes away after the spec.
---
---     local where = folder { ["s.lua"] = "print 'x'" }
---     child.run { where .. "/s.lua" }
---@param files table<string, string> texts by name; names may have folders of their own
---@return string path
return function(files)
  local path = os.tmpname()
  os.remove(path)
  assert(os.execute("mkdir -p " .. path) == 0)
  for name, text in pairs(files) do
    local inner = name:match "^(.*)/"
    if inner then os.execute(("mkdir -p %s/%s"):format(path, inner)) end
    local file = assert(io.open(path .. "/" .. name, "w"))
    file:write(text)
    file:close()
  end
  -- busted gives finally to the functions of the spec's own file only.
  getfenv(2).finally(function() os.execute("rm -r " .. path) end)
  return path
end
