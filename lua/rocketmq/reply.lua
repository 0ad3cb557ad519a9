--- Replies to requests.
local errors = require "rocketmq.error"

--- Where a reply goes.
---@class rocketmq.ReplyTo
---@field correlation_id string the request's
---@field client string the client id of who asked
---@field ttl? string how long they wait, in milliseconds

--- The reply to a request, as it was pushed to us.
---@class rocketmq.Reply: rocketmq.StoredMessage

-- Java's code for a request that nobody can reply to.
local CREATE_REPLY_MESSAGE_EXCEPTION = 10007

local needed = { "CLUSTER", "CORRELATION_ID", "REPLY_TO_CLIENT" }

--- Makes the reply to a request: a message that `send` takes as it is; `tags`, `properties` and so on
--- may be added. Java: MessageUtil.createReplyMessage.
---@param request table a message as consumers get it, with its `properties`
---@param body string
---@return rocketmq.Message? message
---@return rocketmq.Error? err when it is no request
return function(request, body)
  if type(request) ~= "table" or type(request.properties) ~= "table" then
    error("rocketmq.reply: the request must be a message with properties", 2)
  end
  local properties = request.properties
  for _, name in ipairs(needed) do
    if type(properties[name]) ~= "string" then
      local err = errors.new("message", ("the message has no property %s, so it is no request that "
        .. "can be replied to"):format(name))
      err.code = CREATE_REPLY_MESSAGE_EXCEPTION
      return nil, err
    end
  end
  return {
    topic = properties.CLUSTER .. "_REPLY_TOPIC",
    body = body,
    reply_to = { correlation_id = properties.CORRELATION_ID, client = properties.REPLY_TO_CLIENT,
      ttl = properties.TTL },
  }
end
