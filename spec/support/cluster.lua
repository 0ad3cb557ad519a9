--- A mock cluster with producers for a spec, and the end of both.
---
---     local cluster = require "spec.support.cluster"
---     local c = cluster.new { brokers = 2, topics = { Orders = 4 } }
---     c.producer:send { topic = "Orders", body = "x" }
---     c:finish()
local rocketmq = require "rocketmq"
local new_mock = require "rocketmq.mock"

---@class spec.Cluster
---@field mock rocketmq.Mock
---@field producer rocketmq.Producer the first
local Cluster = {}
Cluster.__index = Cluster

local cluster = {}

---@param description table? for `rocketmq.mock`
---@param settings table? of the producer, over a group and the mock's name servers
---@return spec.Cluster
function cluster.new(description, settings)
  local self = setmetatable({ mock = new_mock(description), producers = {} }, Cluster)
  self.producer = self:add_producer(settings)
  return self
end

---Another producer of the same cluster.
---@param settings table?
---@return rocketmq.Producer
function Cluster:add_producer(settings)
  local given = { group = "spec", namesrv = self.mock.namesrv }
  for name, value in pairs(settings or {}) do given[name] = value end
  local producer = rocketmq.producer(given)
  self.producers[#self.producers + 1] = producer
  return producer
end

---Shuts the producers down and closes the mock. Doing it again does nothing.
function Cluster:finish()
  for _, producer in ipairs(self.producers) do producer:shutdown() end
  self.mock:close()
end

return cluster
