-- A selector is changed while messages are sent with it, as an operator does: edit the file, then
-- `kill -HUP`. Here the script does both itself.
--
--     ./run examples/reload.lua

local rocketmq = require "rocketmq"
local uv = require "luv"

local path = os.tmpname()

local function write(text)
  local file = assert(io.open(path .. ".new", "w"))
  file:write(text)
  file:close()
  assert(os.rename(path .. ".new", path))
end

write [[return { name = "chosen", select = function() return 1 end }]]
assert(rocketmq.load_selector(path)) -- as --selector does before the script

local producer = rocketmq.producer { group = "reload" }
local function send()
  return assert(producer:send({ topic = "Letters", body = "x" }, { selector = "chosen" })).queue
end

local before = send()
print("at first", before)

-- Nothing is disturbed by a file that is wrong: this is logged, and the selector stays.
write [[return { name = "chosen", selct = function() return 2 end }]]
uv.kill(uv.os_getpid(), "sighup")
for _ = 1, 20 do
  assert(send() == before)
  rocketmq.sleep(5)
end
print("after a mistake", send())

write [[return { name = "chosen", select = function(queues) return #queues end }]]
uv.kill(uv.os_getpid(), "sighup")
while send() == before do rocketmq.sleep(5) end -- from some message on it is the new one
print("after SIGHUP", send())

producer:shutdown()
os.remove(path)
