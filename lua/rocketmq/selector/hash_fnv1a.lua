--- The queue that client-go's hash selector picks for the same sharding key: FNV-1a in 32 bits over the
--- key's bytes, modulo the number of queues. For topics that Go programs send to as well.
---
---     producer:send({ topic = "Orders", body = "..." }, { selector = "hash_fnv1a", arg = "order-1" })
---
--- The argument must be a string. An empty one goes to any queue, as in Go.
return require("rocketmq.native.selector").hash_fnv1a
