--- rocketmq: sends messages to Apache RocketMQ.
---
---@class rocketmq
---@field version string this runtime's version
---@field mock fun(given?: table): rocketmq.Mock a cluster in this process, for trying scripts
---@field hook rocketmq.hook hooks that are ready to use
---@field transaction_producer fun(settings: table): rocketmq.TransactionProducer
---@field selector rocketmq.selector ready-made selectors
---@field message_id fun(id: string, kind?: "unique"|"offset"): rocketmq.MessageId?, string? what an
--- id says: who made it and when, or where the message is stored
---@field reply fun(request: table, body: string): rocketmq.Message?, rocketmq.Error?
---@field load_selector fun(path: string): string?, rocketmq.Error? as --selector: gives its name
---@field load_hook fun(path: string): string?, rocketmq.Error? as --hook: gives its name
---@field reload fun(): true?, rocketmq.Error? what SIGHUP does: loads the plugins again
local rocketmq = {}

local native = require "rocketmq.native.producer"
local producer = require "rocketmq.producer"
local task = require "rocketmq.task"

rocketmq.version = native.version
rocketmq.producer = producer.new
rocketmq.spawn = task.spawn
rocketmq.gather = task.gather
rocketmq.sleep = task.sleep
rocketmq.on_error = task.on_error

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
    rawset(self, name, value)
    return value
  end,
})
