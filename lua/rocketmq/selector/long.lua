--- Java's Long.hashCode() of an int64_t cdata; of a uint64_t the hash of the long that has the same
--- 64 bits. Nil for any other cdata. C runs this the first time that such a value is hashed.
local bit = require "bit"
local ffi = require "ffi"

local signed, unsigned = ffi.typeof "int64_t", ffi.typeof "uint64_t"

---@param value any a cdata
---@return integer? hash 32 bits, with its sign
return function(value)
  if not ffi.istype(signed, value) and not ffi.istype(unsigned, value) then return nil end
  return bit.tobit(bit.bxor(value, bit.rshift(value, 32)))
end
