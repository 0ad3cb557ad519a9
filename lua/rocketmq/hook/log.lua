--- A line of the log for each send and each attempt that failed.
---
---     producer:add_hook(rocketmq.hook.log { slow = 100 })
---
--- gives, with the time and the level in front of it, on stderr
---
---     sent to Orders@broker-a#1 in 212.4 ms, attempt 1: SEND_OK, msg_id 7F00...
---     not sent to Orders@broker-b#0 in 1500.1 ms, attempt 1, trying again: timeout error 10002: ...

local options = require "rocketmq.hook.options"

---@class rocketmq.LogOptions
---@field slow? number milliseconds: sends that succeed are told when they took longer; default 0
---@field write? fun(line: string, level: "info"|"warn") default: to stderr, as the runtime's log does

local function write_to_stderr(line, level)
  local seconds, microseconds = require("luv").gettimeofday()
  io.stderr:write(("%s.%03d %-5s %s\n"):format(os.date("%Y-%m-%d %H:%M:%S", seconds),
    math.floor(microseconds / 1000), level, line))
end

local function place_of(ctx) return ctx.queue and tostring(ctx.queue) or ctx.topic end

local function tell_success(ctx)
  local result = ctx.result
  return ("sent to %s in %.1f ms, attempt %d: %s, msg_id %s"):format(place_of(ctx),
    ctx.elapsed_ms, ctx.attempt, result and result.status or "oneway", ctx.msg_id)
end

local function tell_failure(ctx)
  return ("not sent to %s in %.1f ms, attempt %d%s: %s"):format(place_of(ctx), ctx.elapsed_ms,
    ctx.attempt, ctx.will_retry and ", trying again" or "", tostring(ctx.err))
end

---@param given? rocketmq.LogOptions
---@return rocketmq.Hook
return function(given)
  local option = options.read("log", given, {
    slow = { "number", 0, zero = true },
    write = { "function", write_to_stderr },
  })
  return {
    name = "log",
    after = function(ctx)
      if ctx.err then
        option.write(tell_failure(ctx), "warn")
      elseif ctx.elapsed_ms >= option.slow then
        option.write(tell_success(ctx), "info")
      end
    end,
  }
end
