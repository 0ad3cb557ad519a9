--- Remembers what was worked out for a list of queues, as long as the list is in use. A topic has the same
--- list until its route changes, so that a selector's cost does not depend on the number of queues.

---@generic T
---@param work_out fun(queues: rocketmq.Queue[]): T
---@return fun(queues: rocketmq.Queue[]): T
return function(work_out)
  local known = setmetatable({}, { __mode = "k" })
  return function(queues)
    local found = known[queues]
    if found == nil then
      found = work_out(queues)
      known[queues] = found
    end
    return found
  end
end
