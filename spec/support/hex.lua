--- Bytes as hex digits and back, for vectors in specs.
local hex = {}

---@param bytes string
---@return string
function hex.encode(bytes)
  return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

--- Blanks between digits are skipped.
---@param digits string
---@return string
function hex.decode(digits)
  local bytes = digits:gsub("%s", ""):gsub("..", function(pair)
    return string.char(tonumber(pair, 16))
  end)
  return bytes
end

return hex
