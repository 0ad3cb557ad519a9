#ifndef RMQ_PRODUCER_SETTINGS_H
#define RMQ_PRODUCER_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* Every setting of a producer is one row of one table, and nothing else defines one: the script
 * room reads it to check what a script gives, --help and the documentation are made from it. */

typedef struct rmq_settings {
  char *group;
  char *namesrv;
  char *address_map; /* see wire/address_map.h; NULL: none */
  char *instance_name;
  char *client_ip;
  char *create_topic_key;
  int64_t default_topic_queue_nums;
  int64_t send_msg_timeout;
  int64_t attempt_timeout; /* 0: decided from what is left */
  int64_t attempt_floor;
  int64_t retry_times_when_send_failed;
  int64_t retry_times_when_send_async_failed;
  char *retry_response_codes; /* numbers with one blank between them */
  char *selector; /* a name, which the script room knows; NULL: none, or a function of a script */
  int64_t compress_msg_body_over_howmuch;
  int64_t compress_level;
  char *compress_type;
  int64_t max_message_size;
  int64_t max_inflight;
  int64_t max_inflight_bytes;
  int64_t batch_max_delay;
  int64_t batch_max_bytes;
  int64_t batch_total_bytes;
  int64_t flush_timeout;
  int64_t connect_timeout;
  int64_t poll_name_server_interval;
  int64_t heartbeat_broker_interval;
  int64_t mq_client_api_timeout; /* one question to one name server */
  int64_t channel_max_idle_time;
  char *serialize;              /* "rocketmq" or "json" */
  char *latency_fault;          /* "false", "true" or "5.x" */
  char *latency_max;            /* numbers, or NULL: the strategy's own */
  char *not_available_duration; /* likewise */
  int64_t detect_interval;
  int64_t detect_timeout;
  char *trace_topic;
  int64_t trace_msg_batch_num;
  int64_t trace_flush_interval;
  int64_t check_concurrency;
  int64_t check_request_hold_max;
  /* Together, for they are small. */
  bool auto_create_topic; /* ask for the default topic's route when a topic has none */
  bool retry_another_broker_when_not_store_ok;
  bool auto_batch;
  bool unit_mode;
  bool start_detector_enable;
  bool enable_trace;
  int64_t seed; /* of all that happens by chance; 0: chance itself */
} rmq_settings;

typedef enum rmq_setting_type {
  RMQ_SETTING_TEXT,
  RMQ_SETTING_NUMBERS, /* a text of whole numbers, "1 2 14"; scripts give a list of them */
  RMQ_SETTING_INTEGER,
  RMQ_SETTING_BOOLEAN
} rmq_setting_type;

typedef struct rmq_setting {
  const char *name;  /* RocketMQ's name in Lua's spelling */
  const char *alias; /* a short form of ours ("retries"), or NULL */
  const char *java;  /* the setting's name in the Java client, or NULL when Java has none */
  rmq_setting_type type;
  const char *unit; /* "ms", "bytes", "" */
  int64_t min, max; /* RMQ_SETTING_INTEGER; RMQ_SETTING_NUMBERS: of each */
  const char
      *initial; /* the default, spelled; NULL: none, the setting must be given or is worked out */
  const char *choices; /* RMQ_SETTING_TEXT: "rocketmq json", or NULL for any text. Where they hold
                          "true" and "false", a boolean may be given as well */
  const char *help;    /* one sentence */
  size_t offset;       /* in rmq_settings */
} rmq_setting;

/* The table, ended by a row whose name is NULL. */
extern const rmq_setting rmq_setting_table[];

/* The row with this name, alias, or Java name; NULL when there is none. */
const rmq_setting *rmq_setting_find(rmq_slice name);
/* The name in the table that looks most like a wrong one, or NULL when none is near. */
const char *rmq_setting_nearest(rmq_slice name);

/* All defaults. */
void rmq_settings_init(rmq_settings *settings);
void rmq_settings_free(rmq_settings *settings);
/* A copy with texts of its own. `to` is overwritten, not released. */
void rmq_settings_copy(rmq_settings *to, const rmq_settings *from);

/* True for a setting that takes true and false: a boolean, or a text with these choices. */
bool rmq_setting_takes_boolean(const rmq_setting *row);

/* Sets one. 0, or RMQ_EINVAL and a sentence in `why` that names the setting and what would be
 * right. Texts and numbers are set as texts; between numbers blanks or commas may stand. */
int rmq_settings_set_text(rmq_settings *settings, const rmq_setting *row, rmq_slice value,
                          char *why, size_t why_size);
int rmq_settings_set_integer(rmq_settings *settings, const rmq_setting *row, double value,
                             char *why, size_t why_size);
int rmq_settings_set_boolean(rmq_settings *settings, const rmq_setting *row, bool value, char *why,
                             size_t why_size);

/* Checks what only can be checked together (group, name server list, address map, the tables of latency_fault, the level of the compression). 0 or RMQ_EINVAL and a
 * sentence. */
int rmq_settings_check(const rmq_settings *settings, char *why, size_t why_size);

#endif
