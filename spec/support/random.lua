--- Random input for specs. A round that fails names its seed, and RMQ_SEED=<seed> runs only that one.
local random = {}

---@class spec.random_source
local source = {}
source.__index = source

--- A whole number from `low` to `high`.
---@param low integer
---@param high integer
---@return integer
function source:int(low, high)
  -- The product stays below 2^53, so the numbers are the same on every machine.
  self.state = (self.state * 1103515245 + 12345) % 2147483648
  return low + math.floor(self.state / 2147483648 * (high - low + 1))
end

--- One element of a list.
---@generic T
---@param list T[]
---@return T
function source:one_of(list)
  return list[self:int(1, #list)]
end

--- Up to `max` bytes, of those in `alphabet` or of all.
---@param max integer
---@param alphabet? string
---@param min? integer
---@return string
function source:bytes(max, alphabet, min)
  local parts = {}
  for i = 1, self:int(min or 0, max) do
    if alphabet then
      local at = self:int(1, #alphabet)
      parts[i] = alphabet:sub(at, at)
    else
      parts[i] = string.char(self:int(0, 255))
    end
  end
  return table.concat(parts)
end

--- Up to `max` characters of valid UTF-8, of one to four bytes each, control characters among them.
---@param max integer
---@param min? integer
---@return string
function source:text(max, min)
  local parts = {}
  for i = 1, self:int(min or 0, max) do
    parts[i] = self:one_of { "a", "Z", "0", " ", "\"", "\\", "/", "\n", "\t", "\127", "\31", "{",
      "}", ":", ",", "\194\128", "é", "订", "\239\191\191", "😀" }
  end
  return table.concat(parts)
end

---@param seed integer
---@return spec.random_source
function random.source(seed)
  return setmetatable({ state = seed % 2147483648 }, source)
end

--- Runs `round` with `count` sources, each of another seed.
---@param count integer
---@param round fun(source: spec.random_source)
function random.rounds(count, round)
  local given = tonumber(os.getenv "RMQ_SEED")
  local first = given or os.time() * 7919 % 2147483648
  for seed = first, given or first + count - 1 do
    local ok, err = pcall(round, random.source(seed))
    if not ok then
      if type(err) == "table" and err.message then err = err.message end
      error(("RMQ_SEED=%d fails: %s"):format(seed, tostring(err)), 0)
    end
  end
end

return random
