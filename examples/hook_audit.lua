-- Keeps a record of everything that was sent, and of what was not.
--
--     ./run examples/hook_audit.lua

local rocketmq = require "rocketmq"
local cjson = require "cjson"

local producer = rocketmq.producer { group = "audited" }

-- One line of JSON for each send, when it has ended. A real one goes to a path of your own.
local path = os.tmpname()
producer:add_hook(rocketmq.hook.audit {
  path = path,
  flush_ms = 0, -- each line at once, for this example; by default once a second
  more = function(record, ctx) record.customer = ctx.message.properties.customer end,
})

for order = 1, 3 do
  producer:send {
    topic = "Payments",
    keys = "order-" .. order,
    body = "paid",
    properties = { customer = "c-" .. order % 2 },
  }
end
producer:send({ topic = "Payments", keys = "order-4", body = "paid" },
  { queue = { broker = "nobody", id = 0 } })

for line in io.lines(path) do
  local record = cjson.decode(line)
  print(("%s of %s: %s"):format(record.keys[1], record.customer or "nobody",
    record.status or record.error.kind))
end
os.remove(path)

-- A hook of one's own is a table of functions; this one writes what it sees into the message.
producer:add_hook {
  name = "stamp",
  before = function(ctx) ctx.message.properties.sent_by = ctx.born_host end,
  after = function(ctx) print(("attempt %d on %s"):format(ctx.attempt, ctx.broker)) end,
}
producer:send { topic = "Payments", body = "paid" }

producer:shutdown()
