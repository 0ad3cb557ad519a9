#include "producer/message_fields.h"

#include <stdio.h>

#include "base/error.h"
#include "producer/message.h"
#include "wire/codes.h"
#include "wire/number.h"
#include "wire/properties.h"

static int refuse(rmq_failure *why, const char *sentence) {
  rmq_failure_set(why, RMQ_KIND_MESSAGE, RMQ_MESSAGE_ILLEGAL, "%s", sentence);
  return RMQ_EINVAL;
}

static bool has_property(const rmq_message *message, const char *name) {
  for (size_t i = 0; i < message->n_properties; i++) {
    if (rmq_slice_is(message->properties[i].name, name)) return true;
  }
  return false;
}

/* Of two properties with one name a reader would take either. */
static int refuse_both(const char *field, const char *property, rmq_failure *why) {
  rmq_failure_set(why, RMQ_KIND_MESSAGE, 0,
                  "%s and properties[\"%s\"] are the same thing, and both are given; leave the "
                  "property out",
                  field, property);
  return RMQ_EINVAL;
}

/* ---- Delays ---- */

/* The kinds by their numbers: the field of a message in a script, its property, and its range. */
static const struct {
  const char *field, *property;
  int64_t min, max;
} delays[] = {
    [RMQ_DELAY_LEVEL] = {"delay_level", "DELAY", 1, RMQ_DELAY_LEVEL_MAX},
    [RMQ_DELAY_MS] = {"delay_ms", "TIMER_DELAY_MS", 0, (int64_t)RMQ_DELAY_SECONDS_MAX * 1000},
    [RMQ_DELAY_SECONDS] = {"delay_seconds", "TIMER_DELAY_SEC", 0, RMQ_DELAY_SECONDS_MAX},
    [RMQ_DELAY_UNTIL] = {"deliver_at", "TIMER_DELIVER_MS", RMQ_DELIVER_AT_MIN, RMQ_DELIVER_AT_MAX},
};

static const char *remedy(const rmq_message *message) {
  if (message->delay_kind == RMQ_DELAY_UNTIL) {
    return "it is milliseconds since 1970, as os.time() * 1000 is";
  }
  if (message->delay_kind == RMQ_DELAY_LEVEL) return "for other times use delay_ms or deliver_at";
  return "leave it out for delivery at once; brokers take at most 3 days when their "
         "timerMaxDelaySec "
         "says nothing else";
}

static int put_delay(const rmq_message *message, rmq_buf *out, rmq_failure *why) {
  int64_t min = delays[message->delay_kind].min, max = delays[message->delay_kind].max;
  if (message->delay < min || message->delay > max) {
    rmq_failure_set(why, RMQ_KIND_MESSAGE, RMQ_MESSAGE_ILLEGAL,
                    "%s is %lld; it must be from %lld to %lld: %s",
                    delays[message->delay_kind].field, (long long)message->delay, (long long)min,
                    (long long)max, remedy(message));
    return RMQ_EINVAL;
  }
  char digits[RMQ_NUMBER_MAX];
  size_t len = rmq_number_write(digits, message->delay);
  return rmq_properties_put(out, rmq_slice_text(delays[message->delay_kind].property),
                            rmq_slice_make(digits, len));
}

/* ---- Texts ---- */

static int put_text(const rmq_message *message, const char *field, const char *property,
                    rmq_slice text, rmq_buf *out, rmq_failure *why) {
  if (text.len == 0) return 0;
  if (rmq_message_check_text(field, text, why) < 0) return RMQ_EINVAL;
  if (has_property(message, property)) return refuse_both(field, property, why);
  return rmq_properties_put(out, rmq_slice_text(property), text);
}

/* ---- Light queues ---- */

static const char lmq_prefix[] = "%LMQ%";
static const char light_queues[] = "INNER_MULTI_DISPATCH";
enum { LMQ_PREFIX_LEN = sizeof lmq_prefix - 1, LMQ_NAME_MAX = 255 };

static bool has_prefix(rmq_slice name) {
  return name.len >= LMQ_PREFIX_LEN && memcmp(name.ptr, lmq_prefix, LMQ_PREFIX_LEN) == 0;
}

/* A broker keeps a light queue in a folder of its name, and the list of them is a text with commas. */
static int check_light_queue(rmq_slice name, size_t i, rmq_failure *why) {
  char field[32];
  snprintf(field, sizeof field, "lmq[%zu]", i + 1);
  size_t prefix = has_prefix(name) ? LMQ_PREFIX_LEN : 0;
  if (name.len == prefix) {
    rmq_failure_set(why, RMQ_KIND_MESSAGE, RMQ_MESSAGE_ILLEGAL,
                    "%s is empty; a light queue must have a name", field);
    return RMQ_EINVAL;
  }
  if (name.len - prefix + LMQ_PREFIX_LEN > LMQ_NAME_MAX) {
    rmq_failure_set(why, RMQ_KIND_MESSAGE, RMQ_MESSAGE_ILLEGAL,
                    "%s is %zu bytes long; a light queue's name has at most %d with its %s", field,
                    name.len, LMQ_NAME_MAX, lmq_prefix);
    return RMQ_EINVAL;
  }
  for (size_t at = 0; at < name.len; at++) {
    unsigned char c = (unsigned char)name.ptr[at];
    if (c > ' ' && c != ',' && c != '/' && c != 127) continue;
    char shown[16];
    snprintf(shown, sizeof shown, c == ',' || c == '/' ? "'%c'" : "byte %d", c);
    rmq_failure_set(why, RMQ_KIND_MESSAGE, RMQ_MESSAGE_ILLEGAL,
                    "%s has %s at position %zu; a light queue's name has no commas, slashes, "
                    "blanks or control characters",
                    field, shown, at + 1);
    return RMQ_EINVAL;
  }
  return rmq_message_check_text(field, name, why);
}

static int put_light_queues(const rmq_message *message, rmq_buf *out, rmq_failure *why) {
  if (has_property(message, light_queues)) return refuse_both("lmq", light_queues, why);
  rmq_buf_text(out, light_queues);
  for (size_t i = 0; i < message->n_lmq; i++) {
    rmq_slice name = message->lmq[i];
    if (check_light_queue(name, i, why) < 0) return RMQ_EINVAL;
    rmq_buf_u8(out, i == 0 ? 1 : ',');
    if (!has_prefix(name)) rmq_buf_text(out, lmq_prefix);
    rmq_buf_bytes(out, name.ptr, name.len);
  }
  rmq_buf_u8(out, 2);
  return 0;
}

int rmq_message_put_fields(const rmq_message *message, rmq_buf *out, rmq_failure *why) {
  if (message->delay_kind != RMQ_DELAY_NONE && put_delay(message, out, why) < 0) return RMQ_EINVAL;
  if (put_text(message, "sharding_key", "__SHARDINGKEY", message->sharding_key, out, why) < 0 ||
      put_text(message, "buyer_id", "BUYER_ID", message->buyer_id, out, why) < 0) {
    return RMQ_EINVAL;
  }
  return message->n_lmq > 0 ? put_light_queues(message, out, why) : 0;
}

/* ---- %RETRY% topics ---- */

static const char reconsume_time[] = "RECONSUME_TIME";
static const char max_reconsume_times[] = "MAX_RECONSUME_TIMES";

static bool goes_to_retry_topic(const rmq_message *message) {
  static const char prefix[] = "%RETRY%";
  return message->topic.len > sizeof prefix - 1 &&
         memcmp(message->topic.ptr, prefix, sizeof prefix - 1) == 0;
}

bool rmq_message_is_retry_count(const rmq_message *message, rmq_slice name) {
  if (!goes_to_retry_topic(message)) return false;
  return rmq_slice_is(name, reconsume_time) || rmq_slice_is(name, max_reconsume_times);
}

static int read_count(const char *name, rmq_slice value, int32_t *out, rmq_failure *why) {
  if (rmq_number_i32(value, out) == 0 && *out >= 0) return 0;
  char sentence[160];
  snprintf(sentence, sizeof sentence,
           "properties[\"%s\"] is \"%.*s\"; it must be a whole number from 0 to 2147483647", name,
           (int)(value.len < 32 ? value.len : 32), value.len ? value.ptr : "");
  return refuse(why, sentence);
}

int rmq_message_retry_counts(const rmq_message *message, int32_t *reconsumed, int32_t *max,
                             rmq_failure *why) {
  *reconsumed = 0;
  *max = -1;
  if (!goes_to_retry_topic(message)) return 0;
  for (size_t i = 0; i < message->n_properties; i++) {
    const rmq_field *property = &message->properties[i];
    int status = 0;
    if (rmq_slice_is(property->name, reconsume_time)) {
      status = read_count(reconsume_time, property->value, reconsumed, why);
    } else if (rmq_slice_is(property->name, max_reconsume_times)) {
      status = read_count(max_reconsume_times, property->value, max, why);
    }
    if (status < 0) return status;
  }
  return 0;
}

bool rmq_message_is_for_light_queues(const rmq_message *message) {
  return message->n_lmq > 0 || has_property(message, light_queues);
}

/* ---- Batches ---- */

const char *rmq_message_own_kind(const rmq_message *message) {
  static const char *const properties[] = {"TRAN_MSG", "PGROUP", "CORRELATION_ID", "MSG_TYPE"};
  if (message->delay_kind != RMQ_DELAY_NONE) return "it has a delay";
  if (rmq_message_is_for_light_queues(message)) return "it is for light queues";
  if (goes_to_retry_topic(message)) return "it goes to a %RETRY% topic";
  for (size_t i = 0; i < message->n_system; i++) {
    for (size_t k = 0; k < sizeof properties / sizeof properties[0]; k++) {
      if (!rmq_slice_is(message->system[i].name, properties[k])) continue;
      return "it is part of a transaction, a request or a reply";
    }
  }
  return message->sys_flag != 0 ? "it has a system flag" : NULL;
}
