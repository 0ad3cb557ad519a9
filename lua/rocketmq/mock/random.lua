--- Repeatable random numbers for one mock, so that a seed makes a run repeatable whatever else
--- draws from math.random.
local bit = require "bit"

---@param seed integer
---@return fun(n: integer): integer draw gives a number from 0 to n - 1
return function(seed)
  -- Xorshift never leaves 0, and small seeds take a few rounds to spread over all bits.
  local state = bit.bxor(bit.tobit(seed), 0x5bd1e995)
  if state == 0 then state = 1 end
  local function step()
    state = bit.bxor(state, bit.lshift(state, 13))
    state = bit.bxor(state, bit.rshift(state, 17))
    state = bit.bxor(state, bit.lshift(state, 5))
    return state
  end
  for _ = 1, 8 do step() end
  return function(n)
    return bit.band(step(), 0x7fffffff) % n
  end
end
