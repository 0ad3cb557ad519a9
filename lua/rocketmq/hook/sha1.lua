--- SHA-1, HMAC and base64, in Lua: what signing requests takes. A kilobyte takes some microseconds where it
--- is compiled, and some hundred where it is not.

local bit = require "bit"
local band, bor, bxor = bit.band, bit.bor, bit.bxor
local rol, rshift, tobit = bit.rol, bit.rshift, bit.tobit
local byte, char = string.byte, string.char

local M = {}

local BLOCK = 64

-- Takes in the 64 bytes of `text` after `at`.
local function digest_block(h, w, text, at)
  for i = 0, 15 do
    local a, b, c, d = byte(text, at + i * 4 + 1, at + i * 4 + 4)
    w[i] = bor(a * 0x1000000, b * 0x10000, c * 0x100, d)
  end
  for i = 16, 79 do w[i] = rol(bxor(w[i - 3], w[i - 8], w[i - 14], w[i - 16]), 1) end
  local a, b, c, d, e = h[1], h[2], h[3], h[4], h[5]
  for i = 0, 79 do
    local f, k
    if i < 20 then
      f, k = bxor(d, band(b, bxor(c, d))), 0x5A827999
    elseif i < 40 then
      f, k = bxor(b, c, d), 0x6ED9EBA1
    elseif i < 60 then
      f, k = bor(band(b, c), band(d, bor(b, c))), 0x8F1BBCDC
    else
      f, k = bxor(b, c, d), 0xCA62C1D6
    end
    a, b, c, d, e = tobit(rol(a, 5) + f + e + k + w[i]), a, rol(b, 30), c, d
  end
  h[1], h[2], h[3] = tobit(h[1] + a), tobit(h[2] + b), tobit(h[3] + c)
  h[4], h[5] = tobit(h[4] + d), tobit(h[5] + e)
end

local function big_endian(n)
  return char(band(rshift(n, 24), 255), band(rshift(n, 16), 255), band(rshift(n, 8), 255),
    band(n, 255))
end

---@param text string
---@return string digest 20 bytes
function M.sha1(text)
  local h = { tobit(0x67452301), tobit(0xEFCDAB89), tobit(0x98BADCFE), tobit(0x10325476),
    tobit(0xC3D2E1F0) }
  local w = {}
  local padding = "\128" .. ("\0"):rep((55 - #text) % BLOCK)
  local bits = #text * 8
  text = text .. padding .. big_endian(math.floor(bits / 2 ^ 32)) .. big_endian(tobit(bits))
  for at = 0, #text - BLOCK, BLOCK do digest_block(h, w, text, at) end
  return big_endian(h[1]) .. big_endian(h[2]) .. big_endian(h[3]) .. big_endian(h[4])
    .. big_endian(h[5])
end

local function masked(key, mask)
  return (key:gsub(".", function(c) return char(bxor(byte(c), mask)) end))
end

---@param key string
---@param text string
---@return string code 20 bytes
function M.hmac(key, text)
  if #key > BLOCK then key = M.sha1(key) end
  key = key .. ("\0"):rep(BLOCK - #key)
  return M.sha1(masked(key, 0x5C) .. M.sha1(masked(key, 0x36) .. text))
end

local LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

local function letter(n) return LETTERS:sub(n + 1, n + 1) end

---@param text string
---@return string
function M.base64(text)
  local out = {}
  for at = 1, #text, 3 do
    local a, b, c = byte(text, at, at + 2)
    local n = a * 0x10000 + (b or 0) * 0x100 + (c or 0)
    out[#out + 1] = letter(rshift(n, 18)) .. letter(band(rshift(n, 12), 63))
      .. (b and letter(band(rshift(n, 6), 63)) or "=") .. (c and letter(band(n, 63)) or "=")
  end
  return table.concat(out)
end

return M
