--- Counts times in buckets that grow with the time, so that every percentile is right to about 3 % in
--- bounded memory: as HdrHistogram does it, with 16 buckets for each power of two of microseconds.

local bit = require "bit"

local SUB = 16 -- buckets for each power of two
local MOST = 2 ^ 31 - 1 -- microseconds; what is longer counts as this

---@class rocketmq.Histogram
---@field count integer
---@field sum number milliseconds
---@field least? number milliseconds
---@field most? number milliseconds
---@field private buckets table<integer, integer> at most 448
local Histogram = {}
Histogram.__index = Histogram

-- Below 32 us each has its own; above, the four bits after the first one count.
local function bucket_of(us)
  local shift = 0
  while bit.rshift(us, shift) >= 2 * SUB do shift = shift + 1 end
  return shift * SUB + bit.rshift(us, shift)
end

-- The middle of a bucket, in microseconds.
local function middle_of(bucket)
  if bucket < 2 * SUB then return bucket end
  local shift = math.floor(bucket / SUB) - 1
  local width = 2 ^ shift
  return (bucket - shift * SUB) * width + (width - 1) / 2
end

---@param ms number
function Histogram:add(ms)
  local bucket = bucket_of(math.max(0, math.min(MOST, math.floor(ms * 1000 + 0.5))))
  self.buckets[bucket] = (self.buckets[bucket] or 0) + 1
  self.count = self.count + 1
  self.sum = self.sum + ms
  self.least = math.min(self.least or ms, ms)
  self.most = math.max(self.most or ms, ms)
end

--- The time in milliseconds that a share of all (0.99) do not exceed; nil when there are none.
---@param share number 0 to 1
---@return number? ms
function Histogram:percentile(share)
  if self.count == 0 then return nil end
  local wanted = math.max(1, math.ceil(share * self.count))
  local numbers = {}
  for bucket in pairs(self.buckets) do numbers[#numbers + 1] = bucket end
  table.sort(numbers)
  local seen = 0
  for _, bucket in ipairs(numbers) do
    seen = seen + self.buckets[bucket]
    if seen >= wanted then
      return math.max(self.least, math.min(self.most, middle_of(bucket) / 1000))
    end
  end
end

local M = {}

---@return rocketmq.Histogram
function M.new() return setmetatable({ count = 0, sum = 0, buckets = {} }, Histogram) end

return M
