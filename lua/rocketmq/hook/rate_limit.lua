--- Refuses what is sent faster than a rate allows, topic by topic. A hook cannot wait, so this one does not
--- slow a script down: the send that is too much fails with kind "hook", and the error says when the next
--- one fits.
---
---     producer:add_hook(rocketmq.hook.rate_limit { per_second = 1000, topics = { Audit = 10 } })
---
--- A bucket for each topic holds up to `burst` messages and is filled at the rate; the first attempt of
--- a message takes one out, further attempts take none.

local options = require "rocketmq.hook.options"

---@class rocketmq.RateLimitOptions
---@field per_second? number messages for each topic that `topics` does not name; none: no limit
---@field topics? table<string, number> messages a second for these topics
---@field burst? number how many may come at once; default: those of one second, at least one
---@field now? fun(): number the time in milliseconds; default: the loop's clock

local function milliseconds() return require("luv").hrtime() / 1e6 end

local function check_topics(topics)
  for topic, rate in pairs(topics) do
    local good = type(topic) == "string" and type(rate) == "number" and rate > 0 -- not a NaN
    if not good then
      error("rocketmq.hook.rate_limit: topics must give a number over 0 for each topic's name", 3)
    end
  end
end

-- Takes one message out, or says in how many milliseconds there will be one.
local function take(bucket, now)
  local level = bucket.level + (now - bucket.at) * bucket.rate / 1000
  bucket.level, bucket.at = math.min(level, bucket.burst), now
  if bucket.level < 1 then return (1 - bucket.level) * 1000 / bucket.rate end
  bucket.level = bucket.level - 1
end

---@param given rocketmq.RateLimitOptions
---@return rocketmq.Hook
return function(given)
  local option = options.read("rate_limit", given, {
    per_second = { "number" }, topics = { "table", {} }, burst = { "number" },
    now = { "function", milliseconds },
  })
  check_topics(option.topics)
  if not option.per_second and not next(option.topics) then
    error("rocketmq.hook.rate_limit: give per_second, topics, or both", 2)
  end
  local buckets = {}

  local function bucket_of(topic, now)
    local rate = option.topics[topic] or option.per_second
    if not rate then return nil end
    local burst = math.max(1, option.burst or rate)
    local bucket = { rate = rate, burst = burst, level = burst, at = now }
    buckets[topic] = bucket
    return bucket
  end

  return {
    name = "rate_limit",
    check_forbidden = function(ctx)
      if ctx.attempt > 1 then return nil end
      local now = option.now()
      local bucket = buckets[ctx.topic] or bucket_of(ctx.topic, now)
      local ms = bucket and take(bucket, now)
      if not ms then return nil end
      return ("topic \"%s\" may have %g messages a second; the next one fits in %d ms"):format(
        ctx.topic, bucket.rate, math.ceil(ms))
    end,
  }
end
