--- What a topic or a broker permits: a set of bits.
local perm = { READ = 4, WRITE = 2, INHERIT = 1, READ_WRITE = 6 }

---@param set integer
---@param bit integer
---@return boolean
function perm.has(set, bit)
  return set % (bit * 2) >= bit
end

return perm
