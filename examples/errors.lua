-- What failures look like, and how to tell them apart.
--
--     ./run examples/errors.lua

local rocketmq = require "rocketmq"

local producer = rocketmq.producer { group = "errors", retries = 1 }

local function try(what, message, options)
  local result, err = producer:send(message, options)
  if result then
    print(what .. ": " .. result.status)
  else
    -- kind is for the program, the text for a person.
    print(("%s: kind %s, attempts %d"):format(what, err.kind, err.attempts))
    print("  " .. err)
  end
end

-- Wrong values in a message are refused before anything is sent.
try("an empty body", { topic = "Errors", body = "" })
try("a key with a space", { topic = "Errors", body = "x", keys = { "one two" } })
try("a reserved property", { topic = "Errors", body = "x", properties = { KEYS = "k" } })

-- A queue on a broker that nobody knows.
try("an unknown broker", { topic = "Errors", body = "x" },
  { queue = { broker = "nobody", id = 0 } })

-- A wrong type or an unknown name is a mistake in the script and raises.
local ok, why = pcall(function()
  return producer:send { topic = "Errors", body = "x", tag = "t" }
end)
print(ok, (why:gsub("^.-:%d+: ", "")))

-- So are settings.
ok, why = pcall(rocketmq.producer, { group = "errors", retrys = 3 })
print(ok, (why:gsub("^.-:%d+: ", "")))

-- After a shutdown nothing is sent any more.
producer:shutdown()
try("after the shutdown", { topic = "Errors", body = "x" })
