--- Assertions about what a mock was sent, for specs of your own scripts.
---
---     local assert = require "rocketmq.mock.assert"
---     assert.sent(mock, { topic = "Orders", tags = "paid" })           at least one such message
---     assert.sent(mock, { body = "a" }, 2)                             exactly two
---     assert.not_sent(mock, { topic = "Orders", tags = "refused" })
---     assert.sent_in_order(mock, { { body = "a" }, { body = "b" } })   and others between them
---     assert.requests(mock, { at = "broker-a", code = "HEART_BEAT" })
---     assert.attempts(mock, { body = "a" }, 3)                         sends, stored or not
---
---Where luassert is there (in busted's specs) they are registered with it: the global `assert` has
---them too, and `assert.is_not.sent(...)` and the like work. All give the list of what was found.
local naming = require "rocketmq.naming"
local matching = require "rocketmq.mock.matching"
local rules = require "rocketmq.mock.rules"
local wire = require "rocketmq.wire"

local M = {}

---@type rocketmq.mock.Comparison[]
local message_rows = {
  { name = "topic", compare = "equal" }, { name = "broker", compare = "equal" },
  { name = "queue_id", compare = "equal" }, { name = "body", compare = "equal" },
  { name = "tags", compare = "equal" }, { name = "keys", compare = "list" },
  { name = "properties", compare = "subset" }, { name = "flag", compare = "equal" },
  { name = "msg_id", compare = "equal" }, { name = "group", compare = "equal" },
  { name = "compressed", compare = "equal" }, { name = "delivered", compare = "equal" },
  { name = "recalled", compare = "equal" }, { name = "deliver_at", compare = "equal" },
  { name = "sys_flag", compare = "equal" }, { name = "batch", compare = "equal" },
  { name = "oneway", compare = "equal" }, { name = "connection", compare = "equal" },
  { name = "reconsume_times", compare = "equal" },
}

---@type rocketmq.mock.Comparison[]
local request_rows = {
  { name = "code", compare = "equal" }, { name = "at", compare = "equal" },
  { name = "broker", compare = "equal" }, { name = "topic", compare = "equal" },
  { name = "ext", compare = "subset" }, { name = "body", compare = "equal" },
  { name = "oneway", compare = "equal" }, { name = "connection", compare = "equal" },
  { name = "language", compare = "equal" }, { name = "version", compare = "equal" },
  { name = "serialize", compare = "equal" },
}

local function describe_message(message)
  local text = ("%s@%s#%d body %s"):format(message.topic, message.broker, message.queue_id,
    matching.show(message.body))
  if message.tags then text = text .. ", tags " .. matching.show(message.tags) end
  if #message.keys > 0 then text = text .. ", keys " .. matching.show(message.keys) end
  return text
end

local function describe_request(request)
  local text = ("%s (%d) at %s"):format(request.name or "request", request.code, request.at)
  return request.topic and text .. ", topic " .. request.topic or text
end

-- What an assertion is about: where candidates come from, which of what the mock keeps that is, what a
-- description may have, and how they are called.
local kinds = {
  sent = { noun = "message", plural = "messages", kept = "messages", rows = message_rows,
    describe = describe_message, candidates = function(mock) return mock:messages() end },
  attempts = { noun = "attempt", plural = "attempts", kept = "requests", rows = message_rows,
    describe = describe_message, candidates = function(mock) return mock:attempts() end },
  requests = { noun = "request", plural = "requests", kept = "requests", rows = request_rows,
    describe = describe_request, candidates = function(mock, wanted)
      return mock:requests { at = wanted.at }
    end },
}

-- A copy of what is wanted, with a code's name as its number; `at` has chosen the candidates.
local function prepared(name, wanted)
  matching.check(name, wanted, kinds[name].rows)
  local copy = {}
  for key, value in pairs(wanted) do copy[key] = value end
  copy.code = rules.code(name, copy.code, wire.request)
  copy.at = nil
  return copy
end

local function check_arguments(name, mock, count)
  if type(mock) ~= "table" or type(mock.messages) ~= "function" then
    error(("%s: the first argument must be a mock, not %s"):format(name, type(mock)), 0)
  end
  if count ~= nil and not (type(count) == "number" and count >= 0 and count % 1 == 0) then
    error(("%s: the count must be a whole number from 0, not %s"):format(name, tostring(count)), 0)
  end
end

local function times(count, kind)
  return ("%d %s"):format(count, count == 1 and kind.noun or kind.plural)
end

-- What has come at all, when there is no candidate.
local function nothing_there(mock, kind)
  local counts, names = {}, {}
  for _, request in ipairs(mock:requests()) do
    local name = ("%s at %s"):format(request.name or request.code, request.at)
    if not counts[name] then names[#names + 1] = name end
    counts[name] = (counts[name] or 0) + 1
  end
  for index, name in ipairs(names) do names[index] = ("  %d %s"):format(counts[name], name) end
  if #names == 0 then return ("There are no %s, and no request has come."):format(kind.plural) end
  return ("There are no %s; the requests that have come are:\n%s"):format(kind.plural,
    table.concat(names, "\n"))
end

-- Raises when what is not found may be among what the mock has forgotten: nobody can tell then. What is
-- found and too much is too much all the same.
local function check_memory(name, mock, kept)
  local journal = mock.world.journal
  local forgotten = journal:forgotten(kept)
  if forgotten == 0 then return end
  error(("%s: this cannot be told: %d %s are no longer kept; give the mock a greater 'keep' or "
    .. "'keep_bytes' (they are %d and %d), or clear it in between"):format(name, forgotten, kept,
    journal.keep, journal.keep_bytes), 0)
end

-- Whether it holds; what was found; and the text for when it does not, or should not, hold.
local function examine(name, mock, wanted, count)
  check_arguments(name, mock, count)
  wanted = wanted or {}
  local kind = kinds[name]
  local ok, candidates = pcall(kind.candidates, mock, wanted)
  if not ok then error((candidates:gsub("^rocketmq/mock/assert%.lua:%d+: ", "")), 0) end
  local found, others = matching.pick(prepared(name, wanted), kind.rows, candidates)
  local holds = count == nil and #found > 0 or #found == count
  if #found <= (count or 0) then check_memory(name, mock, kind.kept) end
  return holds, found, function(is_wanted)
    local text = ("%s: expected %s %s like %s, found %d."):format(name,
      is_wanted and (count and "exactly" or "at least") or (count and "not exactly" or "not"),
      count and times(count, kind) or (is_wanted and "one " or "any ") .. kind.noun,
      matching.show(wanted), #found)
    if #candidates == 0 then return text .. "\n" .. nothing_there(mock, kind) end
    return text .. "\n" .. matching.explain(kind.plural, found, others, kind.describe)
  end
end

-- The same for messages in an order: the first of them that is missing after those before it.
local function examine_order(name, mock, list)
  check_arguments(name, mock)
  if type(list) ~= "table" then
    error(("%s: needs a list of descriptions, not %s"):format(name, type(list)), 0)
  end
  local messages, found, at = mock:messages(), {}, 1
  for number, wanted in ipairs(list) do
    wanted = prepared("sent", wanted)
    while messages[at] and #matching.pick(wanted, message_rows, { messages[at] }) == 0 do
      at = at + 1
    end
    if not messages[at] then
      check_memory(name, mock, "messages")
      return false, found, function()
        local _, others = matching.pick({}, message_rows, messages)
        return ("%s: no message like %s (number %d) after those before it, which were found.\n%s")
          :format(name, matching.show(list[number]), number, #messages == 0
            and nothing_there(mock, kinds.sent)
            or matching.explain("messages", found, others, describe_message))
      end
    end
    found[number], at = messages[at], at + 1
  end
  return true, found, function()
    return ("%s: the messages have come in this order, and should not."):format(name)
  end
end

local function examiner(name)
  if name == "sent_in_order" then
    return function(...) return examine_order(name, ...) end
  end
  return function(...) return examine(name, ...) end
end

-- An assertion as a function: raises at its caller's line, or gives what was found.
local function as_function(name, is_wanted)
  local of = examiner(name)
  return function(...)
    local ok, holds, found, text = pcall(of, ...)
    if not ok then error(holds, 2) end
    if holds ~= is_wanted then error(text(is_wanted), 2) end
    return found
  end
end

local function register(luassert, name)
  local of = examiner(name)
  luassert:register("assertion", name, function(state, arguments, level)
    local ok, holds, found, text = pcall(of, unpack(arguments, 1, arguments.n))
    if not ok then error(holds, level + 1) end
    state.failure_message = text(state.mod)
    -- The text says all; a mock printed whole would be endless.
    arguments.nofmt = {}
    for index = 1, arguments.n do arguments.nofmt[index] = true end
    return holds, { found }
  end)
end

local NAMES = { "sent", "sent_in_order", "requests", "attempts" }
local has_luassert, luassert = pcall(require, "luassert")

for _, name in ipairs(NAMES) do
  M[name] = as_function(name, true)
  M["not_" .. name] = as_function(name, false)
  if has_luassert then register(luassert, name) end
end

---At least one message, or exactly `count`, with these fields was stored.
---@alias rocketmq.mock.AssertSent fun(mock: rocketmq.Mock, wanted: table?, count: integer?): table[]

---@class rocketmq.mock.assert
---@field sent rocketmq.mock.AssertSent messages that were stored
---@field not_sent rocketmq.mock.AssertSent
---@field sent_in_order fun(mock: rocketmq.Mock, wanted: table[]): table[]
---@field not_sent_in_order fun(mock: rocketmq.Mock, wanted: table[]): table[]
---@field requests rocketmq.mock.AssertSent
---@field not_requests rocketmq.mock.AssertSent
---@field attempts rocketmq.mock.AssertSent sends that reached a broker, whether it stored them or not
---@field not_attempts rocketmq.mock.AssertSent

-- As the name `assert` it stands for the one that it hides.
return setmetatable(M, {
  __call = function(_, ...) return (has_luassert and luassert or assert)(...) end,
  __index = has_luassert and luassert or function(_, name)
    local names = {}
    for known in pairs(M) do names[#names + 1] = known end
    table.sort(names)
    error(naming.unknown("rocketmq.mock.assert", name, names), 2)
  end,
})
