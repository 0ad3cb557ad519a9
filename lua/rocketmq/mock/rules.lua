--- The mock's misbehaviour. A rule says which requests it is for and what happens to them instead
--- of the usual answer. What it does is carried out by `rocketmq.mock.faults`.
local answers = require "rocketmq.mock.answer"
local fields = require "rocketmq.mock.fields"
local naming = require "rocketmq.naming"
local wire = require "rocketmq.wire"

local rules = {}

rules.languages = { "http", "http2", "http2-preface", "tls", "tls-handshake" }

---All that a rule can say. The first of these choose, the others say what happens. Of the rules
---that choose a request, in the order in which they were made, the first acts.
---@type rocketmq.mock.Field[]
rules.fields = {
  { name = "at", type = "string",
    help = "where: 'namesrv' (all), 'namesrv-1', 'broker' (all), 'broker-a' (with its slaves), "
      .. "'broker-a#1' (one slave); default everywhere" },
  { name = "on", type = "string", choices = { "request", "connect" },
    help = "'connect': it is for connections as they are accepted, and sends without having been "
      .. "asked; default 'request'" },
  { name = "code", type = "code|string",
    help = "the request's code, as a number or a name: 310 or 'SEND_MESSAGE_V2'; default any" },
  { name = "topic", type = "string", help = "the topic that the request names; default any" },
  { name = "nth", type = "count",
    help = "the first of the chosen requests to act on, counted from 1; default 1" },
  { name = "times", type = "count", help = "on how many it acts from there on; default all" },
  { name = "probability", type = "fraction",
    help = "on which part of them it acts, by chance (of the mock's seed); default 1" },

  { name = "answer", type = "table",
    help = "{ code =, remark =, ext =, body = } the answer; code as a number or a name" },
  { name = "go_away", type = "boolean",
    help = "the answer is GO_AWAY: the client is to use another connection" },
  { name = "silent", type = "boolean", help = "there is no answer" },
  { name = "raw", type = "bytes|function",
    help = "these bytes instead of an answer, or a function that gets the request (`code`, "
      .. "`opaque`, `ext` ...) and gives them" },
  { name = "garbage", type = "count", help = "so many random bytes instead of an answer" },
  { name = "speak", type = "string", choices = rules.languages,
    help = "what a server of another protocol says, instead of an answer; it then closes" },

  { name = "delay", type = "integer",
    help = "milliseconds until the answer, or what is instead of it" },
  { name = "wrong_opaque", type = "boolean", help = "the answer names no request that there is" },
  { name = "length", type = "integer|string",
    help = "the answer's length field says so many bytes, or 'huge': as many as it can say" },
  { name = "duplicate", type = "boolean|count",
    help = "the answer comes once more, or so many times more, as far as 64 MiB go" },
  { name = "cut", type = "integer", help = "only the first so many bytes are sent" },
  { name = "split", type = "count",
    help = "what is sent comes in so many parts, each in a write and a segment of its own" },
  { name = "pause", type = "integer", help = "milliseconds between these parts; default 1" },

  { name = "close", type = "boolean",
    help = "the connection is closed: after what is sent when something above says what that is, "
      .. "else instead of an answer" },
  { name = "reset", type = "boolean", help = "the same, with an RST" },
  { name = "half_close", type = "boolean",
    help = "the same, but only in the direction to the client: requests are still read" },
  { name = "after_read", type = "integer",
    help = "it acts when so many bytes of a request have come (with `code` or `topic`: and its "
      .. "header), which is not carried out then; needs close or reset. Such rules are looked at "
      .. "before all others" },
  { name = "deaf", type = "count",
    help = "milliseconds during which nothing more is read from the connection" },
  { name = "store", type = "boolean",
    help = "whether the request is carried out; default: when `answer.code` says that the message "
      .. "is stored (0, 10, 11, 12), or when the usual answer is sent, changed or not" },
}

local answer_fields = {
  { name = "code", type = "code|string", help = "the answer's code" },
  { name = "remark", type = "string", help = "the answer's remark" },
  { name = "ext", type = "table", help = "more ext fields" },
  { name = "body", type = "bytes", help = "the answer's body instead of the usual one" },
}

rules.MOST_BYTES = 67108864 -- that one rule sends at once

local MOST_DUPLICATES = 10000

-- What is said instead of the usual answer: one of these.
local INSTEAD = { "answer", "go_away", "silent", "raw", "garbage", "speak" }
-- What becomes of the answer.
local CHANGES = { "wrong_opaque", "length", "duplicate", "cut", "split" }
-- How the connection ends: one of these.
local ENDS = { "close", "reset", "half_close" }

---The number of a code that is given as a number or a name. Raises for an unknown name.
---@param what string
---@param code integer|string|nil
---@param known table<string, integer>
---@return integer?
function rules.code(what, code, known)
  if type(code) ~= "string" then return code end
  if known[code] then return known[code] end
  if tonumber(code) then
    error(("%s code: a number is written without quotes, %s"):format(what, code), 0)
  end
  local names = {}
  for name in pairs(known) do
    if type(name) == "string" then names[#names + 1] = name end
  end
  table.sort(names)
  error(naming.unknown(what .. " code", code, names), 0)
end

---@class rocketmq.mock.Rule
---@field seen integer how many requests it has chosen
---@field acted integer on how many of them it acted
---@field failed string? what was wrong with its function `raw` when it was called last
local Rule = {}
Rule.__index = Rule

---Ends the rule.
function Rule:remove()
  self.removed = true
end

local CHANCES = 2 ^ 30

---Whether the rule acts on this request; counts.
---@param labels table<string, true> what the server that got it is called
---@param code integer?
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
  if self.random(CHANCES) >= self.probability * CHANCES then return false end
  self.acted = self.acted + 1
  return true
end

-- Those of `names` that are given.
local function among(given, names)
  local found = {}
  for _, name in ipairs(names) do
    if given[name] then found[#found + 1] = name end
  end
  return found
end

local function default_store(given, answer)
  if given.store ~= nil then return given.store end
  if answer then return answers.says_stored(answer.code) end
  if #among(given, INSTEAD) > 0 or given.after_read then return false end
  return #among(given, ENDS) == 0 or #among(given, CHANGES) > 0
end

local function read_answer(given)
  if given.go_away then return { code = wire.response.GO_AWAY } end
  if not given.answer then return nil end
  fields.check("rule answer", given.answer, answer_fields)
  local code = rules.code("rule answer", given.answer.code, wire.response)
  if not code then error("rule answer: needs a code", 0) end
  local answer = { code = code, remark = given.answer.remark,
    ext = fields.ext("rule answer ext", given.answer.ext),
    body = given.answer.body }
  fields.check_command("rule answer", answer)
  return answer
end

local function at_most_one(given, names)
  local found = among(given, names)
  if #found > 1 then
    error(("rule: '%s' and '%s' exclude each other"):format(found[1], found[2]), 0)
  end
end

local function exclude(given, name, others)
  local found = among(given, others)
  if given[name] and found[1] then
    error(("rule: '%s' and '%s' exclude each other"):format(name, found[1]), 0)
  end
end

-- What a mistyped number would keep the process busy with, or fill its memory.
local function check_amounts(given)
  if given.garbage and given.garbage > rules.MOST_BYTES then
    error(("rule: 'garbage' is %d; at most %d bytes are possible"):format(given.garbage,
      rules.MOST_BYTES), 0)
  end
  if type(given.duplicate) == "number" and given.duplicate > MOST_DUPLICATES then
    error(("rule: 'duplicate' is %d; at most %d are possible"):format(given.duplicate,
      MOST_DUPLICATES), 0)
  end
end

local ANSWERS_ONLY = { "wrong_opaque", "length", "duplicate" }

-- What happens to the connection, with or without an answer.
local ON_CONNECTION = { "close", "reset", "half_close", "deaf" }

-- Raises for what happens to an answer when there is none, or nothing of it is sent.
local function check_nothing_is_sent(given)
  local name, changes
  if given.silent then
    name, changes = "'silent'", CHANGES
  elseif given.cut == 0 then
    name, changes = "'cut' of 0", { "wrong_opaque", "length", "duplicate", "split" }
  elseif given.store == false and #among(given, INSTEAD) == 0 then
    name, changes = "'store' of false, which leaves no answer,", CHANGES
  else
    return
  end
  local found = among(given, changes)
  if given.delay and #among(given, ON_CONNECTION) == 0 then found[#found + 1] = "delay" end
  if found[1] then error(("rule: %s and '%s' exclude each other"):format(name, found[1]), 0) end
end

-- Raises for what can make no difference beside the others.
local function check_idle(given)
  if given.pause and not given.split then error("rule: 'pause' needs split", 0) end
  local closes = given.speak and given.close == nil and not given.half_close
  if given.deaf and (closes or given.close or given.reset) then
    error(("rule: '%s' ends the connection, so 'deaf' would have nothing to do%s"):format(
      given.reset and "reset" or given.close and "close" or "speak",
      closes and "; close = false leaves it open" or ""), 0)
  end
end

local function check_action(given)
  at_most_one(given, INSTEAD)
  at_most_one(given, ENDS)
  check_nothing_is_sent(given)
  check_idle(given)
  for _, name in ipairs { "raw", "garbage", "speak" } do exclude(given, name, ANSWERS_ONLY) end
  if #among(given, INSTEAD) + #among(given, CHANGES) + #among(given, ENDS) > 0 or given.delay
    or given.deaf then
    return
  end
  error("rule: says nothing to do; give it answer, delay, silent, close or another of these: "
    .. table.concat(INSTEAD, ", ") .. ", " .. table.concat(CHANGES, ", ") .. ", "
    .. table.concat(ENDS, ", ") .. ", deaf", 0)
end

-- When a rule is looked at: as a connection is accepted, as a request comes in, or when it is there.
local function phase_of(given)
  if given.on == "connect" then
    for _, name in ipairs { "code", "topic", "answer", "go_away", "silent", "after_read", "store",
      unpack(ANSWERS_ONLY) } do
      if given[name] ~= nil then
        error(("rule: '%s' is about requests, and 'on' says connect"):format(name), 0)
      end
    end
    if #among(given, { "raw", "garbage", "speak" }) == 0 then
      if not given.deaf and #among(given, ENDS) == 0 then
        error("rule: 'on' says connect; give it raw, garbage, speak, close, reset, half_close or "
          .. "deaf", 0)
      end
      if #among(given, CHANGES) > 0 then
        error(("rule: '%s' needs raw, garbage or speak when 'on' says connect"):format(
          among(given, CHANGES)[1]), 0)
      end
    end
    return "connect"
  end
  if not given.after_read then return "request" end
  if not (given.close or given.reset) then error("rule: 'after_read' needs close or reset", 0) end
  for _, name in ipairs { "delay", "deaf", "store", unpack(INSTEAD) } do
    exclude(given, "after_read", { name })
  end
  exclude(given, "after_read", CHANGES)
  return "read"
end

-- Whether a broker, or one server of it, may be called so.
local function is_brokers_name(at)
  local name = at:match "^([^#]+)$" or at:match "^([^#]+)#%d+$"
  return name ~= nil and name ~= "broker" and not name:find "^namesrv"
end

---Raises for a place that there is not.
---@param what string
---@param at string?
---@param places table<string, true> all that is known
---@param may_come boolean there may be brokers that are not known yet
function rules.check_place(what, at, places, may_come)
  if not at or places[at] or may_come and is_brokers_name(at) then return end
  local known = {}
  for place in pairs(places) do known[#known + 1] = place end
  table.sort(known)
  error(naming.unknown(what .. " at", at, known), 0)
end

local function read_length(given)
  if given.length == "huge" then return 2 ^ 32 - 1 end
  if type(given.length) == "string" then
    error("rule: 'length' must be a whole number or 'huge', not '" .. given.length .. "'", 0)
  end
  return given.length
end

local function ending_of(given)
  if given.reset then return "reset" end
  if given.half_close then return "half" end
  if given.close or given.speak and given.close == nil then return "close" end
  return nil
end

---Makes a rule of what a user gave. Raises, without a position, when that is wrong.
---@param given table see `rules.fields`
---@param random fun(n: integer): integer for its choices
---@return rocketmq.mock.Rule
function rules.new(given, random)
  if type(given) ~= "table" then error("rule: must be a table, not " .. type(given), 0) end
  fields.check("rule", given, rules.fields)
  check_action(given)
  check_amounts(given)
  local answer = read_answer(given)
  return setmetatable({
    phase = phase_of(given),
    at = given.at,
    code = rules.code("rule", given.code, wire.request),
    topic = given.topic,
    nth = given.nth or 1,
    times = given.times or math.huge,
    probability = given.probability or 1,
    random = random,
    answer = answer,
    -- Something is sent: the usual answer, or what is said instead of it.
    sends = not given.silent and (#among(given, INSTEAD) + #among(given, CHANGES) > 0
      or #among(given, ENDS) == 0),
    raw = given.raw,
    garbage = given.garbage,
    speak = given.speak,
    delay = given.delay,
    wrong_opaque = given.wrong_opaque,
    length = read_length(given),
    duplicate = given.duplicate == true and 1 or given.duplicate or 0,
    cut = given.cut,
    split = given.split,
    pause = given.pause or 1,
    ending = ending_of(given),
    after_read = given.after_read,
    deaf = given.deaf,
    store = default_store(given, answer),
    seen = 0,
    acted = 0,
  }, Rule)
end

naming.guard_methods("rule", Rule)

return rules
