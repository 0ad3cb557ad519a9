-- What a script sends stands in a real RocketMQ, byte for byte and each message once, as the Java
-- client reads it.

local round_trip = require "spec.real.round_trip"
local support = require "spec.real.support"

-- Set it to the seed of a failure to see that failure again.
local seed = tonumber(os.getenv "RMQ_SEED") or os.time() % 1000000

for _, server in ipairs(support.servers()) do
  describe("RocketMQ " .. server.version, function()
    it("gives back 10,000 random messages of 16 tasks, each once and byte for byte", function()
      support.java("Admin", { server.namesrv, "createTopic", 8, "RoundTrip" })
      round_trip(server, "RoundTrip", seed, 10000, "spec/real/send_many.lua", 16)
    end)

    it("makes a topic that nobody created", function()
      round_trip(server, "MadeBySending", seed, 100, "spec/real/send_many.lua", 4)
    end)
  end)
end
