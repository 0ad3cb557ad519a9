---@meta rocketmq.wire

--- Bytes of the RocketMQ remoting protocol to tables and back, without any I/O. Wrong types and
--- unknown fields raise an error; bytes that cannot be decoded give `nil` and the reason.
---
--- 64-bit numbers (offsets, timestamps) are Lua numbers up to 2^53 either way and decimal strings
--- beyond. Where one is taken, both are.
---@class rocketmq.wire
---@field request table<string, integer> the request codes: `wire.request.SEND_MESSAGE_V2 == 310`
---@field response table<string, integer> the response codes: `wire.response.TOPIC_NOT_EXIST == 17`
local wire = {}

---@alias rocketmq.wire.serialize "json"|"rocketmq"

---@class rocketmq.wire.frame
---@field serialize rocketmq.wire.serialize how the header is written
---@field header string
---@field body string
---@field size integer the bytes that the whole frame takes

---@class rocketmq.wire.header
---@field code integer
---@field language string "JAVA", "CPP", ...; "OTHER" when it is one that is not known
---@field version integer
---@field opaque integer
---@field flag integer bit 0: a response, bit 1: oneway
---@field remark? string
---@field ext table<string, string> the last of two fields with one name counts

---@class rocketmq.wire.command: rocketmq.wire.header
---@field serialize rocketmq.wire.serialize
---@field body string
---@field size integer the bytes that the whole frame takes

--- Finds the frame at position `at`.
---@param bytes string
---@param at? integer default 1
---@return rocketmq.wire.frame|false|nil frame false when more bytes are needed
---@return string? why these bytes can be no frame
function wire.split(bytes, at) end

---@param serialize rocketmq.wire.serialize
---@param bytes string
---@return rocketmq.wire.header? header
---@return string? err
function wire.decode_header(serialize, bytes) end

--- `split` and `decode_header` in one.
---@param bytes string
---@param at? integer default 1
---@return rocketmq.wire.command|false|nil command false when more bytes are needed
---@return string? err
function wire.decode(bytes, at) end

---@class rocketmq.wire.encode_options
---@field serialize? rocketmq.wire.serialize default "json"
---@field code? integer default 0; with "rocketmq" it must fit 16 bits
---@field opaque? integer default 0
---@field flag? integer default 0
---@field language? string default "OTHER"
---@field version? integer default 479
---@field remark? string
---@field ext? table<string, string|number|boolean> written in the order of the names
---@field body? string

--- One frame. Raises when it cannot be carried: text that is no UTF-8 in JSON, more than 16 MiB.
---@param command rocketmq.wire.encode_options
---@return string bytes
function wire.encode(command) end

---@class rocketmq.wire.send_header
---@field group string
---@field topic string
---@field default_topic? string default "TBW102"
---@field default_topic_queue_nums? integer default 4
---@field queue_id? integer default 0
---@field sys_flag? integer default 0
---@field born_timestamp? number|string ms since 1970, default 0
---@field message_flag? integer default 0
---@field properties? string a property string, see `encode_properties`
---@field reconsume_times? integer default 0
---@field unit_mode? boolean
---@field max_reconsume_times? integer default -1, which is not sent
---@field batch? boolean
---@field broker_name? string

---@class rocketmq.wire.send_request: rocketmq.wire.send_header
---@field code? integer default 310, SEND_MESSAGE_V2
---@field opaque? integer
---@field flag? integer
---@field serialize? rocketmq.wire.serialize default "rocketmq"
---@field body? string

--- A send request with a V2 header.
---@param request rocketmq.wire.send_request
---@return string bytes
function wire.encode_send_request(request) end

--- Reads the ext fields of a send request, V1 or V2 by its code.
---@param command rocketmq.wire.header
---@return rocketmq.wire.send_header? header without `broker_name` when it was not sent
---@return string? err
function wire.decode_send_header(command) end

---@class rocketmq.wire.send_reply
---@field msg_id string the offset id: where the broker stored the message
---@field queue_id integer
---@field queue_offset number|string
---@field transaction_id? string
---@field batch_uniq_id? string
---@field recall_handle? string
---@field region_id string
---@field trace_on boolean

---@param command rocketmq.wire.header
---@return rocketmq.wire.send_reply? reply
---@return string? err
function wire.decode_send_reply(command) end

--- The property string of these properties, in the order of their names.
---@param properties table<string, string>
---@return string? bytes
---@return string? err an empty name or value, a byte 1 or 2, or more than 32767 bytes together
function wire.encode_properties(properties) end

--- What Java reads out of a property string: damaged pairs are left out.
---@param bytes string
---@return table<string, string> properties
function wire.decode_properties(bytes) end

---@class rocketmq.wire.queue_data
---@field broker_name string
---@field read_queue_nums? integer
---@field write_queue_nums? integer
---@field perm? integer 4 read, 2 write, 1 inherit
---@field topic_sys_flag? integer

---@class rocketmq.wire.broker_data
---@field cluster? string
---@field broker_name string
---@field addrs table<integer, string> by broker id; 0 is the master

---@class rocketmq.wire.route
---@field order_topic_conf? string
---@field queues rocketmq.wire.queue_data[] sorted by broker name when decoded
---@field brokers rocketmq.wire.broker_data[] sorted by broker name when decoded

--- Reads TopicRouteData in standard JSON or in fastjson's spelling with bare integer keys.
---@param json string
---@return rocketmq.wire.route? route
---@return string? err
function wire.decode_route(json) end

---@param route rocketmq.wire.route
---@param spelling? "standard"|"bare" default "standard"; name servers up to 4.9.3 write "bare"
---@return string json
function wire.encode_route(route, spelling) end

---@class rocketmq.wire.batch_member
---@field flag? integer
---@field body? string
---@field properties? string

---@param members rocketmq.wire.batch_member[]
---@return string bytes
function wire.encode_batch(members) end

---@param bytes string
---@return rocketmq.wire.batch_member[]? members
---@return string? err
function wire.decode_batch(bytes) end

--- A message as a broker keeps it. Hosts are IP addresses; times are ms since 1970.
---@class rocketmq.wire.stored_message
---@field topic string
---@field body? string
---@field properties? string a property string
---@field queue_id? integer
---@field queue_offset? number|string
---@field log_offset? number|string its place in the commit log
---@field message_flag? integer the user's flag
---@field sys_flag? integer
---@field born_host? string
---@field born_port? integer
---@field born_ms? number
---@field store_host? string
---@field store_port? integer
---@field stored_ms? number
---@field reconsume_times? integer
---@field body_crc? integer
---@field prepared_offset? number|string where its half message was
---@field offset_msg_id? string only when decoded

---@param message rocketmq.wire.stored_message
---@return string bytes
function wire.encode_stored(message) end

--- Reads any number of stored messages, one behind the other.
---@param bytes string
---@return rocketmq.wire.stored_message[]? messages
---@return string? err
function wire.decode_stored(bytes) end

--- A body made shorter.
---@param body string
---@param kind "zlib"|"lz4"|"zstd"
---@param level? integer 1 to 12, with "zstd" to 22; default 5
---@return string? compressed nil when it would not be shorter
---@return integer|string sys_flag the bits that say how it is compressed
function wire.compress(body, kind, level) end

--- What a body with this sysFlag was before it was compressed; one that was not stays as it is.
---@param body string
---@param sys_flag integer
---@param limit? integer the most bytes that it may become; default 64 MiB
---@return string? body
---@return string? kind "zlib", "lz4" or "zstd"; or why it cannot be decompressed
function wire.decompress(body, sys_flag, limit) end

---@class rocketmq.wire.id_maker
local id_maker = {}

--- The next unique id: 32 upper-case hex digits, 56 with an IPv6 address.
---@param wall_ms number ms since 1970
---@return string id
function id_maker:next(wall_ms) end

---@param identity { ip: string, pid?: integer, tag?: integer } `ip` is 4 or 16 bytes
---@return rocketmq.wire.id_maker
function wire.id_maker(identity) end

---@param where { host: string, port?: integer, offset?: number|string } `host` is an IP address
---@return string id
function wire.encode_offset_id(where) end

---@param id string
---@return { host: string, port: integer, offset: number|string }? where
---@return string? err
function wire.decode_offset_id(id) end

---@class rocketmq.wire.recall_handle
---@field topic string
---@field broker string the name of the broker that has the message
---@field deliver_at number|string ms since 1970
---@field msg_id string the message's unique id

---@param handle rocketmq.wire.recall_handle
---@return string text
function wire.encode_recall_handle(handle) end

---@param text string
---@return rocketmq.wire.recall_handle? handle
---@return string? err
function wire.decode_recall_handle(text) end

---@class rocketmq.wire.client_request
---@field opaque? integer default 0
---@field serialize? rocketmq.wire.serialize default "rocketmq"

---@class rocketmq.wire.heartbeat: rocketmq.wire.client_request
---@field client_id string
---@field groups string[] producer groups

---@param request rocketmq.wire.heartbeat
---@return string bytes
function wire.heartbeat_request(request) end

---@class rocketmq.wire.unregister: rocketmq.wire.client_request
---@field client_id string
---@field group string

---@param request rocketmq.wire.unregister
---@return string bytes
function wire.unregister_request(request) end

---@class rocketmq.wire.route_query: rocketmq.wire.client_request
---@field topic string

---@param request rocketmq.wire.route_query
---@return string bytes
function wire.route_request(request) end

---@param code integer
---@return string name "UNKNOWN" when there is none
function wire.request_name(code) end

---@param code integer
---@return string name "UNKNOWN" when there is none
function wire.response_name(code) end

--- The addresses of a name server list, without blanks, schemes and empty parts.
---@param text string
---@return string[]? addresses
---@return string? err
function wire.namesrv_list(text) end

---@param text string "host:port" or "[v6]:port"
---@return string? host
---@return integer|string port_or_err
function wire.host_port(text) end

--- Whether RocketMQ keeps this property name to itself.
---@param name string
---@return boolean
function wire.is_reserved_property(name) end

---@param text string
---@return boolean valid
---@return integer? position of the first byte that is wrong
function wire.valid_utf8(text) end

return wire
