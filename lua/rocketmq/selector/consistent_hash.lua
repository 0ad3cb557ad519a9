--- One key to one queue, and when queues come or go only the keys of those move: plain `hash` moves
--- nearly all of them then.
---
---     local ring = rocketmq.selector.consistent_hash {}
---     producer:send({ topic = "Orders", body = "..." }, { selector = ring, arg = "order-1" })
---
--- Each queue has `points` places on a ring, which depend on its broker and id only, and a key goes to the
--- queue whose place comes next behind its own. So all producers that use this selector agree, whatever
--- the order in which they learn of queues. Clients in other languages do not know it.
---
--- More points spread keys more evenly: with 128 a queue gets within about a quarter of its share. A ring
--- takes 16 bytes a point; it is made once for each version of a route. Over `MOST` points in all,
--- every queue has fewer.
---
--- The argument is a string or a number, which is the same as its text.
local checked = require "rocketmq.selector.checked"
local per_list = require "rocketmq.selector.per_list"
local spread = require("rocketmq.native.selector").spread

local MOST = 131072

---@param queues rocketmq.Queue[]
---@param points integer
---@return {places: number[], numbers: integer[]} ring sorted by place
local function make_ring(queues, points)
  -- Places and numbers in one list of doubles: sorting it sorts both. 2^32 places, 2^20 numbers.
  local joined, numbers = {}, {}
  points = math.max(1, math.min(points, math.floor(MOST / #queues)))
  for i, queue in ipairs(queues) do
    local name = ("%s#%d:"):format(queue.broker, queue.id)
    for point = 1, points do
      joined[#joined + 1] = spread(name .. point) * 2 ^ 20 + i
    end
  end
  table.sort(joined)
  for i, both in ipairs(joined) do
    local place = math.floor(both / 2 ^ 20)
    joined[i], numbers[i] = place, both - place * 2 ^ 20
  end
  return { places = joined, numbers = numbers }
end

--- The first place that is not before the hash, round the ring.
local function find(places, hash)
  local low, high = 1, #places + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if places[middle] < hash then low = middle + 1 else high = middle end
  end
  return low <= #places and low or 1
end

---@param options? {points?: integer} places of each queue on the ring; default 128
---@return rocketmq.Selector
return function(options)
  options = checked.options("consistent_hash", options, { points = "number" })
  local points = checked.whole("consistent_hash", "points", options.points, 128, 1)
  local place = checked.place()
  local ring_of = per_list(function(queues) return make_ring(queues, points) end)
  return function(queues, _, arg)
    if type(arg) ~= "string" and type(arg) ~= "number" then
      error(("%s: consistent_hash: its argument must be a string or a number, not %s"):format(place,
        type(arg)), 0)
    end
    local ring = ring_of(queues)
    return ring.numbers[find(ring.places, spread(tostring(arg)))]
  end
end
