-- Hooks and real brokers: what a hook makes of a message is what the Java client reads, and what a hook
-- is told is what the sender is told.

local rocketmq = require "rocketmq"
local messages = require "spec.real.messages"
local readback = require "spec.real.readback"
local support = require "spec.real.support"

-- Set it to the seed of a failure to see that failure again.
local seed = tonumber(os.getenv "RMQ_SEED") or os.time() % 1000000
local COUNT, TASKS, MEMBERS = 1000, 16, 100

local function at(index) return ("seed %d, message %s"):format(seed, tostring(index)) end

-- What the hook makes of message `index`, in place: each kind of change to each field by some of them.
local function change(message, index)
  message.body = ("%d:"):format(index) .. message.body:reverse()
  if index % 3 == 0 then
    message.tags = "hooked"
  elseif index % 3 == 1 then
    message.tags = nil
  end
  local keys = message.keys
  if type(keys) == "string" then keys = { keys } end
  if index % 5 == 0 then
    keys = nil
  elseif index % 2 == 0 then
    keys = keys or {}
    keys[#keys + 1] = "k-" .. index
  end
  message.keys = keys
  message.properties.hooked = "\206\177 " .. index
  message.properties[messages.INDEX] = tostring(index)
  if index % 4 == 0 then
    for name in pairs(message.properties) do
      if name:find "^p1" then message.properties[name] = nil end
    end
  end
end

-- A producer whose hooks change all that may be changed, and collect what they see at the end by msg_id.
local function hooked_producer(server)
  local producer = rocketmq.producer { group = "spec_real_hooks", namesrv = server.namesrv,
    timeout = 60000 }
  local seen = {}
  producer:add_hook { name = "change", strict = true, before = function(ctx)
    local message = ctx.message
    if type(message.keys) == "table" and #message.keys == 0 then message.keys = nil end
    change(message, tonumber(message.properties[messages.INDEX]))
  end }
  producer:add_hook(rocketmq.hook.opentelemetry {})
  producer:add_hook { name = "collect", after = function(ctx)
    local own, list = ctx.message, seen[ctx.msg_id] or {}
    seen[ctx.msg_id] = list
    list[#list + 1] = { result = ctx.result, will_retry = ctx.will_retry, topic = ctx.topic,
      broker = ctx.broker, message = { body = own.body, tags = own.tags, keys = own.keys,
        flag = own.flag, properties = own.properties } }
  end }
  producer:add_hook { name = "tenant", before_request = function(ctx)
    ctx.ext.tenant = "shop-7"
  end }
  producer:add_hook(rocketmq.hook.acl { access_key = "specAccess", secret_key = "specSecret" })
  finally(function() producer:shutdown() end)
  return producer, seen
end

-- The only `after` of a message whose send was done at the first attempt.
local function the_end(seen, result, index)
  local list = seen[result.msg_id]
  readback.equal(list and #list, 1, at(index), "number of its afters")
  readback.equal(list[1].will_retry, false, at(index), "will_retry")
  return list[1]
end

local function compare_results(told, result, index)
  local ours, theirs = told:fields(), result:fields()
  for name, value in pairs(theirs) do
    if type(value) ~= "table" then readback.equal(ours[name], value, at(index), name) end
  end
  readback.equal(tostring(told.queue), tostring(result.queue), at(index), "queue")
end

local W3C = "^00%-%x+%-%x+%-01$"

-- Reads the topic back, and compares each message with what the hook has made of it, and with what
-- `after` saw.
local function read_back(server, topic, count, results, seen)
  local found = {}
  readback.drain(server, { topic }, count, function(read)
    local index = tonumber(read.properties[messages.INDEX])
    local result = index and results[index]
    readback.check(result, at(index), "was read but never sent")
    readback.check(not found[index], at(index), "is there twice")
    found[index] = true
    local ending = the_end(seen, result, index)
    compare_results(ending.result, result, index)
    readback.equal(ending.topic, topic, at(index), "topic")
    readback.equal(ending.broker, result.queue.broker, at(index), "broker")

    local expected = messages.make(seed, index)
    change(expected, index)
    local traceparent = ending.message.properties.traceparent
    readback.check(traceparent and #traceparent == 55 and traceparent:find(W3C), at(index),
      "no traceparent: " .. tostring(traceparent))
    expected.properties.traceparent = traceparent
    local answer = { msgId = result.msg_id, offsetMsgId = result.offset_msg_id,
      broker = result.queue.broker, queueId = result.queue.id, queueOffset = result.queue_offset }
    readback.compare(read, expected, answer, at(index))
    readback.compare(read, { body = ending.message.body, tags = ending.message.tags,
      keys = ending.message.keys[1] and ending.message.keys or nil, flag = ending.message.flag,
      properties = ending.message.properties }, answer, at(index) .. ", as after saw it")
  end)
  local number = 0
  for _ in pairs(found) do number = number + 1 end
  readback.equal(number, count, at "?", "number of messages")
end

for _, server in ipairs(support.servers()) do
  describe("with hooks, RocketMQ " .. server.version, function()
    setup(function()
      support.java("Admin", { server.namesrv, "createTopic", 4, "Hooked", "HookedBatch" })
    end)

    it("has what they made of 1000 messages, and they hear what the senders hear", function()
      local producer, seen = hooked_producer(server)
      local results, tasks = {}, {}
      local function send_async(message)
        local ended, result, err
        assert(producer:send_async(message, function(...)
          ended, result, err = true, ...
        end))
        while not ended do rocketmq.sleep(1) end
        return result, err
      end
      for first = 1, TASKS do
        tasks[first] = rocketmq.spawn(function()
          for index = first, COUNT, TASKS do
            local message = messages.make(seed, index)
            message.topic = "Hooked"
            local result, err
            if index % 7 == 0 then
              result, err = send_async(message)
            else
              result, err = producer:send(message)
            end
            if not result then error(at(index) .. ": " .. tostring(err), 0) end
            results[index] = result
          end
        end)
      end
      for _, task in ipairs(tasks) do task:wait() end
      assert.equal(0, producer:stats().hook_errors)
      read_back(server, "Hooked", COUNT, results, seen)
    end)

    it("has what they made of the members of a batch", function()
      local producer, seen = hooked_producer(server)
      local list = {}
      for index = 1, MEMBERS do
        list[index] = messages.make(seed, index)
        list[index].topic = "HookedBatch"
      end
      local results, err = producer:send_batch(list)
      assert.is_nil(err)
      assert.equal(0, producer:stats().hook_errors)
      read_back(server, "HookedBatch", MEMBERS, results, seen)
    end)
  end)
end
