--- Carries a trace on with the message, as W3C Trace Context says: `before` puts `traceparent` (and
--- `tracestate`, where there is one) into its properties, where the consumer's instrumentation finds them.
---
---     producer:add_hook(rocketmq.hook.opentelemetry {
---       context = function(ctx) return current_traceparent() end,  -- "00-<32>-<16>-01", or nil
---       export = function(span) queue_for_my_collector(span) end,
---     })
---
--- A message that has a `traceparent` already, or for which `context` gives one, goes on with that trace;
--- others begin one. Each attempt is a span of its own.

local options = require "rocketmq.hook.options"

---@class rocketmq.OpenTelemetryOptions
---@field context? fun(ctx: rocketmq.HookContext): string?, string? the traceparent, and the tracestate,
--- of what is going on; nil: begin a trace
---@field sampled? number the share of the traces begun here that are sampled, 0 to 1; default 1
---@field export? fun(span: rocketmq.Span) gets the span of each attempt that is sampled, when it has
--- ended; it must not wait

--- What OpenTelemetry's conventions for messaging say of a span that sends.
---@class rocketmq.Span
---@field trace_id string 32 hexadecimal digits
---@field span_id string 16
---@field parent_span_id? string
---@field tracestate? string
---@field name string "send Orders"
---@field kind "producer"
---@field start_time number milliseconds since 1970
---@field end_time number
---@field error? string what went wrong
---@field attributes table<string, string|number>

local NO_TRACE, NO_SPAN = ("0"):rep(32), ("0"):rep(16)

-- Random bytes come from the system, some at a time.
local function new_random()
  local uv = require "luv"
  local bytes, at = "", 1
  return function(n)
    if at + n > #bytes + 1 then bytes, at = assert(uv.random(4096)), 1 end
    local part = bytes:sub(at, at + n - 1)
    at = at + n
    return (part:gsub(".", function(byte) return ("%02x"):format(byte:byte()) end))
  end
end

-- All zeros would mean that there is none.
local function new_id(random, bytes, none)
  local id = random(bytes)
  return id ~= none and id or new_id(random, bytes, none)
end

--- Reads a traceparent; nil when it is none. Later versions may have more behind what is known.
---@param text any
---@return string? trace_id
---@return string? span_id
---@return string? flags
local function parse(text)
  if type(text) ~= "string" then return nil end
  local version, trace, span, flags, rest = text:match(
    "^([0-9a-f][0-9a-f])%-([0-9a-f]+)%-([0-9a-f]+)%-([0-9a-f][0-9a-f])(.*)$")
  if not version or version == "ff" or #trace ~= 32 or #span ~= 16 then return nil end
  if trace == NO_TRACE or span == NO_SPAN then return nil end
  if rest ~= "" and (version == "00" or rest:sub(1, 1) ~= "-") then return nil end
  return trace, span, flags
end

local function is_sampled(flags) return tonumber(flags, 16) % 2 == 1 end

local function now()
  local seconds, microseconds = require("luv").gettimeofday()
  return seconds * 1000 + microseconds / 1000
end

local function attributes_of(ctx)
  local queue, message = ctx.queue, ctx.message
  local attributes = {
    ["messaging.system"] = "rocketmq",
    ["messaging.operation.type"] = "send",
    ["messaging.destination.name"] = ctx.topic,
    ["messaging.message.id"] = ctx.msg_id,
    ["messaging.message.body.size"] = #message.body,
    ["messaging.rocketmq.client_group"] = ctx.group,
    ["messaging.rocketmq.message.type"] = ctx.message_type,
    ["messaging.rocketmq.message.tag"] = message.tags,
    ["messaging.rocketmq.broker"] = ctx.broker,
    ["messaging.rocketmq.attempt"] = ctx.attempt,
    ["server.address"] = ctx.addr,
    ["messaging.destination.partition.id"] = queue and tostring(queue.id),
  }
  if message.keys[1] then
    attributes["messaging.rocketmq.message.keys"] = table.concat(message.keys, " ")
  end
  if ctx.err then attributes["error.type"] = ctx.err.kind end
  return attributes
end

---@param given? rocketmq.OpenTelemetryOptions
---@return rocketmq.Hook
return function(given)
  local option = options.read("opentelemetry", given, {
    context = { "function", function() end },
    sampled = { "number", 1, zero = true },
    export = { "function" },
  })
  if option.sampled > 1 then
    error(("rocketmq.hook.opentelemetry: sampled must be at most 1, not %s"):format(
      option.sampled), 2)
  end
  local random = new_random()
  -- The traces that were begun for messages under way: further attempts belong to the same one.
  local begun = {}

  local function begin(ctx)
    local trace = begun[ctx.msg_id]
    if not trace then
      local sampled = tonumber(random(4), 16) / 2 ^ 32 < option.sampled
      trace = { trace_id = new_id(random, 16, NO_TRACE), flags = sampled and "01" or "00" }
      begun[ctx.msg_id] = trace
    end
    return trace.trace_id, nil, trace.flags
  end

  local function parent_of(ctx)
    local properties = ctx.message.properties
    local trace_id, parent, flags = parse(properties.traceparent)
    if trace_id then return trace_id, parent, flags, properties.tracestate end
    local traceparent, tracestate = option.context(ctx)
    trace_id, parent, flags = parse(traceparent)
    if trace_id then return trace_id, parent, flags, tracestate end
    return begin(ctx)
  end

  local hook = { name = "opentelemetry" }

  function hook.before(ctx)
    local trace_id, parent, flags, tracestate = parent_of(ctx)
    local span_id = new_id(random, 8, NO_SPAN)
    local properties = ctx.message.properties
    properties.traceparent = ("00-%s-%s-%s"):format(trace_id, span_id, flags)
    properties.tracestate = tracestate
    if option.export and is_sampled(flags) then
      ctx[hook] = { trace_id = trace_id, span_id = span_id, parent_span_id = parent,
        tracestate = tracestate, start_time = now() }
    end
  end

  function hook.after(ctx)
    if not ctx.will_retry then begun[ctx.msg_id] = nil end
    local span = ctx[hook]
    if not span then return end
    span.name, span.kind = "send " .. ctx.topic, "producer"
    span.end_time = now()
    span.error = ctx.err and ctx.err.message
    span.attributes = attributes_of(ctx)
    option.export(span)
  end

  return hook
end
