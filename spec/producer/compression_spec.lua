-- Long bodies are compressed, once, when that makes them shorter; what arrives is what was given.
local cluster = require "spec.support.cluster"
local random = require "spec.support.random"
local wire = require "rocketmq.wire"

local text = ('{"order":17,"state":"paid","amount":"12.50"},'):rep(200) -- 9000 bytes
local FLAGS = { zlib = 0x301, lz4 = 0x101, zstd = 0x201 }

describe("compression", function()
  local c

  after_each(function() c:finish() end)

  local function start(settings, description)
    description = description or {}
    description.topics = { Orders = 4 }
    c = cluster.new(description, settings)
  end

  local function arriving(body)
    assert(c.producer:send { topic = "Orders", body = body })
    local all = c.mock:messages("Orders")
    local requests = c.mock:requests { code = "SEND_MESSAGE_V2" }
    return all[#all], requests[#requests]
  end

  for kind, flags in pairs(FLAGS) do
    it("with " .. kind .. " says so in sysFlag, and the body comes back", function()
      start { compress_type = kind }
      local message, request = arriving(text)
      assert.equal(text, message.body)
      assert.equal(kind, message.compressed)
      assert.equal(flags, message.sys_flag)
      assert.is_true(#request.body < #text / 4)
      assert.same({ text, kind }, { wire.decompress(request.body, flags) })
    end)

    it("with " .. kind .. " is left out for what gets no shorter", function()
      start { compress_type = kind }
      local noise = random.source(5):bytes(10000, nil, 10000)
      local message, request = arriving(noise)
      assert.equal(noise, message.body)
      assert.equal(noise, request.body)
      assert.is_nil(message.compressed)
      assert.equal(0, message.sys_flag)
      -- The next one is compressed all the same.
      assert.equal(kind, arriving(text).compressed)
    end)
  end

  it("begins at compress_over", function()
    start {}
    assert.is_nil(arriving(text:sub(1, 4095)).compressed)
    assert.equal("zlib", arriving(text:sub(1, 4096)).compressed)
    local other = c:add_producer { compress_over = 100 }
    assert(other:send { topic = "Orders", body = text:sub(1, 100) })
    local all = c.mock:messages()
    assert.equal("zlib", all[#all].compressed)
    assert.equal(text:sub(1, 100), all[#all].body)
  end)

  it("is in every mode", function()
    start {}
    assert(c.producer:send_async({ topic = "Orders", body = text }))
    assert(c.producer:send_oneway { topic = "Orders", body = text })
    assert(c.producer:send({ topic = "Orders", body = text }, { selector = function(queues)
      return queues[1]
    end }))
    assert(c.mock:wait(3))
    for _, message in ipairs(c.mock:messages()) do
      assert.equal(text, message.body)
      assert.equal("zlib", message.compressed)
    end
  end)

  it("is in requests with a JSON header too", function()
    start { serialize = "json" }
    local message = arriving(text)
    assert.equal(text, message.body)
    assert.equal(0x301, message.sys_flag)
  end)

  it("is one layer on every attempt", function()
    start({ retries = 3 }, { brokers = 2 })
    c.mock:rule { at = "broker", code = "SEND_MESSAGE_V2", times = 3,
      answer = { code = 2, remark = "busy" } }
    local result = assert(c.producer:send { topic = "Orders", body = text })
    assert.equal(4, result.attempts)
    local requests = c.mock:requests { code = "SEND_MESSAGE_V2" }
    assert.equal(4, #requests)
    for _, request in ipairs(requests) do
      assert.equal(requests[1].body, request.body)
      assert.equal("769", request.ext.f)
    end
    assert.equal(text, c.mock:messages()[1].body)
  end)

  it("is of the body that a hook has made", function()
    start({ retries = 3 }, { brokers = 2 })
    local bodies = {}
    c.producer:add_hook {
      before = function(ctx)
        assert.equal(text, ctx.message.body)
        if ctx.attempt > 1 then
          ctx.message.body = ("attempt %d of "):format(ctx.attempt) .. text
        end
        if ctx.attempt == 4 then ctx.message.body = "short" end
      end,
    }
    c.mock:rule { at = "broker", code = "SEND_MESSAGE_V2", times = 3, answer = { code = 2 } }
    assert(c.producer:send { topic = "Orders", body = text })
    for i, request in ipairs(c.mock:requests { code = "SEND_MESSAGE_V2" }) do
      bodies[i] = assert(wire.decompress(request.body, tonumber(request.ext.f)))
      assert.equal(i < 4 and "769" or "0", request.ext.f)
    end
    assert.same({ text, "attempt 2 of " .. text, "attempt 3 of " .. text, "short" }, bodies)
  end)

  it("is of each message's own body, whatever the one before had", function()
    start {}
    for i = 1, 50 do
      local body = i % 3 == 0 and "short" or text:sub(i * 40) .. i
      local message = arriving(body)
      assert.equal(body, message.body)
      assert.equal(#body >= 4096 and "zlib" or nil, message.compressed)
    end
  end)

  it("comes after the check of the length", function()
    start { max_message_size = 5000 }
    local result, err = c.producer:send { topic = "Orders", body = text }
    assert.is_nil(result)
    assert.matches("9000 bytes.*5000", err.message)
    assert.equal(0, #c.mock:requests())
  end)

  it("has the level that is set", function()
    local source, words, parts, lengths = random.source(9), {}, {}, {}
    for i = 1, 200 do words[i] = source:bytes(9, "etaoinshrdlu", 2) end
    for i = 1, 5000 do parts[i] = source:one_of(words) end
    local body = table.concat(parts, " ")
    for _, level in ipairs { 1, 12 } do
      start { compress_level = level }
      lengths[level] = #select(2, arriving(body)).body
      c:finish()
    end
    assert.is_true(lengths[12] < lengths[1])
  end)

  it("is refused with a level that its kind has not", function()
    start {}
    local function producer(settings)
      return function() c:add_producer(settings) end
    end
    assert.error_matches(producer { compress_level = 13 },
      "compress_level is 13; with compress_type zlib it must be from 1 to 12")
    assert.error_matches(producer { compress_level = 0 }, "compress_level.*from 1 to 22")
    assert.error_matches(producer { compress_type = "gzip" },
      "compress_type must be one of: zlib lz4 zstd; not \"gzip\"", 1, true)
    assert.error_matches(producer { compress_over = -1 }, "compress_msg_body_over_howmuch")
    producer { compress_type = "zstd", compress_level = 22 } ()
    producer { compressType = "lz4", compressLevel = 5, compressMsgBodyOverHowmuch = 1 } ()
  end)
end)
