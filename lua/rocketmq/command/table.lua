--- A table that is written on a command line.

---Reads `brokers=3,topics={Orders=8}`, with or without its braces: Lua, but nothing can be called in it.
---Raises, without a position, when it is none.
---@param option string that it is the value of, for the error
---@param text string
---@return table
return function(option, text)
  local whole = text:find "^%s*{" and text or "{" .. text .. "}"
  local chunk, err = loadstring("return " .. whole, "=" .. option)
  if not chunk then error(err, 0) end
  local nothing = setmetatable({}, { __index = function(_, name)
    error(("%s: '%s' is no value; as a text it is in quotes: \"%s\""):format(option, name, name), 0)
  end })
  local ok, value = pcall(setfenv(chunk, nothing))
  if not ok then error(value, 0) end
  if type(value) ~= "table" then error(option .. ": is no table", 0) end
  return value
end
