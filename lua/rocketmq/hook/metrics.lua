--- Counts sends and attempts, and how long attempts take, by topic and broker.
---
---     local hook, metrics = rocketmq.hook.metrics()
---     producer:add_hook(hook)
---     ...
---     for _, row in ipairs(metrics:rows()) do print(row.topic, row.broker, row.latency.p99) end
---     io.write(metrics:prometheus())
---
--- One hook may be added to several producers, and counts them together.

local histogram = require "rocketmq.hook.histogram"
local options = require "rocketmq.hook.options"

---@class rocketmq.MetricsOptions
---@field max_series? number how many pairs of topic and broker are kept apart; default 1000. What comes
--- beyond is counted under "(other)".

--- What is known of one topic on one broker. Sends that ended without an attempt have broker "".
---@class rocketmq.MetricsRow
---@field topic string
---@field broker string
---@field sends integer that have ended here
---@field failed integer of them
---@field attempts integer
---@field errors table<rocketmq.ErrorKind, integer> attempts and sends that failed, by kind
---@field latency rocketmq.MetricsLatency of attempts

---@class rocketmq.MetricsLatency milliseconds; nothing but count and sum when there was no attempt
---@field count integer
---@field sum number
---@field min? number
---@field max? number
---@field p50? number
---@field p90? number
---@field p99? number
---@field p999? number

---@class rocketmq.Metrics
---@field private series table<string, table<string, table>> by topic and broker
---@field private n integer
---@field private most number
local Metrics = {}
Metrics.__index = Metrics

local QUANTILES = { { "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 }, { "p999", 0.999 } }
local OTHER = "(other)"

function Metrics:find(topic, broker)
  local of_topic = self.series[topic]
  local one = of_topic and of_topic[broker]
  if one then return one end
  if self.n >= self.most and topic ~= OTHER then return self:find(OTHER, OTHER) end
  if not of_topic then
    of_topic = {}
    self.series[topic] = of_topic
  end
  one = { topic = topic, broker = broker, sends = 0, failed = 0, attempts = 0, errors = {},
    latency = histogram.new() }
  of_topic[broker] = one
  self.n = self.n + 1
  return one
end

---@param ctx rocketmq.HookContext
function Metrics:count(ctx)
  local one = self:find(ctx.topic, ctx.broker or "")
  local err = ctx.err
  if ctx.attempt > 0 then
    one.attempts = one.attempts + 1
    one.latency:add(ctx.elapsed_ms)
  end
  if err then one.errors[err.kind] = (one.errors[err.kind] or 0) + 1 end
  if ctx.will_retry then return end
  one.sends = one.sends + 1
  if err then one.failed = one.failed + 1 end
end

local function latency_of(all)
  local latency = { count = all.count, sum = all.sum, min = all.least, max = all.most }
  for _, quantile in ipairs(QUANTILES) do latency[quantile[1]] = all:percentile(quantile[2]) end
  return latency
end

local function copy(errors)
  local to = {}
  for kind, n in pairs(errors) do to[kind] = n end
  return to
end

--- All that was counted, sorted by topic and broker. A copy.
---@return rocketmq.MetricsRow[]
function Metrics:rows()
  local rows = {}
  for _, of_topic in pairs(self.series) do
    for _, one in pairs(of_topic) do
      rows[#rows + 1] = { topic = one.topic, broker = one.broker, sends = one.sends,
        failed = one.failed, attempts = one.attempts, errors = copy(one.errors),
        latency = latency_of(one.latency) }
    end
  end
  table.sort(rows, function(a, b)
    if a.topic ~= b.topic then return a.topic < b.topic end
    return a.broker < b.broker
  end)
  return rows
end

--- Forgets everything.
function Metrics:reset() self.series, self.n = {}, 0 end

-- --- Prometheus ----------------------------------------------------------------------------------

local ESCAPES = { ["\\"] = "\\\\", ["\""] = "\\\"", ["\n"] = "\\n" }
local function quote(text) return "\"" .. text:gsub("[\\\"\n]", ESCAPES) .. "\"" end

local function labels(row, more)
  return ("{topic=%s,broker=%s%s}"):format(quote(row.topic), quote(row.broker), more or "")
end

local function head(out, name, kind, help)
  out[#out + 1] = ("# HELP %s %s\n# TYPE %s %s\n"):format(name, help, name, kind)
end

local function counter(out, rows, name, field, help)
  head(out, name, "counter", help)
  for _, row in ipairs(rows) do
    out[#out + 1] = ("%s%s %d\n"):format(name, labels(row), row[field])
  end
end

local function errors(out, rows)
  local name = "rmqlua_errors_total"
  head(out, name, "counter", "Attempts, and sends without one, that failed, by kind.")
  for _, row in ipairs(rows) do
    local kinds = {}
    for kind in pairs(row.errors) do kinds[#kinds + 1] = kind end
    table.sort(kinds)
    for _, kind in ipairs(kinds) do
      out[#out + 1] = ("%s%s %d\n"):format(name, labels(row, ",kind=" .. quote(kind)),
        row.errors[kind])
    end
  end
end

local function summary(out, rows)
  local name = "rmqlua_attempt_seconds"
  head(out, name, "summary", "How long attempts take.")
  for _, row in ipairs(rows) do
    local latency = row.latency
    for _, quantile in ipairs(latency.count > 0 and QUANTILES or {}) do
      out[#out + 1] = ("%s%s %.6f\n"):format(name,
        labels(row, (",quantile=\"%g\""):format(quantile[2])), latency[quantile[1]] / 1000)
    end
    out[#out + 1] = ("%s_sum%s %.6f\n%s_count%s %d\n"):format(name, labels(row),
      latency.sum / 1000, name, labels(row), latency.count)
  end
end

--- The same in Prometheus' text format.
---@return string
function Metrics:prometheus()
  local rows, out = self:rows(), {}
  counter(out, rows, "rmqlua_sends_total", "sends", "Sends that have ended.")
  counter(out, rows, "rmqlua_sends_failed_total", "failed", "Sends that have failed.")
  counter(out, rows, "rmqlua_attempts_total", "attempts", "Attempts to send.")
  errors(out, rows)
  summary(out, rows)
  return table.concat(out)
end

require("rocketmq.naming").guard_methods("metrics", Metrics,
  { "prometheus", "reset", "rows" })

---@param given? rocketmq.MetricsOptions
---@return rocketmq.Hook
---@return rocketmq.Metrics
return function(given)
  local option = options.read("metrics", given, { max_series = { "number", 1000 } })
  local metrics = setmetatable({ series = {}, n = 0, most = option.max_series }, Metrics)
  return { name = "metrics", after = function(ctx) metrics:count(ctx) end }, metrics
end
