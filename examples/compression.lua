-- Sends long bodies. Those of 4096 bytes and more are compressed on the way, when that makes them
-- shorter; who reads them gets what was sent.
--
--     ./run examples/compression.lua

local rocketmq = require "rocketmq"

local lines = {}
for i = 1, 500 do lines[i] = ('{"order":%d,"state":"paid"}'):format(i) end
local report = table.concat(lines, "\n")

-- By default as zlib, which every consumer reads.
local producer = rocketmq.producer { group = "compression" }
local settings = producer:settings()
print(("%s, level %d, from %d bytes on"):format(settings.compress_type, settings.compress_level,
  settings.compress_msg_body_over_howmuch))
print(("%d bytes: %s"):format(#report,
  assert(producer:send { topic = "Reports", body = report }).status))
producer:shutdown()

-- Consumers of 4.9.4 and later read two more kinds: lz4 costs least, zstd makes most of a level.
for _, kind in ipairs { "lz4", "zstd" } do
  producer = rocketmq.producer { group = "compression", compress_type = kind, compress_over = 1000 }
  print(kind .. ": " .. assert(producer:send { topic = "Reports", body = report }).status)
  producer:shutdown()
end

-- Whoever compresses bodies already can leave it at that.
producer = rocketmq.producer { group = "compression", compress_over = 2 ^ 31 - 1 }
print("as it is: " .. assert(producer:send { topic = "Reports", body = report }).status)
producer:shutdown()
