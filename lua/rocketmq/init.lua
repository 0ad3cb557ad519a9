--- rocketmq: sends messages to Apache RocketMQ.
---
---@class rocketmq
---@field version string this runtime's version
---@field mock fun(given?: table): rocketmq.Mock a cluster in this process, for trying scripts
---@field hook rocketmq.hook hooks that are ready to use
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

-- What a script seldom needs is loaded when it is asked for: start-up stays short.
return setmetatable(rocketmq, {
  __index = function(self, name)
    local value
    if name == "mock" then
      value = require "rocketmq.mock"
    elseif name == "hook" then
      value = require "rocketmq.hook"
    elseif name == "load_selector" or name == "load_hook" or name == "reload" then
      value = require("rocketmq.plugins")[name]
    end
    rawset(self, name, value)
    return value
  end,
})
