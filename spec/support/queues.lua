--- Lists of queues and a ctx, for calling selectors without a producer.
local queues = {}

--- A list: `queues.list { ["broker-a"] = 4, ["broker-b"] = 2 }`, sorted as selectors get them.
---@param counts table<string, integer>
function queues.list(counts)
  local brokers, list = {}, {}
  for broker in pairs(counts) do brokers[#brokers + 1] = broker end
  table.sort(brokers)
  for _, broker in ipairs(brokers) do
    for id = 0, counts[broker] - 1 do
      list[#list + 1] = { topic = "T", broker = broker, id = id }
    end
  end
  return list
end

--- A ctx in which the brokers in `given.avoided` are not available, and `given.failures` have failed.
---@param given? {avoided?: table<string, boolean>, failures?: table<string, integer>, last_broker?: string}
function queues.ctx(given)
  given = given or {}
  return {
    attempt = given.last_broker and 2 or 1,
    last_broker = given.last_broker,
    available = function(queue) return not (given.avoided or {})[queue.broker] end,
    failures = function(queue) return (given.failures or {})[queue.broker] or 0 end,
    best = function(list) return #list end,
  }
end

--- How often each queue is chosen in `count` calls, as "broker#id" to number.
function queues.counts(count, choose)
  local counts = {}
  for i = 1, count do
    local name = choose(i)
    counts[name] = (counts[name] or 0) + 1
  end
  return counts
end

return queues
