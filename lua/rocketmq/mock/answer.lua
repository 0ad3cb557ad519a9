--- The answers that handlers make.
local wire = require "rocketmq.wire"
local versions = require "rocketmq.mock.versions"

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

---Refuses what a request has for a topic or a queue: older brokers have no code of its own for that.
---@param world table
---@param text string for string.format, which gets the rest
---@return rocketmq.mock.Answer
function answer.invalid(world, text, ...)
  return answer.refuse(world.version < versions.V5_0_0 and wire.response.SYSTEM_ERROR
    or wire.response.INVALID_PARAMETER, text, ...)
end

-- What these say is about a message that the broker has.
local stored = {
  [wire.response.SUCCESS] = true,
  [wire.response.FLUSH_DISK_TIMEOUT] = true,
  [wire.response.SLAVE_NOT_AVAILABLE] = true,
  [wire.response.FLUSH_SLAVE_TIMEOUT] = true,
}

---Whether the answer to a send with this code says that the message is stored.
---@param code integer
---@return boolean
function answer.says_stored(code) return stored[code] == true end

---What a server says of a request that no part handles.
---@param code integer the request's
---@return rocketmq.mock.Answer
function answer.not_supported(code)
  return answer.refuse(wire.response.REQUEST_CODE_NOT_SUPPORTED,
    "mock: request code %d is not known here", code)
end

return answer
