-- A selector in a file of its own: messages of a region go to the broker that is near it.
--
--     ./run --plugins examples/plugins examples/plugins.lua

local near = { north = "broker-a", south = "broker-b" }
local turn = 0

-- `region` is what the send gives as `arg`.
local function by_region(queues, _, region, ctx)
  local good = {}
  for _, queue in ipairs(queues) do
    if queue.broker == near[region] and ctx.available(queue) then good[#good + 1] = queue end
  end
  if #good == 0 then good = queues end
  turn = turn % #good + 1
  return good[turn]
end

-- Sends ask for it by this name. Without one, the file's would be its name.
return { name = "by_region", select = by_region }
