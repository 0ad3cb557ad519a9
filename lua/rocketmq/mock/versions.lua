--- Versions, as answers and clients name them, from which on servers do something otherwise. Where it
--- is not known when that was, 5.0.0 stands for it: 4.9.2 and 5.4.0 were looked at.
---@class rocketmq.mock.versions
---@field V5_0_0 integer
---@field V5_3_3 integer
return { V5_0_0 = 413, V5_3_3 = 479 }
