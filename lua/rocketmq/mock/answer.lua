--- The answers that handlers make.
local wire = require "rocketmq.wire"

local answer = {}

---@param ext table<string, string>?
---@param body string?
---@return rocketmq.mock.Answer
function answer.ok(ext, body)
  return { code = wire.response.SUCCESS, ext = ext, body = body }
end

---@param code integer
---@param text string for string.format, which gets the rest
---@return rocketmq.mock.Answer
function answer.refuse(code, text, ...)
  return { code = code, remark = text:format(...) }
end

---What a server says of a request that no part handles.
---@param code integer the request's
---@return rocketmq.mock.Answer
function answer.not_supported(code)
  return answer.refuse(wire.response.REQUEST_CODE_NOT_SUPPORTED,
    "mock: request code %d is not known here", code)
end

return answer
