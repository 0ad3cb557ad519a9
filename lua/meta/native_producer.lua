---@meta rocketmq.native.producer
-- luacheck: ignore 212

--- What C gives to `rocketmq.producer`. It is not for scripts: `take` trusts its argument.
---
--- Functions that wait return `ok` and a pointer when they come back; `take` makes values of those.
--- So everything that needs memory happens in the task, where running out of it is an ordinary error.
---@class rocketmq.native.producer
---@field version string
local native = {}

---@alias rocketmq.Handle userdata a producer; the collector shuts it down in the background
---@alias rocketmq.Pending lightuserdata an answer, to be handed to `take` at once and only once

---@param settings table
---@return rocketmq.Handle? handle
---@return string? why which setting is wrong, and how
function native.new(settings) end

--- Sends. Raises when a type is wrong or waiting is impossible, before anything is sent. It is given
--- three arguments, ten with the options, or sixteen with the message's other fields. `more` is true when
--- the message has fields that few have.
---@alias rocketmq.Sender fun(body?: string, topic?: string, message: table,
---  selector?: rocketmq.Selector|string, arg?: any, options?: table, timeout?: number,
---  attempt_timeout?: number, retries?: integer, queue?: rocketmq.Queue|table, tags?: string,
---  keys?: string|string[], properties?: table<string, string>, flag?: integer, wait?: boolean,
---  more?: boolean): boolean, rocketmq.Pending

--- The function that sends with this producer. `message` and `options` are the tables that the
--- other arguments came from; they are looked through for unknown names now and then.
---@param handle rocketmq.Handle
---@return rocketmq.Sender
function native.sender(handle) end

--- Starts to send: like a Sender's, with a callback or nil as one argument more. It returns true, or
--- `ok` and a pending.
---@alias rocketmq.LaterSender fun(body?: string, topic?: string, message: table, ...): boolean,
---  rocketmq.Pending?

--- The functions that start to send with this producer and a broker's answer, and without one.
---@param handle rocketmq.Handle
---@param runner fun(callback: function, ok: boolean, pending: rocketmq.Pending) runs a callback
---@return rocketmq.LaterSender async
---@return rocketmq.LaterSender oneway
function native.later_senders(handle, runner) end

--- What makes a batch of messages and sends it. `add` takes a message as a Sender does, without options,
--- and the draft in their place. The others send it, with options as a Sender takes them, then the draft,
--- whether it may be split, and a callback: `bodies` keeps the messages' bodies as long as they are needed,
--- `shown` is the message that a selector is shown.
---@class rocketmq.BatchFunctions
---@field new fun(): userdata an empty draft
---@field add fun(body?: string, topic?: string, message: table, ...): boolean, rocketmq.Pending?
---@field send fun(bodies: table, topic?: string, shown?: table, ...): boolean, rocketmq.Pending
---@field send_async fun(bodies: table, topic?: string, shown?: table, ...): boolean, rocketmq.Pending?
---@field send_oneway fun(bodies: table, topic?: string, shown?: table, ...): boolean, rocketmq.Pending?

---@param handle rocketmq.Handle
---@return rocketmq.BatchFunctions
function native.batch_functions(handle) end

---@param handle rocketmq.Handle
---@param topic string
---@return boolean ok
---@return rocketmq.Pending pending
function native.queues(handle, topic) end

---@param handle rocketmq.Handle
---@param what "max"|"min"|"search"|"earliest"
---@param queue rocketmq.Queue|table
---@param time? number milliseconds since 1970, for "search"
---@param options? table
---@return boolean ok
---@return rocketmq.Pending pending
function native.ask_offset(handle, what, queue, time, options) end

---@param handle rocketmq.Handle
---@param description rocketmq.NewTopic
---@return boolean ok
---@return rocketmq.Pending pending
function native.create_topic(handle, description) end

---@param handle rocketmq.Handle
---@param topic? string
---@param id string
---@param options? table
---@return boolean ok
---@return rocketmq.Pending pending
function native.view_message(handle, topic, id, options) end

---@param handle rocketmq.Handle
---@param topic string
---@param key string
---@param options? table
---@return boolean ok
---@return rocketmq.Pending pending
function native.query_message(handle, topic, key, options) end

---@param handle rocketmq.Handle
---@param timeout? number
---@return boolean ok
---@return rocketmq.Pending pending
function native.flush(handle, timeout) end

---@param handle rocketmq.Handle
---@param timeout? number
---@return boolean ok
---@return rocketmq.Pending pending
function native.shutdown(handle, timeout) end

--- Replaces the list of name servers.
---@param handle rocketmq.Handle
---@param list string|string[]
---@return boolean? ok nil when the list is wrong, false when `pending` is an error for `take`
---@return string|rocketmq.Pending? detail what is wrong, or the pointer
function native.set_namesrv(handle, list) end

--- The functions that send requests with this producer: one waits for the reply, like a Sender; the
--- other takes a callback as one argument more, like a LaterSender.
---@param handle rocketmq.Handle
---@return rocketmq.Sender request
---@return rocketmq.LaterSender request_async
function native.requesters(handle) end

--- The function that sends half messages with this producer: like a Sender.
---@param handle rocketmq.Handle
---@return rocketmq.Sender
function native.half_sender(handle) end

--- Tells the broker what has become of the transaction whose half message had this result, and notes
--- it there. `take` gives 0 when the broker has been told.
---@param handle rocketmq.Handle
---@param result rocketmq.Result
---@param state rocketmq.TransactionState
---@param remark? string for the broker's log
---@return boolean ok
---@return rocketmq.Pending pending
function native.end_transaction(handle, result, state, remark) end

--- From now on brokers' checks are decided by this function, each in a task of its own; it must call
--- `end_check` in the end.
---@param handle rocketmq.Handle
---@param decider fun(id: integer)
function native.set_check(handle, decider) end

---@param handle rocketmq.Handle
---@param id integer
---@return rocketmq.StoredMessage? message nil when the check is over
function native.checked(handle, id) end

---@param handle rocketmq.Handle
---@param id integer
---@param state rocketmq.TransactionState
---@param remark? string for the broker's log
---@param complaint? string for ours
function native.end_check(handle, id, state, remark, complaint) end

--- The result of a send, the list of queues, the number of sends left over, or what an administrative
--- call has found; or nil and an error.
---@param ok boolean
---@param pending rocketmq.Pending
---@return any value
---@return rocketmq.Error? err
function native.take(ok, pending) end

--- The selector for sends that name neither a queue nor a selector.
---@param handle rocketmq.Handle
---@param selector? rocketmq.Selector|string
---@return true? ok
---@return string? why it is none
function native.set_selector(handle, selector) end

---@param handle rocketmq.Handle
---@return table<string, string|number|boolean>
function native.settings(handle) end

---@param handle rocketmq.Handle
---@return string
function native.client_id(handle) end

---@param handle rocketmq.Handle
---@return rocketmq.Stats
function native.stats(handle) end

--- In the order in which the brokers were met.
---@param handle rocketmq.Handle
---@return rocketmq.Fault[]
function native.faults(handle) end

--- Sets the hooks, in the order of their calls. C trusts what `rocketmq.hook` has checked.
---@param handle rocketmq.Handle
---@param hooks rocketmq.Hook[] each with a name
---@param producer rocketmq.Producer what they see as ctx.producer
function native.set_hooks(handle, hooks, producer) end

--- Unknown names are looked for in every message from now on.
---@param handle rocketmq.Handle
function native.look_at_every_message(handle) end

--- Says how to make an int64_t of its two halves.
---@param make fun(high: number, low: number): integer
function native.set_int64(make) end

--- The metatable of all errors.
---@return table
function native.error_metatable() end

return native
