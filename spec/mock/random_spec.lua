local new_random = require "rocketmq.mock.random"

local function first(seed, count, n)
  local draw, drawn = new_random(seed), {}
  for index = 1, count do drawn[index] = draw(n) end
  return drawn
end

describe("the mock's random numbers", function()
  it("are the same for the same seed and others for another", function()
    assert.same(first(7, 50, 1000), first(7, 50, 1000))
    assert.are_not.same(first(7, 50, 1000), first(8, 50, 1000))
  end)

  it("cover their range and stay in it, for every seed", function()
    for _, seed in ipairs { 0, 1, -1, 0x5bd1e995, 2 ^ 31 } do
      local seen = {}
      for _, value in ipairs(first(seed, 500, 5)) do
        assert.is_true(value >= 0 and value < 5)
        seen[value] = true
      end
      assert.same({ [0] = true, true, true, true, true }, seen)
    end
  end)
end)
