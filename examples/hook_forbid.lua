-- Decides which messages may not be sent.
--
--     ./run examples/hook_forbid.lua
--
-- A file with nothing but `return { name = ..., check_forbidden = ... }` does the same for every producer of
-- any script: rmqlua --hook no_secrets.lua script.lua

local rocketmq = require "rocketmq"

local producer = rocketmq.producer { group = "careful" }

producer:add_hook {
  name = "no-secrets",
  check_forbidden = function(ctx)
    if ctx.topic == "Secrets" then return "this topic is not for us" end
    if ctx.message.body:find("password", 1, true) then return "the body has a password in it" end
  end,
}

-- The caller of send gets the reason, and nothing has been sent.
local function try(topic, body)
  local result, err = producer:send { topic = topic, body = body }
  print(topic, result and result.status or err.kind .. ": " .. err.message)
end

try("News", "hello")
try("Secrets", "hello")
try("News", "the password is 1234")

-- This one lets three messages of a topic pass at once, and then one each 10 s.
producer:add_hook(rocketmq.hook.rate_limit { per_second = 0.1, burst = 3 })
for _ = 1, 4 do try("News", "again") end

producer:shutdown()
