--- What a spec has sent to real brokers, by body, and how it ended, held against what the Java client
--- reads back.

local cjson = require "cjson"
local support = require "spec.real.support"

local ledger = {}

---@class spec.Sent
---@field expected? {broker: string, id: integer} the queue it must go to
---@field completions integer how often its end was told
---@field result? rocketmq.Result
---@field err? rocketmq.Error

--- Notes a send, and gives what is told of its end.
---@param sends table<string, spec.Sent>
---@param body string
---@param expected? {broker: string, id: integer}
---@return fun(result: rocketmq.Result?, err: rocketmq.Error?) complete
function ledger.enter(sends, body, expected)
  assert(not sends[body], body)
  local sent = { expected = expected, completions = 0 }
  sends[body] = sent
  return function(result, err)
    sent.completions = sent.completions + 1
    sent.result, sent.err = result, err
  end
end

--- Reads a topic back: what Drain printed for each body, a list each, and why there is less than
--- expected. It blocks this process, so no producer should be running.
---@param namesrv string
---@param topic string
---@param expect integer
---@param seconds? integer how long nothing may come; default 20
---@return table<string, table[]> read
---@return string? why
function ledger.drain(namesrv, topic, expect, seconds)
  local read = {}
  local ok, why = pcall(support.java, "Drain", { namesrv, topic }, function(line)
    local message = cjson.decode(line)
    local body = support.base64_decode(message.body)
    read[body] = read[body] or {}
    table.insert(read[body], message)
  end, { expect = expect, seconds = seconds or 20 })
  return read, not ok and why or nil
end

---@return integer
function ledger.count(map)
  local count = 0
  for _ in pairs(map) do count = count + 1 end
  return count
end

--- One of the times that a message was read is the one that the result speaks of. Raises otherwise.
function ledger.check_result(body, result, reads)
  local found = false
  for _, read in ipairs(reads) do
    if read.msgId ~= result.msg_id then error(body .. ": another message id was read", 0) end
    if read.broker == result.queue.broker and read.queueId == result.queue.id
      and read.queueOffset == result.queue_offset
      and read.offsetMsgId == result.offset_msg_id then
      found = true
    end
  end
  if not found then
    error(("%s: nothing was read at %s offset %d"):format(body, tostring(result.queue),
      result.queue_offset), 0)
  end
end

---@class spec.Reconciled
---@field kinds table<string, integer> how many failed, by the kind of their errors
---@field failures string[]
---@field lost string[] acknowledged and not there
---@field twice integer bodies that are there more than once
---@field stored_all_the_same integer failed and there

--- Compares what a script was told with what was read. Raises for a send that has not ended exactly
--- once, for a result that names another place, and for a message that is there twice after one attempt.
---@param sends table<string, spec.Sent>
---@param read table<string, table[]>
---@return spec.Reconciled
function ledger.reconcile(sends, read)
  local kinds, failures, lost, twice, there = {}, {}, {}, 0, 0
  for body, sent in pairs(sends) do
    if sent.completions ~= 1 then
      error(("%s: ended %d times"):format(body, sent.completions), 0)
    end
    local reads = read[body] or {}
    if sent.result then
      if #reads == 0 then
        lost[#lost + 1] = ("%s in %s"):format(body, tostring(sent.result.queue))
      else
        ledger.check_result(body, sent.result, reads)
      end
      if #reads > 1 then
        twice = twice + 1
        if sent.result.attempts == 1 then error(body .. ": there twice after one attempt", 0) end
      end
    else
      kinds[sent.err.kind] = (kinds[sent.err.kind] or 0) + 1
      failures[#failures + 1] = tostring(sent.err)
      if #reads > 0 then there = there + 1 end
    end
  end
  return { kinds = kinds, failures = failures, lost = lost, twice = twice,
    stored_all_the_same = there }
end

--- "none", or "timeout 3, closed 1".
---@param kinds table<string, integer>
---@return string
function ledger.kinds_text(kinds)
  local texts = {}
  for kind, count in pairs(kinds) do texts[#texts + 1] = kind .. " " .. count end
  table.sort(texts)
  return #texts > 0 and table.concat(texts, ", ") or "none"
end

return ledger
