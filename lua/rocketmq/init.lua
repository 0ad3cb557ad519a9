--- rocketmq: sends messages to Apache RocketMQ.
---
---@class rocketmq
---@field version string this runtime's version
---@field producer fun(settings: table<string, any>): rocketmq.Producer
---@field spawn fun(fn: (fun(...): any), ...): rocketmq.Task
---@field gather fun(functions: (fun(): any)[]): any[]?, any, table<integer, any>?
---@field sleep fun(ms: number)
---@field on_error fun(fn: (fun(err: any, traceback: string))?)
---@field mock fun(given?: table): rocketmq.Mock a cluster in this process, for trying scripts
---@field hook rocketmq.hook hooks that are ready to use
---@field transaction_producer fun(settings: table): rocketmq.TransactionProducer
---@field selector rocketmq.selector ready-made selectors
---@field message_id fun(id: string, kind?: "unique"|"offset"): rocketmq.MessageId?, string? what an
--- id says: who made it and when, or where the message is stored
---@field reply fun(request: table, body: string): rocketmq.Message?, rocketmq.Error?
---@field load_selector fun(path: string): string?, rocketmq.Error? as --selector: gives its name
---@field load_hook fun(path: string): string?, rocketmq.Error? as --hook: gives its name
---@field reload fun(...: any): true?, rocketmq.Error? what SIGHUP does: loads the plugins again
local rocketmq = {}

local naming = require "rocketmq.naming"
local native = require "rocketmq.native.producer"
local producer = require "rocketmq.producer"
local task = require "rocketmq.task"

rocketmq.version = native.version
rocketmq.spawn = task.spawn
for name, fn in pairs { producer = producer.new, gather = task.gather, sleep = task.sleep,
  on_error = task.on_error } do
  rocketmq[name] = naming.limit_arguments("rocketmq." .. name, fn)
end

-- What a script seldom needs is loaded when it is asked for: start-up stays short. The module that
-- has it, and its name there; without one the module itself is it.
local later = {
  mock = { "rocketmq.mock" },
  hook = { "rocketmq.hook" },
  selector = { "rocketmq.selector" },
  message_id = { "rocketmq.message_id", "read" },
  transaction_producer = { "rocketmq.transaction", "new" },
  reply = { "rocketmq.reply" },
  load_selector = { "rocketmq.plugins", "load_selector" },
  load_hook = { "rocketmq.plugins", "load_hook" },
  reload = { "rocketmq.plugins", "reload" },
}

return setmetatable(rocketmq, {
  __index = function(self, name)
    local place = later[name]
    if not place then return nil end
    local value = require(place[1])
    if place[2] then value = value[place[2]] end
    if type(value) == "function" then
      value = naming.limit_arguments("rocketmq." .. name, value)
    end
    rawset(self, name, value)
    return value
  end,
})
