-- A hook in a file of its own: every message tells which machine has sent it, and in which attempt.
--
--     ./run --plugins examples/plugins examples/plugins.lua

local function before(ctx)
  local properties = ctx.message.properties
  properties.sent_from = ctx.born_host
  properties.sent_in_attempt = tostring(ctx.attempt)
end

local function after(ctx)
  if ctx.err then io.stderr:write("stamp: ", tostring(ctx.err), "\n") end
end

return { name = "stamp", before = before, after = after }
