#include "binding/lua_arguments.h"

#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/shown.h"
#include "binding/lua_choosers.h"
#include "binding/lua_names.h"
#include "binding/lua_result.h"
#include "script/plugins.h"
#include "wire/codes.h"

enum { LOOK_AT_FIRST = 256, LOOK_AT_EACH = 64 };

static const char *const message_fields[] = {
    "topic", "body",         "tags",          "keys",        "properties", "flag",
    "wait",  "delay_ms",     "delay_seconds", "delay_level", "deliver_at", "buyer_id",
    "lmq",   "sharding_key", "reply_to",      NULL};
static const rmq_names message_names = {"field", "the message", message_fields};

static const char *const option_fields[] = {
    "timeout", "attempt_timeout", "retries", "queue", "selector", "arg", NULL};
static const rmq_names option_names = {"option", "the send's options", option_fields};

static const char *const batch_option_fields[] = {
    "timeout", "attempt_timeout", "retries", "queue", "selector", "arg", "split", NULL};
static const rmq_names batch_option_names = {"option", "the send's options", batch_option_fields};

static const rmq_send_options no_options = {.mode = RMQ_MODE_SYNC, .retries = -1, .may_wait = true};

static const char *const queue_fields[] = {"topic", "broker", "id", NULL};
static const rmq_names queue_names = {"field", "option queue", queue_fields};

void rmq_arguments_init(rmq_arguments *arguments) {
  *arguments = (rmq_arguments){.time = rmq_setting_find(rmq_slice_text("send_msg_timeout")),
                               .retries = rmq_setting_find(rmq_slice_text("retries"))};
  rmq_failure_init(&arguments->refusal);
}

void rmq_arguments_free(rmq_arguments *arguments) {
  free(arguments->keys);
  free(arguments->properties);
  free(arguments->lmq);
  rmq_failure_clear(&arguments->refusal);
}

static int refuse(rmq_arguments *arguments, int32_t code, const char *sentence) {
  rmq_failure *why = &arguments->refusal;
  rmq_failure_clear(why);
  why->kind = RMQ_KIND_MESSAGE;
  why->code = code;
  rmq_buf_text(&why->message, sentence);
  return RMQ_EINVAL;
}

static int wrong_type(lua_State *L, const char *name, const char *wanted, int index) {
  return rmq_lua_raise(L, "%s must be %s, not %s", name, wanted, luaL_typename(L, index));
}

/* A text or nothing. Numbers are not taken for texts: 1 and "1" must not come to mean the same by
 * accident. */
static rmq_slice read_text(lua_State *L, int index, const char *name) {
  rmq_slice text = {NULL, 0};
  int type = lua_type(L, index);
  if (type == LUA_TSTRING) {
    text.ptr = lua_tolstring(L, index, &text.len);
  } else if (type != LUA_TNIL) {
    wrong_type(L, name, "a string", index);
  }
  return text;
}

/* What a field of the message is called, on top of the stack. */
static const char *push_name(lua_State *L, const rmq_arguments *arguments, const char *field) {
  if (arguments->member == 0) return lua_pushfstring(L, "%s of the message", field);
  return lua_pushfstring(L, "messages[%d].%s", arguments->member, field);
}

static int wrong_field(lua_State *L, const rmq_arguments *arguments, const char *field,
                       const char *wanted, int index) {
  const char *given = luaL_typename(L, index);
  return rmq_lua_raise(L, "%s must be %s, not %s", push_name(L, arguments, field), wanted, given);
}

static rmq_slice read_message_text(lua_State *L, const rmq_arguments *arguments, int index,
                                   const char *field) {
  rmq_slice text = {NULL, 0};
  int type = lua_type(L, index);
  if (type == LUA_TSTRING) {
    text.ptr = lua_tolstring(L, index, &text.len);
  } else if (type != LUA_TNIL) {
    wrong_field(L, arguments, field, "a string", index);
  }
  return text;
}

/* --- Keys and properties --- */

static void add_text(rmq_slice **list, size_t *cap, size_t count, rmq_slice text) {
  *list = rmq_list_room(*list, cap, count, sizeof **list);
  (*list)[count] = text;
}

static void add_key(rmq_arguments *arguments, size_t count, rmq_slice key) {
  add_text(&arguments->keys, &arguments->keys_cap, count, key);
}

/* An item of the list at `index`, which is the message's `field`. */
static rmq_slice listed_text(lua_State *L, const rmq_arguments *arguments, int index,
                             const char *field, int i) {
  lua_rawgeti(L, index, i);
  if (lua_type(L, -1) != LUA_TSTRING) {
    char name[48];
    snprintf(name, sizeof name, "%s[%d]", field, i);
    wrong_field(L, arguments, name, "a string", -1);
  }
  rmq_slice text;
  text.ptr = lua_tolstring(L, -1, &text.len);
  lua_pop(L, 1);
  return text;
}

/* Brokers split KEYS at spaces, so a listed key with one would become two. */
static int check_listed_key(rmq_arguments *arguments, int i, rmq_slice key) {
  char sentence[192];
  if (key.len == 0) {
    snprintf(sentence, sizeof sentence, "keys[%d] is empty; leave it out", i);
  } else if (memchr(key.ptr, ' ', key.len)) {
    snprintf(sentence, sizeof sentence,
             "keys[%d] (\"%.*s\") has a space; RocketMQ separates keys with spaces", i,
             (int)(key.len < 64 ? key.len : 64), key.ptr);
  } else {
    return 0;
  }
  return refuse(arguments, RMQ_MESSAGE_ILLEGAL, sentence);
}

/* What is no item of the list would be lost without a word: {id = "1"} is no list of keys. */
static void check_is_list(lua_State *L, const rmq_arguments *arguments, int index,
                          const char *field, int n) {
  lua_pushnil(L);
  while (lua_next(L, index)) {
    lua_pop(L, 1);
    double at = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : 0;
    if (at >= 1 && at <= n && floor(at) == at) continue;
    const char *key = luaL_typename(L, -1);
    rmq_lua_raise(L, "%s must be a string or a list of strings, not a table with a %s as its key",
                  push_name(L, arguments, field), key);
  }
}

static int read_keys(lua_State *L, rmq_arguments *arguments, rmq_message *message) {
  int type = lua_type(L, RMQ_ARG_KEYS);
  if (type == LUA_TNIL) return 0;
  if (type != LUA_TTABLE) {
    rmq_slice key = read_message_text(L, arguments, RMQ_ARG_KEYS, "keys");
    add_key(arguments, 0, key);
    message->n_keys = key.len > 0;
  } else {
    size_t n = lua_objlen(L, RMQ_ARG_KEYS);
    check_is_list(L, arguments, RMQ_ARG_KEYS, "keys", (int)n);
    for (size_t i = 0; i < n; i++) {
      rmq_slice key = listed_text(L, arguments, RMQ_ARG_KEYS, "keys", (int)i + 1);
      if (check_listed_key(arguments, (int)i + 1, key) < 0) return RMQ_EINVAL;
      add_key(arguments, i, key);
    }
    message->n_keys = n;
  }
  message->keys = arguments->keys;
  return 0;
}

static int wrong_property(lua_State *L, const rmq_arguments *arguments) {
  const char *name = luaL_typename(L, -2), *value = luaL_typename(L, -1);
  if (lua_type(L, -2) != LUA_TSTRING) {
    return rmq_lua_raise(L, "the names in %s must be strings, not %s",
                         push_name(L, arguments, "properties"), name);
  }
  const char *field = lua_pushfstring(L, "properties.%s", lua_tostring(L, -2));
  return rmq_lua_raise(L, "%s must be a string, not %s; use tostring",
                       push_name(L, arguments, field), value);
}

static void read_properties(lua_State *L, rmq_arguments *arguments, rmq_message *message) {
  int type = lua_type(L, RMQ_ARG_PROPERTIES);
  if (type == LUA_TNIL) return;
  if (type != LUA_TTABLE) {
    wrong_field(L, arguments, "properties", "a table of strings", RMQ_ARG_PROPERTIES);
  }
  size_t n = 0;
  lua_pushnil(L);
  while (lua_next(L, RMQ_ARG_PROPERTIES)) {
    if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
      wrong_property(L, arguments);
    arguments->properties = rmq_list_room(arguments->properties, &arguments->properties_cap, n,
                                          sizeof *arguments->properties);
    rmq_field *field = &arguments->properties[n++];
    field->name.ptr = lua_tolstring(L, -2, &field->name.len);
    field->value.ptr = lua_tolstring(L, -1, &field->value.len);
    lua_pop(L, 1);
  }
  message->properties = arguments->properties;
  message->n_properties = n;
}

/* --- Numbers --- */

/* True when the number is whole and within the bounds; a NaN is not. */
static bool is_whole(double value, double min, double max) {
  return value >= min && value <= max && floor(value) == value;
}

static int read_flag(lua_State *L, rmq_arguments *arguments, rmq_message *message) {
  int type = lua_type(L, RMQ_ARG_FLAG);
  if (type == LUA_TNIL) return 0;
  if (type != LUA_TNUMBER) wrong_field(L, arguments, "flag", "a number", RMQ_ARG_FLAG);
  double value = lua_tonumber(L, RMQ_ARG_FLAG);
  if (!is_whole(value, INT32_MIN, INT32_MAX)) {
    char sentence[128];
    snprintf(sentence, sizeof sentence,
             "flag is %.17g; it must be a whole number from -2147483648 to 2147483647",
             rmq_shown(value));
    return refuse(arguments, RMQ_MESSAGE_ILLEGAL, sentence);
  }
  message->flag = (int32_t)value;
  return 0;
}

static void read_wait(lua_State *L, const rmq_arguments *arguments, rmq_message *message) {
  int type = lua_type(L, RMQ_ARG_WAIT);
  if (type == LUA_TBOOLEAN) {
    message->wait = lua_toboolean(L, RMQ_ARG_WAIT);
  } else if (type != LUA_TNIL) {
    wrong_field(L, arguments, "wait", "a boolean", RMQ_ARG_WAIT);
  }
}

int rmq_arguments_time(lua_State *L, rmq_arguments *arguments, int index, const char *name,
                       int64_t *out) {
  int type = lua_type(L, index);
  if (type == LUA_TNIL || type == LUA_TNONE) return 0;
  if (type != LUA_TNUMBER) wrong_type(L, name, "a number of milliseconds", index);
  double value = lua_tonumber(L, index);
  if (!(value > 0 && value <= (double)arguments->time->max)) {
    char sentence[160];
    snprintf(sentence, sizeof sentence,
             "%s is %.17g; it must be over 0 and at most %lld milliseconds", name, rmq_shown(value),
             (long long)arguments->time->max);
    return refuse(arguments, 0, sentence);
  }
  *out = (int64_t)ceil(value);
  return 0;
}

static int read_retries(lua_State *L, rmq_arguments *arguments, rmq_send_options *options) {
  int type = lua_type(L, RMQ_ARG_RETRIES);
  if (type == LUA_TNIL) return 0;
  if (type != LUA_TNUMBER) wrong_type(L, "option retries", "a number", RMQ_ARG_RETRIES);
  double value = lua_tonumber(L, RMQ_ARG_RETRIES);
  if (!is_whole(value, 0, (double)arguments->retries->max)) {
    char sentence[128];
    snprintf(sentence, sizeof sentence,
             "option retries is %.17g; it must be a whole number from 0 to %lld", rmq_shown(value),
             (long long)arguments->retries->max);
    return refuse(arguments, 0, sentence);
  }
  options->retries = (int)value;
  return 0;
}

/* --- What few messages have --- */

/* The field of the message on top of the stack; false, and nothing there, when it has none. */
static bool push_field(lua_State *L, const char *field) {
  lua_getfield(L, RMQ_ARG_MESSAGE, field);
  if (!lua_isnil(L, -1)) return true;
  lua_pop(L, 1);
  return false;
}

static int refuse_two_delays(rmq_arguments *arguments, const char *one, const char *other) {
  char sentence[160];
  snprintf(sentence, sizeof sentence,
           "%s and %s are both given; a message is delivered once, so leave one of them out", one,
           other);
  return refuse(arguments, RMQ_MESSAGE_ILLEGAL, sentence);
}

/* The time fields of a message, of which it may have one. */
static const struct {
  const char *field;
  rmq_delay_kind kind;
} delays[] = {{"delay_level", RMQ_DELAY_LEVEL},
              {"delay_ms", RMQ_DELAY_MS},
              {"delay_seconds", RMQ_DELAY_SECONDS},
              {"deliver_at", RMQ_DELAY_UNTIL}};

/* What cannot be an integer is refused here, what is out of the field's range by the producer. */
static int read_delay(lua_State *L, rmq_arguments *arguments, rmq_message *message) {
  const double most = 9007199254740991.0; /* above it not every whole number has a double */
  const char *given = NULL;
  for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++) {
    const char *field = delays[i].field;
    if (!push_field(L, field)) continue;
    if (lua_type(L, -1) != LUA_TNUMBER) wrong_field(L, arguments, field, "a number", -1);
    if (given) return refuse_two_delays(arguments, given, field);
    double value = lua_tonumber(L, -1);
    if (!is_whole(value, -most, most)) {
      char sentence[128];
      snprintf(sentence, sizeof sentence, "%s is %.17g; it must be a whole number%s", field,
               rmq_shown(value),
               floor(value) == value                 ? ", at most 9007199254740991"
               : delays[i].kind == RMQ_DELAY_SECONDS ? "; for parts of a second use delay_ms"
                                                     : "");
      return refuse(arguments, RMQ_MESSAGE_ILLEGAL, sentence);
    }
    given = field;
    message->delay_kind = delays[i].kind;
    message->delay = (int64_t)value;
    lua_pop(L, 1);
  }
  return 0;
}

/* Stays on the stack: what an __index gives is anchored nowhere else. */
static rmq_slice read_text_field(lua_State *L, const rmq_arguments *arguments, const char *field) {
  if (!push_field(L, field)) return (rmq_slice){NULL, 0};
  return read_message_text(L, arguments, lua_gettop(L), field);
}

static void read_light_queues(lua_State *L, rmq_arguments *arguments, rmq_message *message) {
  if (!push_field(L, "lmq")) return;
  int index = lua_gettop(L);
  size_t n = 0;
  if (lua_type(L, index) == LUA_TTABLE) {
    size_t count = lua_objlen(L, index);
    check_is_list(L, arguments, index, "lmq", (int)count);
    for (; n < count; n++) {
      rmq_slice name = listed_text(L, arguments, index, "lmq", (int)n + 1);
      add_text(&arguments->lmq, &arguments->lmq_cap, n, name);
    }
  } else {
    rmq_slice name = read_message_text(L, arguments, index, "lmq");
    add_text(&arguments->lmq, &arguments->lmq_cap, 0, name);
    n = 1;
  }
  message->lmq = arguments->lmq;
  message->n_lmq = n;
}

/* What few have; leaves values on the stack. */
static int read_more(lua_State *L, rmq_arguments *arguments, rmq_message *message) {
  if (!lua_toboolean(L, RMQ_ARG_MORE)) return 0;
  luaL_checkstack(L, 8 + RMQ_REPLY_VALUES, NULL);
  if (read_delay(L, arguments, message) < 0) return RMQ_EINVAL;
  message->sharding_key = read_text_field(L, arguments, "sharding_key");
  message->buyer_id = read_text_field(L, arguments, "buyer_id");
  read_light_queues(L, arguments, message);
  if (!push_field(L, "reply_to")) return 0;
  return rmq_lua_read_reply_to(L, arguments->reply_to, message, &arguments->refusal);
}

/* --- The queue --- */

static int refuse_queue_id(rmq_arguments *arguments, double value) {
  char sentence[128];
  snprintf(sentence, sizeof sentence,
           "the id of option queue is %.17g; queue ids are whole numbers from 0 on",
           rmq_shown(value));
  return refuse(arguments, 0, sentence);
}

/* A plain {broker=, id=, topic=}. The texts stay anchored in it. */
static int read_queue_table(lua_State *L, rmq_arguments *arguments, rmq_slice *topic,
                            rmq_send_options *options) {
  rmq_names_check(L, &queue_names, RMQ_ARG_QUEUE);
  lua_getfield(L, RMQ_ARG_QUEUE, "topic");
  *topic = read_text(L, lua_gettop(L), "topic of option queue");
  lua_getfield(L, RMQ_ARG_QUEUE, "broker");
  if (lua_type(L, -1) != LUA_TSTRING) wrong_type(L, "broker of option queue", "a string", -1);
  options->broker.ptr = lua_tolstring(L, -1, &options->broker.len);
  lua_getfield(L, RMQ_ARG_QUEUE, "id");
  if (lua_type(L, -1) != LUA_TNUMBER) wrong_type(L, "id of option queue", "a number", -1);
  double id = lua_tonumber(L, -1);
  lua_pop(L, 3);
  if (options->broker.len == 0) {
    return refuse(arguments, 0, "the broker of option queue is empty; it names no broker");
  }
  if (!is_whole(id, 0, INT32_MAX)) return refuse_queue_id(arguments, id);
  options->queue_id = (int32_t)id;
  return 0;
}

static int read_queue(lua_State *L, rmq_arguments *arguments, const rmq_message *message,
                      rmq_send_options *options) {
  int type = lua_type(L, RMQ_ARG_QUEUE);
  if (type == LUA_TNIL) return 0;
  rmq_slice topic = {NULL, 0};
  if (type == LUA_TTABLE) {
    if (read_queue_table(L, arguments, &topic, options) < 0) return RMQ_EINVAL;
  } else if (!rmq_lua_to_queue(L, RMQ_ARG_QUEUE, &topic, &options->broker, &options->queue_id)) {
    wrong_type(L, "option queue", "a queue or a table {broker=, id=}", RMQ_ARG_QUEUE);
  }
  if (topic.ptr && !rmq_slice_equal(topic, message->topic)) {
    char sentence[384];
    snprintf(sentence, sizeof sentence,
             "option queue belongs to topic \"%.*s\", the message to topic \"%.*s\"",
             (int)(topic.len < 128 ? topic.len : 128), topic.ptr,
             (int)(message->topic.len < 128 ? message->topic.len : 128),
             message->topic.ptr ? message->topic.ptr : "");
    return refuse(arguments, 0, sentence);
  }
  return 0;
}

/* --- All of it --- */

/* Looking for names at every message would cost more than the rest of reading it. */
static bool shall_look(rmq_arguments *arguments) {
  uint64_t n = arguments->sends++;
  return n < LOOK_AT_FIRST || n % LOOK_AT_EACH == 0 || arguments->always_look;
}

static void look_for_unknown_names(lua_State *L, rmq_arguments *arguments, bool has_options) {
  int top = lua_gettop(L);
  rmq_names names = message_names;
  if (arguments->member) names.where = lua_pushfstring(L, "messages[%d]", arguments->member);
  rmq_names_check(L, &names, RMQ_ARG_MESSAGE);
  lua_settop(L, top);
  if (has_options) rmq_names_check(L, &option_names, RMQ_ARG_OPTIONS);
}

/* Puts the function into the place of what stands for one. */
static void resolve_selector(lua_State *L) {
  int type = lua_type(L, RMQ_ARG_SELECTOR);
  if (type == LUA_TFUNCTION) return;
  /* A name stands for another function after each reload. */
  if (type == LUA_TSTRING && rmq_plugins_push_selector(L, RMQ_ARG_SELECTOR)) {
    lua_replace(L, RMQ_ARG_SELECTOR);
  } else if (!rmq_lua_check_selector(L, RMQ_ARG_SELECTOR, "option selector")) {
    rmq_lua_raise(L, "%s", lua_tostring(L, -1));
  }
}

static void check_selector(lua_State *L) {
  if (lua_isnil(L, RMQ_ARG_SELECTOR)) {
    if (lua_isnil(L, RMQ_ARG_SELECTOR_ARG)) return;
    rmq_lua_raise(L, "option arg is for the selector, and option selector is not given");
  }
  if (!lua_isnil(L, RMQ_ARG_QUEUE)) {
    rmq_lua_raise(L, "options queue and selector exclude each other; give one of them");
  }
  resolve_selector(L);
}

static int read_options(lua_State *L, rmq_arguments *arguments, const rmq_message *message,
                        rmq_send_options *options) {
  check_selector(L);
  if (rmq_arguments_time(L, arguments, RMQ_ARG_TIMEOUT, "option timeout", &options->timeout_ms) <
          0 ||
      rmq_arguments_time(L, arguments, RMQ_ARG_ATTEMPT_TIMEOUT, "option attempt_timeout",
                         &options->attempt_timeout_ms) < 0 ||
      read_retries(L, arguments, options) < 0) {
    return RMQ_EINVAL;
  }
  return read_queue(L, arguments, message, options);
}

/* An empty table is as good as none, as it is for keys. */
static rmq_slice read_tags(lua_State *L, const rmq_arguments *arguments) {
  if (lua_type(L, RMQ_ARG_TAGS) == LUA_TTABLE) {
    lua_pushnil(L);
    if (!lua_next(L, RMQ_ARG_TAGS)) return (rmq_slice){NULL, 0};
  }
  return read_message_text(L, arguments, RMQ_ARG_TAGS, "tags");
}

/* What many messages have besides topic and body. */
static int read_rest(lua_State *L, rmq_arguments *arguments, rmq_message *message) {
  message->tags = read_tags(L, arguments);
  read_properties(L, arguments, message);
  read_wait(L, arguments, message);
  if (read_keys(L, arguments, message) < 0) return RMQ_EINVAL;
  return read_flag(L, arguments, message);
}

static bool have_options(lua_State *L, int last) {
  return last >= RMQ_ARG_OPTIONS && !lua_isnil(L, RMQ_ARG_OPTIONS);
}

/* What the options say, or the producer's own selector, which may stand where there are none. */
static int read_how(lua_State *L, int last, rmq_arguments *arguments, const rmq_message *message,
                    rmq_send_options *options) {
  *options = no_options;
  if (have_options(L, last)) return read_options(L, arguments, message, options);
  if (rmq_arguments_have_selector(L, last)) resolve_selector(L);
  return 0;
}

int rmq_arguments_stand_in(lua_State *L, int last, int selector) {
  int above = lua_gettop(L) - last; /* a callback */
  if (last >= RMQ_ARG_SELECTOR_ARG) {
    if (!lua_isnil(L, RMQ_ARG_SELECTOR) || !lua_isnil(L, RMQ_ARG_QUEUE)) return last;
  } else {
    lua_settop(L, RMQ_ARG_SELECTOR_ARG + above);
    if (above) {
      lua_pushvalue(L, last + 1);
      lua_replace(L, RMQ_ARG_SELECTOR_ARG + 1);
      lua_pushnil(L);
      lua_replace(L, last + 1);
    }
    last = RMQ_ARG_SELECTOR_ARG;
  }
  lua_rawgeti(L, LUA_REGISTRYINDEX, selector);
  lua_replace(L, RMQ_ARG_SELECTOR);
  return last;
}

bool rmq_arguments_have_selector(lua_State *L, int last) {
  return last >= RMQ_ARG_SELECTOR && !lua_isnil(L, RMQ_ARG_SELECTOR);
}

/* Topic and body, which is mostly all there is. */
static void read_message(lua_State *L, const rmq_arguments *arguments, rmq_message *message) {
  *message = (rmq_message){.wait = true};
  message->body = read_message_text(L, arguments, RMQ_ARG_BODY, "body");
  message->topic = read_message_text(L, arguments, RMQ_ARG_TOPIC, "topic");
}

int rmq_arguments_read(lua_State *L, int last, rmq_arguments *arguments, rmq_message *message,
                       rmq_send_options *options) {
  bool has_rest = last >= RMQ_ARG_TAGS;
  arguments->member = 0;
  if (shall_look(arguments)) look_for_unknown_names(L, arguments, have_options(L, last));
  read_message(L, arguments, message);
  if (has_rest && read_rest(L, arguments, message) < 0) return RMQ_EINVAL;
  if (read_how(L, last, arguments, message, options) < 0) return RMQ_EINVAL;
  return has_rest ? read_more(L, arguments, message) : 0;
}

int rmq_arguments_read_member(lua_State *L, int number, rmq_arguments *arguments,
                              rmq_message *message) {
  arguments->member = number;
  if (shall_look(arguments)) look_for_unknown_names(L, arguments, false);
  read_message(L, arguments, message);
  int status = read_rest(L, arguments, message);
  if (status == 0) status = read_more(L, arguments, message);
  if (status < 0) rmq_failure_prefix(&arguments->refusal, "messages[%d]: ", number);
  return status;
}

int rmq_arguments_read_batch(lua_State *L, int last, rmq_arguments *arguments, rmq_slice topic,
                             rmq_send_options *options) {
  rmq_message message = {.topic = topic};
  if (have_options(L, last) && shall_look(arguments)) {
    rmq_names_check(L, &batch_option_names, RMQ_ARG_OPTIONS);
  }
  return read_how(L, last, arguments, &message, options);
}
