-- What the mock does with transactions, asked byte by byte: the producer's side has specs of its own.
local new_mock = require "rocketmq.mock"
local raw_client = require "spec.support.raw_client"
local rocketmq = require "rocketmq"
local wire = require "rocketmq.wire"

local PREPARED = 4

describe("a mock's transactions", function()
  local mock, client
  local function set_up(given)
    given = given or {}
    given.topics = { Orders = 4 }
    mock = new_mock(given)
    client = assert(raw_client.connect(mock:broker("broker-a").addr))
    client.opaque = 1000 -- the broker's own requests have numbers too
  end
  after_each(function()
    client:close()
    mock:close()
  end)

  local function heartbeat(group)
    local body = '{"clientID":"c@1","producerDataSet":[{"groupName":"%s"}]}'
    local answer = client:request { code = wire.request.HEART_BEAT, body = body:format(group) }
    assert.equal(0, answer.code)
  end

  local function send_half(id, group)
    client.opaque = client.opaque + 1
    client:write(wire.encode_send_request { opaque = client.opaque, group = group or "g",
      topic = "Orders", sys_flag = PREPARED, body = "body-" .. id, queue_id = 1,
      properties = ("TRAN_MSG\1true\2PGROUP\1%s\2UNIQ_KEY\1%s\2"):format(group or "g", id) })
    local answer = client:reply(client.opaque)
    assert.equal(0, answer.code)
    return { queue_offset = answer.ext.queueOffset,
      log_offset = ("%d"):format(wire.decode_offset_id(answer.ext.msgId).offset) }
  end

  local function tell(place, decided, changes)
    local ext = { producerGroup = "g", tranStateTableOffset = place.queue_offset,
      commitLogOffset = place.log_offset, commitOrRollback = decided,
      fromTransactionCheck = "false" }
    for name, value in pairs(changes or {}) do ext[name] = value end
    return client:request { code = wire.request.END_TRANSACTION, ext = ext }
  end

  it("are not visible before they are committed", function()
    set_up()
    local place = send_half "A"
    assert.equal(0, mock:count())
    assert.same({ state = "prepared", topic = "Orders", group = "g", broker = "broker-a",
      msg_id = "A", checks = 0, answers = {}, remarks = {} }, mock:transactions()[1])
    assert.equal(0, tell(place, "8").code)
    assert.equal("committed", mock:transactions()[1].state)
    local message = mock:messages("Orders")[1]
    assert.equal("body-A", message.body)
    assert.is_nil(message.properties.TRAN_MSG)
    assert.equal("A", message.msg_id)
    assert.equal(1, message.queue_id)
    assert.equal(0, message.queue_offset)
  end)

  it("are never visible when they are rolled back", function()
    set_up()
    assert.equal(0, tell(send_half "A", "12").code)
    assert.equal("rolled back", mock:transactions()[1].state)
    assert.equal(0, mock:count())
  end)

  it("stay what they are when nothing that fits is said", function()
    set_up()
    local place = send_half "A"
    assert.equal(0, tell(place, "0").code)
    assert.equal(1, tell(place, "9").code)
    assert.equal(1, tell(place, "8", { producerGroup = "other" }).code)
    assert.equal(1, tell(place, "8", { tranStateTableOffset = "17" }).code)
    assert.equal(1, tell(place, "8", { commitLogOffset = "x" }).code)
    assert.same({ "unknown" }, mock:transactions()[1].answers)
    assert.equal("prepared", mock:transactions()[1].state)
    assert.equal(0, tell(place, "8").code)
    assert.equal(1, tell(place, "8").code) -- it is decided once
    assert.equal(1, mock:count())
  end)

  it("are asked about over a connection that knows the group, and can be found by it", function()
    set_up { transaction_timeout = 10, transaction_check_interval = 10 }
    send_half "A"
    rocketmq.sleep(30)
    assert.equal(0, mock:transactions()[1].checks) -- nobody to ask
    heartbeat "g"
    local asked
    assert(mock:wait(function()
      for _, command in pairs(client.replies) do
        if command.code == wire.request.CHECK_TRANSACTION_STATE then asked = command end
      end
      return asked
    end))
    assert.equal(2, asked.flag) -- oneway
    assert.equal("A", asked.ext.msgId)
    assert.equal("A", asked.ext.transactionId)
    assert.equal("broker-a", asked.ext.bname)
    local stored = assert(wire.decode_stored(asked.body))[1]
    assert.equal("body-A", stored.body)
    assert.equal("Orders", stored.topic)
    assert.equal(1, stored.queue_id)
    assert.equal(asked.ext.offsetMsgId, stored.offset_msg_id)
    assert.equal(asked.ext.commitLogOffset, ("%d"):format(stored.log_offset))
    assert.equal("1", wire.decode_properties(stored.properties).TRANSACTION_CHECK_TIMES)
    local place = { queue_offset = asked.ext.tranStateTableOffset,
      log_offset = asked.ext.commitLogOffset }
    assert.equal(0, tell(place, "8", { fromTransactionCheck = "true" }).code)
    assert.same({ "commit (check)" }, mock:transactions()[1].answers)
    assert.equal(1, mock:count())
  end)

  it("are given up after so many questions", function()
    set_up { transaction_timeout = 5, transaction_check_interval = 5, transaction_check_max = 2 }
    heartbeat "g"
    send_half "A"
    assert(mock:wait(function() return mock:transactions()[1].state == "given up" end))
    assert.equal(2, mock:transactions()[1].checks)
    assert.equal(0, mock:count())
  end)

  it("can be looked for", function()
    set_up()
    tell(send_half "A", "8")
    send_half("B", "h")
    assert.equal(2, #mock:transactions())
    assert.equal("B", mock:transactions({ state = "prepared" })[1].msg_id)
    assert.equal("B", mock:transactions({ group = "h", topic = "Orders" })[1].msg_id)
    assert.equal(0, #mock:transactions { msg_id = "C" })
    assert.error_matches(function() mock:transactions { sate = "prepared" } end, "did you mean")
  end)
end)
