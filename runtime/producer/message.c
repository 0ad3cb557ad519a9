#include "producer/message.h"

#include <stdio.h>

#include "base/error.h"
#include "base/utf8.h"
#include "producer/message_fields.h"
#include "producer/names.h"
#include "wire/codes.h"
#include "wire/properties.h"

/* How much of a user's name goes into a sentence. */
enum { SHOWN = 128 };

static int shown(rmq_slice text) { return (int)(text.len < SHOWN ? text.len : SHOWN); }

static int refuse_topic(rmq_failure *why, const char *sentence) {
  rmq_failure_set(why, RMQ_KIND_MESSAGE, 0, "%s", sentence);
  return RMQ_EINVAL;
}

int rmq_topic_check(rmq_slice topic, rmq_failure *why) {
  char sentence[256];
  if (rmq_name_check("topic", topic, RMQ_TOPIC_LENGTH_MAX, sentence, sizeof sentence) < 0) {
    return refuse_topic(why, sentence);
  }
  if (rmq_topic_is_forbidden(topic)) {
    snprintf(sentence, sizeof sentence,
             "topic \"%.*s\" belongs to the broker itself; nobody may send to it", (int)topic.len,
             topic.ptr);
    return refuse_topic(why, sentence);
  }
  return 0;
}

int rmq_body_check(const rmq_settings *settings, rmq_slice body, rmq_failure *why) {
  if (body.len == 0) {
    rmq_failure_set(why, RMQ_KIND_MESSAGE, RMQ_MESSAGE_ILLEGAL,
                    "body is empty; RocketMQ takes no empty messages");
    return RMQ_EINVAL;
  }
  if (body.len > (size_t)settings->max_message_size) {
    rmq_failure_set(why, RMQ_KIND_MESSAGE, RMQ_MESSAGE_ILLEGAL,
                    "body is %zu bytes long; max_message_size allows %lld", body.len,
                    (long long)settings->max_message_size);
    return RMQ_EINVAL;
  }
  if (body.len > (size_t)settings->max_inflight_bytes) {
    rmq_failure_set(why, RMQ_KIND_OVERLOAD, 0,
                    "body is %zu bytes long; max_inflight_bytes allows %lld under way in all",
                    body.len, (long long)settings->max_inflight_bytes);
    return RMQ_EOVERLOAD;
  }
  return 0;
}

/* ---- Why a text cannot be a property ---- */

static int refuse_empty(const char *field, rmq_failure *why) {
  rmq_failure_set(why, RMQ_KIND_MESSAGE, 0,
                  "%s is empty; consumers would not see it, so leave it out", field);
  return RMQ_EINVAL;
}

/* Refuses bytes 1 and 2, which end names and values in the property string, and what is not
 * UTF-8. */
int rmq_message_check_text(const char *field, rmq_slice text, rmq_failure *why) {
  for (size_t i = 0; i < text.len; i++) {
    if (text.ptr[i] != 1 && text.ptr[i] != 2) continue;
    rmq_failure_set(
        why, RMQ_KIND_MESSAGE, 0,
        "%s has byte %d at position %zu; RocketMQ separates properties with bytes 1 and 2", field,
        text.ptr[i], i + 1);
    return RMQ_EINVAL;
  }
  size_t invalid = rmq_utf8_invalid_at(text);
  if (invalid == text.len) return 0;
  rmq_failure_set(why, RMQ_KIND_MESSAGE, 0,
                  "%s is not valid UTF-8 at position %zu; put binary data into the body", field,
                  invalid + 1);
  return RMQ_EINVAL;
}

/* A property that the system reserves: the field of a message that sets it, or what else there is to say. */
typedef struct reserved {
  const char *name, *field, *other;
} reserved;

static const reserved *find_reserved(rmq_slice name) {
  static const reserved all[] = {
      {"KEYS", "keys", NULL},
      {"TAGS", "tags", NULL},
      {"WAIT", "wait", NULL},
      {"DELAY", "delay_level", NULL},
      {"TIMER_DELAY_MS", "delay_ms", NULL},
      {"TIMER_DELAY_SEC", "delay_seconds", NULL},
      {"TIMER_DELIVER_MS", "deliver_at", NULL},
      {"BUYER_ID", "buyer_id", NULL},
      {"UNIQ_KEY", NULL, "each message gets an id of its own, result.msg_id"},
      {"RECONSUME_TIME", NULL, "only messages to a %RETRY% topic may have it"},
      {"MAX_RECONSUME_TIMES", NULL, "only messages to a %RETRY% topic may have it"}};
  static const reserved any = {"", NULL, "choose another name"};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    if (rmq_slice_is(name, all[i].name)) return &all[i];
  }
  return &any;
}

/* `may_set`: whoever has given it may set the message's fields; a hook sets keys and tags only. */
static int refuse_reserved(rmq_slice name, bool may_set, rmq_failure *why) {
  const reserved *found = find_reserved(name);
  char rest[96];
  if (!found->field) {
    snprintf(rest, sizeof rest, "; %s", found->other);
  } else if (may_set) {
    snprintf(rest, sizeof rest, "; set the message's %s instead", found->field);
  } else {
    snprintf(rest, sizeof rest, ", and a hook cannot set it; set %s where the message is sent",
             found->field);
  }
  rmq_failure_set(why, RMQ_KIND_MESSAGE, 0, "the property name %.*s is used by RocketMQ itself%s",
                  shown(name), name.ptr, rest);
  return RMQ_EINVAL;
}

/* Says what is wrong with a property that could not be put, or that made the string invalid UTF-8.
 * 0 when this one is not to blame. */
static int diagnose_property(const rmq_field *property, rmq_failure *why) {
  if (property->name.len == 0) {
    rmq_failure_set(why, RMQ_KIND_MESSAGE, 0, "properties has an empty name");
    return RMQ_EINVAL;
  }
  if (rmq_message_check_text("a name in properties", property->name, why) < 0) return RMQ_EINVAL;
  char field[SHOWN + 32];
  snprintf(field, sizeof field, "properties[\"%.*s\"]", shown(property->name), property->name.ptr);
  if (property->value.len == 0) return refuse_empty(field, why);
  return rmq_message_check_text(field, property->value, why);
}

static void key_field(const rmq_message *message, size_t i, char *out, size_t size) {
  if (message->n_keys > 1) {
    snprintf(out, size, "keys[%zu]", i + 1);
  } else {
    snprintf(out, size, "keys");
  }
}

static int diagnose(const rmq_message *message, rmq_failure *why) {
  if (rmq_message_check_text("tags", message->tags, why) < 0) return RMQ_EINVAL;
  for (size_t i = 0; i < message->n_keys; i++) {
    char field[40];
    key_field(message, i, field, sizeof field);
    if (rmq_message_check_text(field, message->keys[i], why) < 0) return RMQ_EINVAL;
  }
  for (size_t i = 0; i < message->n_properties; i++) {
    if (diagnose_property(&message->properties[i], why) < 0) return RMQ_EINVAL;
  }
  return 0;
}

/* ---- The property string ---- */

static int put_user_properties(const rmq_message *message, rmq_buf *out, rmq_failure *why) {
  for (size_t i = 0; i < message->n_properties; i++) {
    const rmq_field *property = &message->properties[i];
    if (rmq_property_is_reserved(property->name)) {
      if (rmq_message_is_retry_count(message, property->name)) continue;
      return refuse_reserved(property->name, true, why);
    }
    if (rmq_properties_put(out, property->name, property->value) < 0) {
      return diagnose_property(property, why);
    }
  }
  return 0;
}

/* One key of several: brokers split KEYS at spaces, so a key with a space would become two. */
static int check_listed_key(const rmq_message *message, size_t i, rmq_failure *why) {
  rmq_slice key = message->keys[i];
  char field[40];
  key_field(message, i, field, sizeof field);
  if (key.len == 0) return refuse_empty(field, why);
  if (memchr(key.ptr, ' ', key.len)) {
    rmq_failure_set(why, RMQ_KIND_MESSAGE, 0,
                    "%s (\"%.*s\") has a space; RocketMQ separates keys with spaces", field,
                    shown(key), key.ptr);
    return RMQ_EINVAL;
  }
  return 0;
}

static int put_keys(const rmq_message *message, rmq_buf *out, rmq_failure *why) {
  rmq_buf_text(out, "KEYS\001");
  for (size_t i = 0; i < message->n_keys; i++) {
    rmq_slice key = message->keys[i];
    if (message->n_keys > 1 && check_listed_key(message, i, why) < 0) return RMQ_EINVAL;
    if (memchr(key.ptr, 1, key.len) || memchr(key.ptr, 2, key.len)) return diagnose(message, why);
    if (i > 0) rmq_buf_u8(out, ' ');
    rmq_buf_bytes(out, key.ptr, key.len);
  }
  rmq_buf_u8(out, 2);
  return 0;
}

/* Their writer answers for them: they are ASCII, and without bytes 1 and 2. */
static void put_system(const rmq_message *message, rmq_buf *out) {
  for (size_t i = 0; i < message->n_system; i++) {
    rmq_properties_put(out, message->system[i].name, message->system[i].value);
  }
}

/* What every message has, and nothing can be wrong with. */
static void put_our_own(bool wait, rmq_slice msg_id, rmq_buf *out) {
  static const char with_wait[] = "WAIT\001true\002UNIQ_KEY\001";
  static const char without[] = "WAIT\001false\002UNIQ_KEY\001";
  if (wait) {
    rmq_buf_bytes(out, with_wait, sizeof with_wait - 1);
  } else {
    rmq_buf_bytes(out, without, sizeof without - 1);
  }
  rmq_buf_bytes(out, msg_id.ptr, msg_id.len);
  rmq_buf_u8(out, 2);
}

static int put_given(const rmq_message *message, rmq_buf *out, rmq_failure *why) {
  rmq_buf_clear(out);
  if (put_user_properties(message, out, why) < 0) return RMQ_EINVAL;
  bool has_keys = message->n_keys > 1 || (message->n_keys == 1 && message->keys[0].len > 0);
  if (has_keys && put_keys(message, out, why) < 0) return RMQ_EINVAL;
  if (message->tags.len > 0 && rmq_properties_put(out, rmq_slice_text("TAGS"), message->tags) < 0) {
    return diagnose(message, why);
  }
  return rmq_message_put_fields(message, out, why);
}

/* `given_len`: how much of it a user has written. */
static int check_all(const rmq_message *message, size_t given_len, const rmq_buf *out,
                     rmq_failure *why) {
  rmq_slice all = rmq_buf_slice(out);
  if (all.len > RMQ_PROPERTIES_MAX) {
    rmq_failure_set(why, RMQ_KIND_MESSAGE, RMQ_MESSAGE_ILLEGAL,
                    "properties, keys and tags take %zu bytes together; RocketMQ stores at most %d",
                    all.len, RMQ_PROPERTIES_MAX);
    return RMQ_EINVAL;
  }
  /* The separators are ASCII, so the whole is valid exactly when each part is. */
  rmq_slice given = rmq_slice_make(all.ptr, given_len);
  if (rmq_utf8_invalid_at(given) < given.len) return diagnose(message, why);
  return 0;
}

/* True for most messages: a topic and a body, and nothing that could be wrong. */
static bool gives_nothing(const rmq_message *message) {
  size_t texts = message->tags.len | message->sharding_key.len | message->buyer_id.len;
  size_t lists = message->n_keys | message->n_properties | message->n_lmq | message->n_system;
  return (texts | lists | (size_t)message->delay_kind) == 0;
}

int rmq_message_properties(const rmq_message *message, rmq_slice msg_id, rmq_buf *out,
                           rmq_failure *why) {
  if (gives_nothing(message)) {
    rmq_buf_clear(out);
    put_our_own(message->wait, msg_id, out);
    return 0;
  }
  if (put_given(message, out, why) < 0) return RMQ_EINVAL;
  size_t given_len = rmq_buf_len(out);
  put_system(message, out);
  put_our_own(message->wait, msg_id, out);
  return check_all(message, given_len, out, why);
}

bool rmq_message_is_users(rmq_slice name) {
  return !rmq_property_is_reserved(name) && !rmq_slice_is(name, "__SHARDINGKEY") &&
         !rmq_slice_is(name, "INNER_MULTI_DISPATCH");
}

static bool has_property(const rmq_message *message, rmq_slice name) {
  for (size_t i = 0; i < message->n_properties; i++) {
    if (rmq_slice_equal(message->properties[i].name, name)) return true;
  }
  return false;
}

static int check_names_of_hook(const rmq_message *users, rmq_failure *why) {
  if (has_property(users, rmq_slice_text("INNER_MULTI_DISPATCH"))) {
    rmq_failure_set(why, RMQ_KIND_MESSAGE, 0,
                    "a hook cannot give a message light queues, because transactions and batches "
                    "must not have any; set lmq where the message is sent");
    return RMQ_EINVAL;
  }
  for (size_t i = 0; i < users->n_properties; i++) {
    rmq_slice name = users->properties[i].name;
    bool may_set = rmq_slice_is(name, "KEYS") || rmq_slice_is(name, "TAGS");
    if (rmq_property_is_reserved(name)) return refuse_reserved(name, may_set, why);
  }
  return 0;
}

int rmq_message_properties_again(const rmq_message *users, rmq_slice original, rmq_buf *out,
                                 rmq_failure *why) {
  if (check_names_of_hook(users, why) < 0) return RMQ_EINVAL;
  if (put_given(users, out, why) < 0) return RMQ_EINVAL;
  size_t given_len = rmq_buf_len(out);
  rmq_field field;
  while (rmq_properties_next(&original, &field)) {
    bool theirs = rmq_slice_is(field.name, "KEYS") || rmq_slice_is(field.name, "TAGS");
    if (theirs || rmq_message_is_users(field.name) || has_property(users, field.name)) continue;
    rmq_properties_put(out, field.name, field.value);
  }
  return check_all(users, given_len, out, why);
}
