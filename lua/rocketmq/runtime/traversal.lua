--- Makes `pairs` and `next` give all of a table, however long the process runs.
---
--- LuaJIT reads `for k, v in pairs(t)` and `in next, t` as an instruction of its own, which keeps a number where the
--- key should be. When a loop cannot be compiled (it has an inner loop, say), it is turned into an ordinary
--- one after some ten thousand rounds. Machine code of other loops that was made before and leads
--- through it still takes the key for a number: from then on the loop ends after its first element,
--- or gives values that are no values of the table. That is LuaJIT's issue 827, and Debian 12's LuaJIT
--- has it; a loop that loses one element (issue 1510) is in every version up to August 2026. And the
--- machine code of `next` itself may use half of an address (issue 829), which ends the process.
---
--- None of it can happen to a loop over any other function that is never compiled. So here is one. An element costs
--- about 15 ns more, and what is around such a loop, up to the next loop or call, is interpreted.
local native_next, native_pairs, type = next, pairs, type

-- Both calls are tail calls, so that an error says the line of whoever called.

function next(t, key) return native_next(t, key) end

local following = next

function pairs(t)
  if type(t) ~= "table" then return native_pairs(t) end -- an error, or __pairs of a cdata
  return following, t, nil
end

jit.off(next)
jit.off(pairs)
