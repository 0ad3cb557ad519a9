--- Batches: several messages of one topic in one request.

local native = require "rocketmq.native.producer"
local sending = require "rocketmq.sending"

local take = native.take
local accepted, check_options = sending.accepted, sending.check_options
local has_more, read_callback = sending.has_more, sending.read_callback

---@class rocketmq.Producer
local Batches = {}

-- A list with anything but messages in it is mostly one message where several are expected.
local function check_list(messages, method)
  if type(messages) ~= "table" then
    error(("%s: the messages must be a list, not %s"):format(method, type(messages)), 4)
  end
  local n = #messages
  for key in pairs(messages) do
    if type(key) ~= "number" or key < 1 or key > n or key % 1 ~= 0 then
      error(("%s: the messages must be a list of messages, not a table with the key '%s'"):format(
        method, tostring(key)), 4)
    end
  end
  return n
end

local function check_batch(self, messages, options, method)
  if type(self) ~= "table" or not rawget(self, "batch") then
    error(("call producer:%s{...} with a colon, not producer.%s{...} with a dot"):format(method,
      method), 3)
  end
  local n = check_list(messages, method)
  if options == nil then return n, true end
  check_options(options, 4)
  local split = options.split
  if split == nil then return n, true end
  if type(split) ~= "boolean" then
    error("option split must be a boolean, not " .. type(split), 3)
  end
  return n, split
end

-- What is wrong with one message of a batch, which is nobody else's error; and, as in any other error
-- of a batch, the error of that message: one of its own, so that who prints an error with all that is in it
-- comes to an end.
local function refuse_member(i, ok, pending)
  local _, err = take(ok, pending)
  local own = {}
  for name, value in pairs(err) do own[name] = value end
  err.failed = { [i] = setmetatable(own, getmetatable(err)) }
  return nil, err
end

-- What the three have in common; called by a tail call, so that the caller's caller is the script.
-- `finish` makes values of what C returns.
local function send_batch(self, method, finish, messages, options, callback)
  local n, split = check_batch(self, messages, options, "send_batch" .. method)
  local batch = self.batch
  local add, draft, bodies = batch.add, batch.new(), {}
  local shown = messages[1] -- before anything of it can change the list
  for i = 1, n do
    local message = messages[i]
    if type(message) ~= "table" then
      error(("messages[%d] must be a table, not %s"):format(i, type(message)), 2)
    end
    local body = message.body
    bodies[i] = body
    local ok, pending = add(body, message.topic, message, nil, nil, draft, nil, nil, nil, nil,
      message.tags, message.keys, message.properties, message.flag, message.wait,
      has_more(message))
    if not ok then return refuse_member(i, ok, pending) end
  end
  local send, topic = batch["send" .. method], shown and shown.topic
  local given = options or {}
  return finish(send(bodies, topic, shown, given.selector, given.arg, options, given.timeout,
    given.attempt_timeout, given.retries, given.queue, draft, split, callback))
end

--- Besides those of a send.
---@class rocketmq.BatchOptions: rocketmq.SendOptions
---@field split? boolean send several batches, none of which waits for another, when one would be
--- longer than `max_message_size`; default true. With false nothing is sent then.

--- Sends messages of one topic in one request, to one queue, and waits until a broker has stored
--- them. Each has its own id, result and error.
---
--- A message that is wrong in itself, or of another topic or `wait` than the first, lets nothing be
--- sent: `nil, err`, which names it as `messages[3]` and has its error as `failed[3]`, too. Otherwise
--- `results` has a result or false for each message, and `err` is nil when all are stored, else an error
--- whose `failed[i]` is that of messages[i]. A selector is asked once for each request, with the batch's first message.
---@param messages rocketmq.Message[]
---@param options? rocketmq.BatchOptions
---@return (rocketmq.Result|false)[]? results
---@return rocketmq.Error? err
function Batches:send_batch(messages, options)
  return send_batch(self, "", take, messages, options)
end

--- Starts to send a batch and returns; the callback gets what `send_batch` returns. Waits for room as
--- `send_async` does.
---@param messages rocketmq.Message[]
---@param options? rocketmq.BatchOptions may be left out before a callback
---@param callback? fun(results: (rocketmq.Result|false)[]?, err: rocketmq.Error?)
---@return true? ok
---@return rocketmq.Error? err why the batch was not accepted
function Batches:send_batch_async(messages, options, callback)
  options, callback = read_callback(options, callback, "send_batch_async")
  return send_batch(self, "_async", accepted, messages, options, callback)
end

--- Sends a batch that no broker answers, and returns; see `send_oneway`.
---@param messages rocketmq.Message[]
---@param options? rocketmq.BatchOptions
---@return true? ok
---@return rocketmq.Error? err why the batch was not accepted
function Batches:send_batch_oneway(messages, options)
  return send_batch(self, "_oneway", accepted, messages, options)
end

return Batches
