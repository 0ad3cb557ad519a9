--- rmqlua spec/real/send_until_stopped.lua NAMESRV TOPIC
--- Sends in every way until a signal ends it. Prints "accepted", a tab and the body once a message was
--- taken by send_async or send_oneway, and "acknowledged" once send or a callback was told that it is
--- stored.

local rocketmq = require "rocketmq"

local producer = rocketmq.producer { group = "spec_real", namesrv = arg[1], timeout = 60000,
  flush_timeout = 30000 }
local topic = arg[2]

local function say(what, body) io.write(what, "\t", body, "\n") end

-- After the signal sends are refused, which is what ends a task; any other failure is an uncaught error.
local function went_well(ok, err)
  if not ok and err.kind ~= "state" then error(err) end
  return ok
end

local function message(way, task, number)
  return { topic = topic, body = ("%s %d of task %d"):format(way, number, task) }
end

local function in_turn(task)
  local number = 0
  repeat
    number = number + 1
    local next_one = message("send", task, number)
    local result = went_well(producer:send(next_one))
    if result then say("acknowledged", next_one.body) end
  until not result
end

local function without_waiting(task)
  local number = 0
  repeat
    number = number + 1
    local asked = message("send_async", task, number)
    local ok = went_well(producer:send_async(asked, function(result, err)
      if went_well(result, err) then say("acknowledged", asked.body) end
    end))
    if ok then say("accepted", asked.body) end
    local unasked = message("send_oneway", task, number)
    ok = ok and went_well(producer:send_oneway(unasked))
    if ok then say("accepted", unasked.body) end
    rocketmq.sleep(1)
  until not ok
end

for task = 1, 8 do
  rocketmq.spawn(in_turn, task)
  rocketmq.spawn(without_waiting, task)
end
