--- Queues of the rooms that are near, in turn; for brokers that are named `room@broker`. What Java's
--- SelectMessageQueueByMachineRoom is named after (that one never chooses anything).
---
---     local near = rocketmq.selector.machine_room { rooms = { "hz" } }
---     producer:send({ topic = "Orders", body = "..." }, { selector = near })
---     near:set_rooms { "hz", "sh" }     -- from now on; get_rooms() tells them
---
--- `otherwise` says what to do when no queue is in these rooms:
---
---   "error"   the send fails, and the error names the rooms and the brokers (the default)
---   "all"     all queues in turn
---   "none"    choose nothing, for fallback(near, another)
local checked = require "rocketmq.selector.checked"
local draw = require("rocketmq.native.selector").draw
local per_list = require "rocketmq.selector.per_list"

---@class rocketmq.MachineRoom a selector: it can be called
---@operator call(rocketmq.Queue[]): integer?
---@field private rooms table<string, boolean>
---@field private in_rooms fun(queues: rocketmq.Queue[]): {at: integer, [integer]: integer}
---@field private otherwise "error"|"all"|"none"
---@field private place string where it was made
local MachineRoom = {}
MachineRoom.__index = MachineRoom

local otherwise = { error = true, all = true, none = true }

--- The room in a broker's name, or nil when it has none.
local function room_of(broker) return broker:match "^([^@]*)@" end

--- Replaces the rooms.
---@param rooms string[]
function MachineRoom:set_rooms(rooms)
  if type(rooms) ~= "table" then
    error("rocketmq.selector.machine_room: rooms must be a list of names, not " .. type(rooms), 2)
  end
  local set = {}
  for i, room in ipairs(rooms) do
    if type(room) ~= "string" or room == "" then
      error(("rocketmq.selector.machine_room: rooms[%d] must be a room's name, not %s"):format(i,
        room == "" and "empty" or type(room)), 2)
    end
    set[room] = true
  end
  for key in pairs(rooms) do
    if type(key) ~= "number" then
      error(("rocketmq.selector.machine_room: rooms must be a list; it has a key '%s'"):format(
        tostring(key)), 2)
    end
  end
  self.rooms = set
  self.in_rooms = per_list(function(queues)
    local numbers = {}
    for i, queue in ipairs(queues) do
      if set[room_of(queue.broker) or false] then numbers[#numbers + 1] = i end
    end
    numbers.at = #numbers > 0 and draw(#numbers) or 0
    return numbers
  end)
end

--- The rooms, sorted.
---@return string[]
function MachineRoom:get_rooms()
  local rooms = {}
  for room in pairs(self.rooms) do rooms[#rooms + 1] = room end
  table.sort(rooms)
  return rooms
end

require("rocketmq.naming").guard_methods("machine_room", MachineRoom, { "set_rooms", "get_rooms" })

local function list(names) return #names > 0 and table.concat(names, ", ") or "none" end

local function refuse(self, queues)
  local brokers, seen = {}, {}
  for _, queue in ipairs(queues) do
    if not seen[queue.broker] then
      seen[queue.broker] = true
      brokers[#brokers + 1] = queue.broker
    end
  end
  error(("%s: machine_room: no queue is in the rooms (%s); the brokers, named room@broker, are %s")
    :format(self.place, list(self:get_rooms()), list(brokers)), 0)
end

---@param queues rocketmq.Queue[]
---@return integer? number
function MachineRoom:__call(queues)
  local near = self.in_rooms(queues)
  local n = #near
  if n > 0 then
    near.at = near.at % n + 1
    return near[near.at]
  end
  if self.otherwise == "error" then refuse(self, queues) end
  if self.otherwise == "none" then return nil end
  near.at = near.at % #queues + 1
  return near.at
end

---@param options {rooms: string[], otherwise?: "error"|"all"|"none"}
---@return rocketmq.MachineRoom
return function(options)
  options = checked.options("machine_room", options, { rooms = "table", otherwise = "string" })
  if not options.rooms then
    error("rocketmq.selector.machine_room: option rooms is missing; give a list of rooms", 2)
  end
  if options.otherwise and not otherwise[options.otherwise] then
    error(("rocketmq.selector.machine_room: option otherwise is '%s'; it is error, all or none")
      :format(options.otherwise), 2)
  end
  local made = setmetatable({
    otherwise = options.otherwise or "error",
    place = checked.place(),
  }, MachineRoom)
  made:set_rooms(options.rooms)
  return made
end
