--- Writes a line of JSON for each send, when it has ended.
---
---     producer:add_hook(rocketmq.hook.audit { path = "audit.jsonl" })
---
---     {"time":"2026-01-31T12:00:00.000Z","topic":"Orders","msg_id":"7F00...","status":"SEND_OK",...}
---
--- Lines are gathered and written every `flush_ms`, when there are many, and when the process ends; a process
--- that is killed loses those of that time. A file that was moved away (by logrotate, say) is opened
--- anew. When lines cannot be written that is logged at once, and the hook raises, at this send with
--- `flush_ms` = 0, else at the next one, so that `strict` decides whether sends go on.
---
---     local hook, audit = rocketmq.hook.audit { path = "audit.jsonl" }
---     print(audit:errors())        -- how often lines could not be written, and why the last time
---     assert(audit:flush())        -- writes what is gathered; nil and why when it is lost

local options = require "rocketmq.hook.options"

---@class rocketmq.AuditOptions
---@field path string the file; lines are added at its end
---@field attempts? boolean a line for each attempt, not only for the end; default false
---@field flush_ms? number milliseconds; 0: each line at once; default 1000
---@field strict? boolean a send whose line cannot be written fails; default false. Use flush_ms = 0 with it.
---@field more? fun(record: table, ctx: rocketmq.HookContext) adds to what is written

local BUFFER = 64 * 1024
local A_DAY = 86400000

---@class rocketmq.AuditFile
---@field path string
---@field file? file*
---@field inode? integer
---@field gathered integer lines that are in the buffer
---@field failures integer how often lines could not be written
---@field last? string why, the last time
---@field failed? string the same, until the hook has raised it
---@field lost integer lines that were gathered then
---@field told boolean it is in the log; until lines can be written again
---@field guard? userdata see `File:watch_end`
local File = {}
File.__index = File

function File:close()
  if self.file then self.file:close() end
  self.file, self.gathered = nil, 0
end

--- Notes that what is gathered could not be written. The next line goes to the file opened anew.
function File:note(why)
  self.failures, self.last, self.failed = self.failures + 1, why, why
  self.lost = self.gathered
  self:close()
end

--- Logs a failure, where no hook is there that could raise it.
function File:tell()
  if not self.failed or self.told then return end
  self.told = true
  require("rocketmq.native.plugins").log("error", ("hook audit: cannot write to %s: %s; up to %d "
    .. "line%s lost. This is told once until lines can be written again"):format(self.path,
    self.last, self.lost, self.lost == 1 and " is" or "s are"))
end

--- Hands all lines to the kernel.
function File:hand_over()
  local ok, why = self.file:flush()
  if not ok then return self:note(why) end
  self.gathered, self.told = 0, false
end

--- The end of the process, and of a hook that is not used any more, closes the file, and nobody asks
--- whether that has succeeded. This is finalized before the file, which was made before it.
function File:watch_end()
  local handle = self.file
  self.guard = newproxy(true)
  getmetatable(self.guard).__gc = function()
    if self.file ~= handle or self.gathered == 0 then return end
    self:hand_over()
    self:tell()
  end
end

function File:open()
  local file, why = io.open(self.path, "a")
  if not file then
    self:note(why)
    self.failed = nil
    error(("rocketmq.hook.audit: cannot write: %s"):format(why), 0)
  end
  file:setvbuf("full", BUFFER)
  local stat = require("luv").fs_stat(self.path)
  self.file, self.inode = file, stat and stat.ino
  self:watch_end()
end

--- Hands everything to the kernel, and looks whether the file is still the one with that name.
function File:flush()
  if self.file then self:hand_over() end
  if not self.file then return end
  local stat = require("luv").fs_stat(self.path)
  if not stat or stat.ino ~= self.inode then self:close() end
end

function File:write(line)
  if not self.file then self:open() end
  local ok, why = self.file:write(line, "\n")
  self.gathered = self.gathered + 1
  if not ok then self:note(why) end
end

--- Raises when lines could not be written. They are lost.
function File:check()
  local why = self.failed
  if not why then return end
  self.failed = nil
  error(("rocketmq.hook.audit: cannot write to %s: %s"):format(self.path, why), 0)
end

-- Compiled code calls fflush a second time to tell of an error, and that one succeeds.
jit.off(File.hand_over)
jit.off(File.write)

-- Writes every now and then as long as the file is in use: the timer does not keep it.
local function flush_every(ms, file)
  local weak = setmetatable({ file = file }, { __mode = "v" })
  local timer = require("luv").new_timer()
  ms = math.ceil(ms)
  timer:start(ms, ms, function()
    local target = weak.file
    if not target then
      timer:stop()
      timer:close()
    elseif target.gathered > 0 then
      target:flush()
      target:tell()
    end
  end)
  timer:unref()
end

--- What a script can ask of the file.
---@class rocketmq.Audit
---@field private of rocketmq.AuditFile
local Audit = {}
Audit.__index = Audit

--- How often lines could not be written, and why the last time.
---@return integer
---@return string? why
function Audit:errors() return self.of.failures, self.of.last end

--- Writes now what is gathered.
---@return true? ok nil: lines are lost
---@return string? why
function Audit:flush()
  local before = self.of.failures
  self.of:flush()
  if self.of.failures == before then return true end
  return nil, self.of.last
end

require("rocketmq.naming").guard_methods("audit", Audit)

local function timestamp()
  local seconds, microseconds = require("luv").gettimeofday()
  return os.date("!%Y-%m-%dT%H:%M:%S", seconds) .. (".%03dZ"):format(
    math.floor(microseconds / 1000))
end

---@param ctx rocketmq.HookContext
local function record_of(ctx)
  local message, queue, err, result = ctx.message, ctx.queue, ctx.err, ctx.result
  local record = {
    time = timestamp(), group = ctx.group, mode = ctx.mode, topic = ctx.topic,
    msg_id = ctx.msg_id, type = ctx.message_type, tags = message.tags, keys = message.keys[1]
      and message.keys or nil, body_bytes = #message.body, broker = ctx.broker, addr = ctx.addr,
    queue = queue and queue.id, attempt = ctx.attempt, elapsed_ms = ctx.elapsed_ms,
    will_retry = ctx.will_retry or nil,
  }
  if result then
    record.status, record.offset_msg_id = result.status, result.offset_msg_id
    record.queue_offset = tonumber(result.queue_offset)
  elseif err then
    record.error = { kind = err.kind, code = err.code, message = err.message,
      maybe_stored = err.maybe_stored or nil }
  end
  return record
end

---@param given rocketmq.AuditOptions
---@return rocketmq.Hook
---@return rocketmq.Audit
return function(given)
  local option = options.read("audit", given, {
    path = { "string" }, attempts = { "boolean", false }, strict = { "boolean", false },
    flush_ms = { "number", 1000, zero = true, most = A_DAY }, more = { "function", function() end },
  })
  if not option.path or option.path == "" then
    error("rocketmq.hook.audit: path must be given", 2)
  end
  local encode = require("cjson").new().encode
  local file = setmetatable({ path = option.path, gathered = 0, failures = 0, lost = 0,
    told = false }, File)
  local ok, why = pcall(file.open, file) -- a file that cannot be written is told now
  if not ok then error(why, 2) end
  if option.flush_ms > 0 then flush_every(option.flush_ms, file) end
  return {
    name = "audit",
    strict = option.strict,
    after = function(ctx)
      if ctx.will_retry and not option.attempts then return end
      local record = record_of(ctx)
      option.more(record, ctx)
      file:write(encode(record))
      if option.flush_ms == 0 then file:flush() end
      file:check()
    end,
  }, setmetatable({ of = file }, Audit)
end
