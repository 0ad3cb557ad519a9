--- rocketmq: sends messages to Apache RocketMQ.
---
---@class rocketmq
---@field version string this runtime's version
---@field mock fun(given?: table): rocketmq.Mock a cluster in this process, for trying scripts
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
    if name ~= "mock" then return nil end
    local mock = require "rocketmq.mock"
    rawset(self, name, mock)
    return mock
  end,
})
