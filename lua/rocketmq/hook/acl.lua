--- Signs every request for brokers with access control, as Java's AclClientRPCHook does.
---
---     producer:add_hook(rocketmq.hook.acl { access_key = "rocketmq", secret_key = "12345678" })
---
--- It is an example of a hook that adds fields to requests: the signature is computed from all other fields, so
--- this hook must come behind any other one that adds some.

local options = require "rocketmq.hook.options"
local sha1 = require "rocketmq.hook.sha1"

---@class rocketmq.AclOptions
---@field access_key string the name of the user
---@field secret_key string the password
---@field security_token? string of temporary credentials

-- What is signed: the values of all fields in the order of their names, and the body.
local function content_of(ext, body)
  local names, values = {}, {}
  for name in pairs(ext) do
    if name ~= "Signature" then names[#names + 1] = name end
  end
  table.sort(names)
  for i, name in ipairs(names) do values[i] = ext[name] end
  return table.concat(values) .. body
end

---@param given rocketmq.AclOptions
---@return rocketmq.Hook
return function(given)
  local option = options.read("acl", given, {
    access_key = { "string" }, secret_key = { "string" }, security_token = { "string" },
  })
  for _, name in ipairs { "access_key", "secret_key" } do
    if (option[name] or ""):match "^%s*$" then
      error(("rocketmq.hook.acl: %s must be given"):format(name), 2)
    end
  end
  return {
    name = "acl",
    before_request = function(ctx)
      local ext = ctx.ext
      ext.AccessKey = option.access_key
      ext.SecurityToken = option.security_token
      ext.Signature = sha1.base64(sha1.hmac(option.secret_key, content_of(ext, ctx.body)))
    end,
  }
end
