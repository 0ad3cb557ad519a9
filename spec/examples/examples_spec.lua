-- Every example runs as it stands, and says what its readers are told that it says.
local child = require "spec.support.child"

local function run(name, ...)
  local given = { "--mock=default", ... }
  given[#given + 1] = "examples/" .. name .. ".lua"
  local ended = child.run(given)
  assert.equal(0, ended.code, ended.stdout .. ended.stderr)
  -- Nothing but that it is a mock, and that topics are new to it.
  local first, rest = ended.stderr:match "^([^\n]*)\n(.*)$"
  assert.truthy(first and first:find "^mock: name server at ", ended.stderr)
  for line in rest:gmatch "[^\n]+" do
    assert.truthy(line:find 'topic "[%a%%]+" does not exist yet', ended.stderr)
  end
  local lines = {}
  for line in ended.stdout:gmatch "[^\n]*" do
    if line ~= "" then lines[#lines + 1] = line end
  end
  return lines
end

local function matches(patterns, lines)
  for i, pattern in ipairs(patterns) do
    assert.truthy((lines[i] or "nothing"):find("^" .. pattern .. "$"),
      ("line %d is %q, not like %q"):format(i, tostring(lines[i]), pattern))
  end
  assert.equal(#patterns, #lines, table.concat(lines, "\n"))
end

describe("the example", function()
  it("quickstart", function()
    local stored = "hello %d: SEND_OK, queue Greetings@broker%-[ab]#[0-3], offset 0"
    matches({ stored, stored, stored,
      "message error: topic has a space at position 3;.*" }, run "quickstart")
  end)

  it("coroutines", function()
    matches({ "the first task got SEND_OK", "16 tasks stored 400 messages",
      "the generator got SEND_OK", "the generator got SEND_OK",
      "sent 403, acknowledged 403, failed 0" }, run "coroutines")
  end)

  it("timer", function()
    local lines = run "timer"
    assert.equal("started", table.remove(lines, 1))
    table.sort(lines)
    matches({ "tick 1: SEND_OK", "tick 2: SEND_OK", "tick 3: SEND_OK", "tick 4: SEND_OK",
      "tick 5: SEND_OK" }, lines)
  end)

  it("transaction", function()
    matches({ "o%-1 for 50: commit", "o%-2 for 5000: unknown", "o%-3 for 500: rollback",
      "the broker asks about o%-2: paid" }, run "transaction")
  end)

  it("request_reply", function()
    local lines = run "request_reply"
    table.sort(lines, function(a, b) return a < b end)
    matches({ "later%? %-> LATER%?!", "one %-> polite: ONE!",
      "the message has no property CLUSTER, so it is no request that can be replied to",
      "two %-> polite: TWO!", "who is there%? %-> polite: WHO IS THERE%?!" }, lines)
  end)

  it("properties", function()
    matches({ "SEND_OK", "tags: paid", "keys: o%-17, customer%-4", "flag: 42", "source: web",
      "batch: 7", "__SHARDINGKEY: customer%-4", "BUYER_ID: b%-4",
      "the property name TAGS is used by RocketMQ itself; set the message's tags instead" },
      run "properties")
  end)

  it("message_ids", function()
    matches({ "unique: by process %d+ at %d+%.%d+%.%d+%.%d+", "just now: true",
      "offset: at 127%.0%.0%.1:%d+, byte 0", "offset", "nil\t'not an id' is no message id: .*" },
      run "message_ids")
  end)

  it("light_queues", function()
    matches({ "to two phones: SEND_OK", "to one phone: SEND_OK", "%%LMQ%%phone%-1,%%LMQ%%phone%-2",
      "to nobody: lmq%[1%] has ',' at position 8; .*" }, run "light_queues")
  end)

  it("retry_topic", function()
    matches({ "invoice 1: tried 1 times, in %%RETRY%%billing",
      "invoice 2: tried 2 times, in %%RETRY%%billing",
      "invoice 3: tried 4 times, in %%DLQ%%billing",
      'properties%["RECONSUME_TIME"%] is "often"; it must be a whole number .*' },
      run "retry_topic")
  end)

  it("errors", function()
    matches({
      "an empty body: kind message, attempts 0", "  message error 13: body is empty.*",
      "a key with a space: kind message, attempts 0", '  .*keys%[1%] %("one two"%) has a space.*',
      "a reserved property: kind message, attempts 0", "  message error: .*KEYS.*",
      "an unknown broker: kind %l+, attempts %d", "  .*nobody.*",
      "false\tunknown field 'tag' in the message: did you mean 'tags'%?",
      "false\trocketmq.producer: unknown setting 'retrys': did you mean 'retries'%?",
      "after the shutdown: kind state, attempts 0", "  state error: .*shut down.*",
    }, run "errors")
  end)

  it("async", function()
    matches({ "nothing has come back yet: 0", "stored 100 of 100", "the script ends",
      "step 1: SEND_OK", "step 2: SEND_OK", "step 3: SEND_OK" }, run "async")
  end)

  it("oneway", function()
    matches({ "20000 handed over, 0 of them noticed to be lost", "message" }, run "oneway")
  end)

  it("hook_audit", function()
    matches({ "order%-1 of c%-1: SEND_OK", "order%-2 of c%-0: SEND_OK",
      "order%-3 of c%-1: SEND_OK", "order%-4 of nobody: route",
      "attempt 1 on broker%-%l" }, run "hook_audit")
  end)

  it("hook_forbid", function()
    local blocked = ' "%w+" was blocked by hook '
    matches({ "News\tSEND_OK",
      "Secrets\thook: .*" .. blocked .. "no%-secrets: this topic is not for us",
      "News\thook: .*" .. blocked .. "no%-secrets: the body has a password in it",
      "News\tSEND_OK", "News\tSEND_OK", "News\tSEND_OK",
      "News\thook: .*" .. blocked .. "rate_limit: .* fits in %d+ ms" }, run "hook_forbid")
  end)

  it("delay", function()
    matches({ "in ten seconds, by level: SEND_OK", "in 1500 milliseconds: SEND_OK",
      "in half an hour: SEND_OK", "at the next full hour: SEND_OK", "by level: SEND_OK",
      "by time: SEND_OK", "true\ttrue", "level 19: delay_level is 19; it must be from 1 to 18.*",
      "twice: delay_level and delay_seconds are both given.*",
      "in 1970: deliver_at is %d+; .* milliseconds since 1970.*",
      "in a month: .*code 13 MESSAGE_ILLEGAL.*max delay 259200000ms.*" }, run "delay")
  end)

  it("recall", function()
    matches({ "SEND_OK", "true\tnil",
      'the recall handle is of a message to topic "Cancellations".*',
      'the recall handle "no handle" is none.*' }, run "recall")
  end)

  it("compression", function()
    matches({ "zlib, level 5, from 4096 bytes on", "14391 bytes: SEND_OK", "lz4: SEND_OK",
      "zstd: SEND_OK", "as it is: SEND_OK" }, run "compression")
  end)

  it("batch", function()
    matches({ "reading 1: SEND_OK, offset 0", "reading 2: SEND_OK, offset 1",
      "reading 3: SEND_OK, offset 2", "reading 4: SEND_OK, offset 3",
      "reading 5: SEND_OK, offset 4", "long 1: SEND_OK",
      'long 2: Sending to topic "Readings" failed: messages%[2%]: body is 5242880 bytes long.*',
      "long 3: SEND_OK", "nil\tmessages%[2%]: body is empty.*", "true", "SEND_OK" }, run "batch")
  end)

  it("orders_by_hash", function()
    matches({ "20 orders with 5 steps each are in [4-8] of 8 queues", "0 steps were tried again" },
      run "orders_by_hash")
  end)

  it("orders_by_hash, while a broker is away", function()
    local mock = require("rocketmq").mock { brokers = 2 }
    finally(function() mock:close() end)
    local running = child.start { "--namesrv=" .. mock.namesrv, "examples/orders_by_hash.lua",
      8, 40 }
    assert(mock:wait(function() return mock:count() > 20 end))
    mock:broker("broker-b"):stop()
    assert(mock:wait(function() return running.stderr:find "is tried again: %l+" end, 30000))
    mock:broker("broker-b"):start()
    local ended = running:wait()
    assert.equal(0, ended.code, ended.stderr)
    assert.matches("8 orders with 40 steps each are in %d of 8 queues\n[1-9]%d* steps were tried",
      ended.stdout)
    -- In each order every step is stored in the place of its number, at the most twice in a row.
    local last = {}
    for _, stored in ipairs(mock:messages "OrderSteps") do
      local order, step = stored.body:match "^(%S+) step (%d+)$"
      step = tonumber(step)
      assert(step == (last[order] or 0) + 1 or step == last[order], stored.body)
      last[order] = step
    end
    for i = 1, 8 do assert.equal(40, last["order-" .. i]) end
  end)

  it("machine_room", function()
    local lines = run "machine_room"
    local first = tonumber(lines[1]:match "#(%d)$")
    matches({ "Orders@hz@broker%-a#" .. first, "Orders@hz@broker%-a#" .. 1 - first,
      "Orders@hz@broker%-a#" .. first, "Orders@sh@broker%-b#%d",
      'Sending to topic "Orders" failed: its selector: examples/machine_room.lua:%d+: '
        .. "machine_room: no queue is in the rooms %(bj%); the brokers, named room@broker, are "
        .. "hz@broker%-a, sh@broker%-b",
      "Orders@%a%a@broker%-%a#%d", "Orders@%a%a@broker%-%a#%d" }, lines)
  end)

  it("auto_batch", function()
    matches({ "stored 1000 messages, failed 0", "in batches: true", "in order: true" },
      run "auto_batch")
  end)

  it("selector", function()
    local lines = { "customer 1: Invoices@broker%-[ab]#%d", "customer 2: Invoices@broker%-[ab]#%d",
      "customer 0: Invoices@broker%-[ab]#%d" }
    for i = 1, 3 do lines[i + 3] = lines[i] end
    lines[7] = "SEND_OK"
    lines[8] = "selector\tSending to topic \"Invoices\" failed: the selector at "
      .. "examples/selector.lua:%d+ returned nil%. It must .*"
    local said = run "selector"
    matches(lines, said)
  end)

  it("admin", function()
    matches({ "2 queues", "parcel 1", "oslo: parcel 2, keys parcel%-2 oslo",
      "oslo: parcel 4, keys parcel%-4 oslo", "parcel 4", "Parcels@broker%-a#0: offsets 0 to 2",
      "Parcels@broker%-b#0: offsets 0 to 2",
      "Parcels@broker%-a#0: from the first on 0, an hour later 2",
      "Parcels@broker%-b#0: from the first on 0, an hour later 2",
      'broker error 208: no broker of topic "Parcels" has a message with the id F+ .*' },
      run "admin")
  end)

  it("trace", function()
    matches({ "2 records stored, 0 lost",
      "Pub of topic Traced by group trace: keys order%-1, success true",
      "Pub of topic Traced by group trace: keys null, success false" }, run "trace")
  end)

  it("plugins", function()
    matches({ "north: Parcels@broker%-a#%d", "south: Parcels@broker%-b#%d",
      "north: Parcels@broker%-a#%d", "west: Parcels@broker%-[ab]#%d" },
      run("plugins", "--plugins", "examples/plugins"))
  end)

  it("reload", function()
    local ended = child.run { "--mock=default", "examples/reload.lua" }
    assert.equal(0, ended.code, ended.stderr)
    assert.equal("at first\tLetters@broker-a#0\nafter a mistake\tLetters@broker-a#0\n"
      .. "after SIGHUP\tLetters@broker-b#3\n", ended.stdout)
    assert.matches("error SIGHUP: the plugins stay as they are: .*unknown name 'selct', did you "
      .. "mean 'select'%?\n$", ended.stderr)
  end)
end)
