--- Each queue as likely as any other; as Java's SelectMessageQueueByRandom. After an attempt of which
--- nothing was written it draws again.
---
---     producer:send({ topic = "Logs", body = "..." }, { selector = "random" })
return require("rocketmq.native.selector").random
