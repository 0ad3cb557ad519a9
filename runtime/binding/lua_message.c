#include "binding/lua_message.h"

#include "binding/lua_result.h"
#include "net/io.h"
#include "wire/codes.h"
#include "wire/compress.h"
#include "wire/properties.h"

static void set_text(lua_State *L, const char *name, rmq_slice text) {
  lua_pushlstring(L, text.len ? text.ptr : "", text.len);
  lua_setfield(L, -2, name);
}

static void set_integer(lua_State *L, const char *name, int64_t value) {
  rmq_lua_push_int64(L, value);
  lua_setfield(L, -2, name);
}

static void set_host(lua_State *L, const char *name, const rmq_stored_host *host) {
  rmq_address address = {.ip_len = host->ip_len, .port = (uint16_t)host->port};
  char text[RMQ_ADDRESS_TEXT];
  memcpy(address.ip, host->ip, sizeof address.ip);
  rmq_address_format(&address, text);
  lua_pushstring(L, text);
  lua_setfield(L, -2, name);
}

/* Blanks separate keys. */
static void set_keys(lua_State *L, rmq_slice keys) {
  int n = 0;
  size_t from = 0;
  lua_newtable(L);
  for (size_t i = 0; i <= keys.len; i++) {
    if (i < keys.len && keys.ptr[i] != ' ') continue;
    if (i > from) {
      lua_pushlstring(L, keys.ptr + from, i - from);
      lua_rawseti(L, -2, ++n);
    }
    from = i + 1;
  }
  lua_setfield(L, -2, "keys");
}

static void set_properties(lua_State *L, rmq_slice properties) {
  rmq_field property;
  lua_newtable(L);
  while (rmq_properties_next(&properties, &property)) {
    lua_pushlstring(L, property.name.ptr, property.name.len);
    lua_pushlstring(L, property.value.ptr, property.value.len);
    lua_rawset(L, -3);
  }
  lua_setfield(L, -2, "properties");
}

/* Its ids, and what else stands in its properties. As in Java, who has no unique key is called by its
 * place. */
static void set_names(lua_State *L, const rmq_stored_message *message) {
  char id[RMQ_UNIQUE_ID_MAX];
  int len = rmq_stored_offset_id(message, id);
  rmq_slice unique = rmq_properties_find(message->properties, "UNIQ_KEY");
  rmq_slice tags = rmq_properties_find(message->properties, "TAGS");
  set_text(L, "offset_msg_id", rmq_slice_make(id, (size_t)len));
  set_text(L, "msg_id", unique.ptr ? unique : rmq_slice_make(id, (size_t)len));
  if (tags.ptr) set_text(L, "tags", tags);
  set_keys(L, rmq_properties_find(message->properties, "KEYS"));
  set_properties(L, message->properties);
}

/* As in Java, what is unpacked is no longer marked as compressed. */
static void set_body(lua_State *L, const rmq_stored_message *message, rmq_buf *scratch,
                     size_t limit) {
  rmq_slice body = message->body;
  int32_t sys_flag = message->sys_flag;
  rmq_buf_clear(scratch);
  if ((sys_flag & RMQ_SYS_COMPRESSED) && rmq_decompress(sys_flag, body, limit, scratch) == 0) {
    body = rmq_buf_slice(scratch);
    sys_flag &= ~RMQ_SYS_COMPRESSED;
  }
  set_text(L, "body", body);
  set_integer(L, "sys_flag", sys_flag);
}

void rmq_lua_push_message(lua_State *L, rmq_slice broker, const rmq_stored_message *message,
                          rmq_buf *scratch, size_t limit) {
  lua_createtable(L, 0, 20);
  set_text(L, "topic", message->topic);
  set_body(L, message, scratch, limit);
  set_names(L, message);
  set_integer(L, "flag", message->flag);
  set_integer(L, "queue_id", message->queue_id);
  set_integer(L, "queue_offset", message->queue_offset);
  set_integer(L, "commit_log_offset", message->log_offset);
  set_integer(L, "born_timestamp", message->born_ms);
  set_integer(L, "store_timestamp", message->stored_ms);
  set_integer(L, "reconsume_times", message->reconsume_times);
  set_integer(L, "prepared_transaction_offset", message->prepared_offset);
  set_host(L, "born_host", &message->born_host);
  set_host(L, "store_host", &message->store_host);
  if (broker.len > 0) {
    rmq_lua_push_queue(L, message->topic, broker, message->queue_id);
    lua_setfield(L, -2, "queue");
  }
}
