--- The mock's misbehaviour. A rule says which requests it is for and what happens to them instead
--- of the usual answer.
local fields = require "rocketmq.mock.fields"
local wire = require "rocketmq.wire"

local rules = {}

---All that a rule can say. The first five choose requests, the others say what happens to them;
---the first rule that chooses a request, in the order in which they were made, is the one that
---acts.
---@type rocketmq.mock.Field[]
rules.fields = {
  { name = "at", type = "string",
    help = "where: 'namesrv' (all), 'namesrv-1', 'broker' (all), 'broker-a' (with its slaves), "
      .. "'broker-a#1' (one slave); default everywhere" },
  { name = "code", type = "code|string",
    help = "the request's code, as a number or a name: 310 or 'SEND_MESSAGE_V2'; default any" },
  { name = "topic", type = "string", help = "the topic that the request names; default any" },
  { name = "nth", type = "count",
    help = "the first of the chosen requests to act on, counted from 1; default 1" },
  { name = "times", type = "count", help = "on how many it acts from there on; default all" },
  { name = "answer", type = "table",
    help = "{ code =, remark =, ext =, body = } the answer; code as a number or a name" },
  { name = "delay", type = "integer",
    help = "milliseconds until the answer, or what is instead of it" },
  { name = "silent", type = "boolean", help = "there is no answer" },
  { name = "raw", type = "bytes", help = "these bytes instead of an answer" },
  { name = "close", type = "boolean",
    help = "the connection is closed: after `answer` or `raw` when there is one, else instead" },
  { name = "reset", type = "boolean",
    help = "the connection is reset (RST) instead of an answer" },
  { name = "store", type = "boolean",
    help = "whether the request is carried out all the same; default: when `answer.code` says "
      .. "that the message is stored (0, 10, 11, 12), or the rule has nothing but a delay" },
}

local answer_fields = {
  { name = "code", type = "code|string", help = "the answer's code" },
  { name = "remark", type = "string", help = "the answer's remark" },
  { name = "ext", type = "table", help = "more ext fields" },
  { name = "body", type = "bytes", help = "the answer's body instead of the usual one" },
}

-- What these say is about a message that the broker has.
local stored = {
  [wire.response.SUCCESS] = true,
  [wire.response.FLUSH_DISK_TIMEOUT] = true,
  [wire.response.SLAVE_NOT_AVAILABLE] = true,
  [wire.response.FLUSH_SLAVE_TIMEOUT] = true,
}

---The number of a code that is given as a number or a name. Raises for an unknown name.
---@param what string
---@param code integer|string|nil
---@param known table<string, integer>
---@return integer?
function rules.code(what, code, known)
  if type(code) ~= "string" then return code end
  if known[code] then return known[code] end
  local names = {}
  for name in pairs(known) do
    if type(name) == "string" then names[#names + 1] = name end
  end
  table.sort(names)
  error(fields.unknown(what .. " code", code, names), 0)
end

---@class rocketmq.mock.Rule
---@field seen integer how many requests it has chosen
---@field acted integer on how many of them it acted
local Rule = {}
Rule.__index = Rule

---Ends the rule.
function Rule:remove()
  self.removed = true
end

---Whether the rule acts on this request; counts.
---@param labels table<string, true> what the server that got it is called
---@param code integer
---@param topic string?
---@return boolean
function Rule:takes(labels, code, topic)
  if self.removed
    or self.at and not labels[self.at]
    or self.code and self.code ~= code
    or self.topic and self.topic ~= topic then
    return false
  end
  self.seen = self.seen + 1
  if self.seen < self.nth or self.acted >= self.times then return false end
  self.acted = self.acted + 1
  return true
end

local function default_store(given, answer)
  if given.store ~= nil then return given.store end
  if answer then return stored[answer.code] == true end
  return not (given.silent or given.raw or given.close or given.reset)
end

local function read_answer(given)
  if not given then return nil end
  fields.check("rule answer", given, answer_fields)
  local code = rules.code("answer", given.code, wire.response)
  if not code then error("rule answer: needs a code", 0) end
  return { code = code, remark = given.remark, ext = given.ext, body = given.body }
end

local function check_action(given)
  if given.answer and (given.silent or given.raw or given.reset) then
    error("rule: 'answer' excludes 'silent', 'raw' and 'reset'", 0)
  end
  for _, name in ipairs { "answer", "delay", "silent", "raw", "close", "reset" } do
    if given[name] then return end
  end
  error("rule: says nothing to do; give one of answer, delay, silent, raw, close, reset", 0)
end

---Makes a rule of what a user gave. Raises, without a position, when that is wrong.
---@param given table see `rules.fields`
---@param places table<string, true> all that `at` may be
---@return rocketmq.mock.Rule
function rules.new(given, places)
  if type(given) ~= "table" then error("rule: must be a table, not " .. type(given), 0) end
  fields.check("rule", given, rules.fields)
  check_action(given)
  if given.at and not places[given.at] then
    local known = {}
    for place in pairs(places) do known[#known + 1] = place end
    table.sort(known)
    error(fields.unknown("rule at", given.at, known), 0)
  end
  local answer = read_answer(given.answer)
  return setmetatable({
    at = given.at,
    code = rules.code("rule", given.code, wire.request),
    topic = given.topic,
    nth = given.nth or 1,
    times = given.times or math.huge,
    answer = answer,
    delay = given.delay,
    silent = given.silent,
    raw = given.raw,
    close = given.close,
    reset = given.reset,
    store = default_store(given, answer),
    seen = 0,
    acted = 0,
  }, Rule)
end

fields.guard_methods("rule", Rule)

return rules
