/* The table of settings, and what may be set. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "check.h"
#include "producer/settings.h"

static rmq_settings settings;
static char why[256];

static const rmq_setting *row(const char *name) { return rmq_setting_find(rmq_slice_text(name)); }

static int set_text(const char *name, const char *value) {
  return rmq_settings_set_text(&settings, row(name), rmq_slice_text(value), why, sizeof why);
}

static int set_integer(const char *name, double value) {
  return rmq_settings_set_integer(&settings, row(name), value, why, sizeof why);
}

static void begin(void) {
  rmq_settings_init(&settings);
  why[0] = '\0';
}

static void defaults_are_java_s(void) {
  begin();
  CHECK(settings.group == NULL && settings.namesrv == NULL);
  CHECK(strcmp(settings.create_topic_key, "TBW102") == 0);
  CHECK_INT(settings.default_topic_queue_nums, 4);
  CHECK_INT(settings.send_msg_timeout, 3000);
  CHECK_INT(settings.retry_times_when_send_failed, 2);
  CHECK_INT(settings.max_message_size, 4194304);
  CHECK_INT(settings.max_inflight, 16384);
  CHECK_INT(settings.max_inflight_bytes, 64 * 1024 * 1024);
  CHECK_INT(settings.poll_name_server_interval, 30000);
  CHECK_INT(settings.heartbeat_broker_interval, 30000);
  CHECK(settings.auto_create_topic && !settings.unit_mode);
  CHECK(!settings.retry_another_broker_when_not_store_ok);
  CHECK(strcmp(settings.serialize, "rocketmq") == 0);
  CHECK(strcmp(settings.latency_fault, "false") == 0 && !settings.start_detector_enable);
  CHECK(settings.latency_max == NULL && settings.not_available_duration == NULL);
  CHECK_INT(settings.detect_interval, 2000);
  CHECK_INT(settings.detect_timeout, 200);
  rmq_settings_free(&settings);
}

/* Each row's default must be one that could be set. */
static void every_row_is_sound(void) {
  begin();
  for (const rmq_setting *at = rmq_setting_table; at->name; at++) {
    CHECK(at->help && at->help[strlen(at->help) - 1] == '.');
    CHECK(rmq_setting_find(rmq_slice_text(at->name)) == at);
    if (at->alias) CHECK(rmq_setting_find(rmq_slice_text(at->alias)) == at);
    if (at->java) CHECK(rmq_setting_find(rmq_slice_text(at->java)) == at);
    if (at->type == RMQ_SETTING_INTEGER) {
      double value = strtod(at->initial, NULL);
      CHECK_INT(rmq_settings_set_integer(&settings, at, value, why, sizeof why), 0);
    } else if (at->type == RMQ_SETTING_TEXT && at->initial) {
      CHECK_INT(rmq_settings_set_text(&settings, at, rmq_slice_text(at->initial), why, sizeof why),
                0);
    }
  }
  rmq_settings_free(&settings);
}

static void names_and_near_names(void) {
  CHECK(row("retries") == row("retryTimesWhenSendFailed"));
  CHECK(row("no_such") == NULL);
  CHECK(strcmp(rmq_setting_nearest(rmq_slice_text("timout")), "timeout") == 0);
  CHECK(strcmp(rmq_setting_nearest(rmq_slice_text("gruop")), "group") == 0);
  CHECK(strcmp(rmq_setting_nearest(rmq_slice_text("NameSrv")), "namesrv") == 0);
  CHECK(strcmp(rmq_setting_nearest(rmq_slice_text("max_inflght_bytes")), "max_inflight_bytes") ==
        0);
  CHECK(rmq_setting_nearest(rmq_slice_text("zzzzzzzz")) == NULL);
  CHECK(rmq_setting_nearest(rmq_slice_text("")) == NULL);
  char longer[4096];
  memset(longer, 'a', sizeof longer);
  CHECK(rmq_setting_nearest(rmq_slice_make(longer, sizeof longer)) == NULL);
}

static void numbers_are_checked(void) {
  begin();
  CHECK_INT(set_integer("retries", 0), 0);
  CHECK_INT(settings.retry_times_when_send_failed, 0);
  CHECK_INT(set_integer("retries", -1), RMQ_EINVAL);
  CHECK(strstr(why, "retry_times_when_send_failed") && strstr(why, "0 to 100"));
  CHECK_INT(set_integer("retries", 1.5), RMQ_EINVAL);
  CHECK_INT(set_integer("retries", NAN), RMQ_EINVAL);
  CHECK_INT(set_integer("retries", HUGE_VAL), RMQ_EINVAL);
  CHECK_INT(set_integer("timeout", 0), RMQ_EINVAL);
  CHECK(strstr(why, "ms"));
  CHECK_INT(set_integer("timeout", 1e300), RMQ_EINVAL);
  CHECK_INT(set_integer("group", 1), RMQ_EINVAL);
  CHECK(strstr(why, "group must be a string"));
  CHECK_INT(settings.retry_times_when_send_failed, 0);
  CHECK_INT(settings.send_msg_timeout, 3000);
  rmq_settings_free(&settings);
}

static void texts_are_checked(void) {
  begin();
  CHECK_INT(set_text("serialize", "json"), 0);
  CHECK_INT(set_text("serialize", "xml"), RMQ_EINVAL);
  CHECK(strstr(why, "rocketmq json") && strstr(why, "xml"));
  CHECK_INT(set_text("serialize", "rocketmq json"), RMQ_EINVAL);
  CHECK_INT(set_text("instance_name", "\xff"), RMQ_EINVAL);
  CHECK(strstr(why, "UTF-8"));
  CHECK_INT(
      rmq_settings_set_text(&settings, row("group"), rmq_slice_make("a\0b", 3), why, sizeof why),
      RMQ_EINVAL);
  CHECK_INT(set_text("timeout", "3000"), RMQ_EINVAL);
  CHECK_INT(rmq_settings_set_boolean(&settings, row("unit_mode"), true, why, sizeof why), 0);
  CHECK(settings.unit_mode);
  CHECK_INT(rmq_settings_set_boolean(&settings, row("group"), true, why, sizeof why), RMQ_EINVAL);
  CHECK(strcmp(settings.serialize, "json") == 0);
  rmq_settings copy;
  rmq_settings_copy(&copy, &settings);
  rmq_settings_free(&settings);
  CHECK(strcmp(copy.serialize, "json") == 0 && copy.unit_mode);
  rmq_settings_free(&copy);
}

static int check(const char *group, const char *namesrv) {
  begin();
  if (group) set_text("group", group);
  if (namesrv) set_text("namesrv", namesrv);
  int status = rmq_settings_check(&settings, why, sizeof why);
  rmq_settings_free(&settings);
  return status;
}

static void what_must_fit_together(void) {
  char group[300];
  memset(group, 'g', sizeof group);
  group[255] = '\0';
  CHECK_INT(check("orders", "10.0.0.1:9876; b:9876,"), 0);
  CHECK_INT(check(group, "a:1"), 0);
  group[255] = 'g';
  group[256] = '\0';
  CHECK_INT(check(group, "a:1"), RMQ_EINVAL);
  CHECK(strstr(why, "256") && strstr(why, "255"));
  CHECK_INT(check(NULL, "a:1"), RMQ_EINVAL);
  CHECK(strstr(why, "group is missing"));
  CHECK_INT(check("", "a:1"), RMQ_EINVAL);
  CHECK_INT(check("  ", "a:1"), RMQ_EINVAL);
  CHECK(strstr(why, "blank"));
  CHECK_INT(check("a b", "a:1"), RMQ_EINVAL);
  CHECK(strstr(why, "space at position 2"));
  CHECK_INT(check("DEFAULT_PRODUCER", "a:1"), RMQ_EINVAL);
  CHECK(strstr(why, "DEFAULT_PRODUCER"));
  CHECK_INT(check("orders", NULL), RMQ_EINVAL);
  CHECK(strstr(why, "namesrv is missing"));
  CHECK_INT(check("orders", " ; "), RMQ_EINVAL);
  CHECK(strstr(why, "names no server"));
  CHECK_INT(check("orders", "a:9876;b:99999"), RMQ_EINVAL);
  CHECK(strstr(why, "b:99999"));
}

/* A producer with these; the sentence is in `why`. */
static int check_faults(const char *strategy, const char *latency_max, const char *duration) {
  begin();
  set_text("group", "g");
  set_text("namesrv", "a:1");
  CHECK_INT(set_text("latency_fault", strategy), 0);
  int status = 0;
  if (latency_max) status = set_text("latencyMax", latency_max);
  if (status == 0 && duration) status = set_text("notAvailableDuration", duration);
  if (status == 0) status = rmq_settings_check(&settings, why, sizeof why);
  rmq_settings_free(&settings);
  return status;
}

static void tables_of_latency_fault(void) {
  CHECK_INT(check_faults("true", NULL, NULL), 0);
  CHECK_INT(check_faults("5.x", "10,20", "0,5"), 0);
  CHECK_INT(check_faults("5.x", "", ""), 0); /* as if they were not given */
  CHECK_INT(check_faults("false", "10 20", "0 5"), 0);
  CHECK_INT(check_faults("5.x", "10,20", NULL), RMQ_EINVAL);
  CHECK(strstr(why, "latency_max has 2 steps and not_available_duration 7 (the default)"));
  CHECK_INT(check_faults("true", "20,10", "0,5"), RMQ_EINVAL);
  CHECK(strstr(why, "latency_max must ascend"));
  CHECK_INT(check_faults("true", "10,20", "5,0"), RMQ_EINVAL);
  CHECK(strstr(why, "not_available_duration must not descend"));
  CHECK_INT(check_faults("true", "10,-1", "5,0"), RMQ_EINVAL);
  CHECK(strstr(why, "latency_max"));
  begin();
  CHECK_INT(set_text("latency_fault", "4.x"), RMQ_EINVAL);
  CHECK(strstr(why, "false true 5.x"));
  CHECK(row("latency_fault") == row("sendLatencyFaultEnable"));
  CHECK_INT(rmq_settings_set_boolean(&settings, row("latency_fault"), true, why, sizeof why), 0);
  CHECK(strcmp(settings.latency_fault, "true") == 0);
  CHECK_INT(rmq_settings_set_boolean(&settings, row("latency_fault"), false, why, sizeof why), 0);
  CHECK(strcmp(settings.latency_fault, "false") == 0);
  CHECK_INT(rmq_settings_set_boolean(&settings, row("serialize"), true, why, sizeof why),
            RMQ_EINVAL);
  rmq_settings_free(&settings);
}

/* trace = true, and trace = "topic". */
static void message_trace(void) {
  begin();
  CHECK(!settings.enable_trace);
  CHECK(strcmp(settings.trace_topic, "RMQ_SYS_TRACE_TOPIC") == 0);
  CHECK(row("trace") == row("enableTrace"));
  CHECK_INT(rmq_settings_set_boolean(&settings, row("trace"), true, why, sizeof why), 0);
  CHECK(settings.enable_trace);
  CHECK(strcmp(settings.trace_topic, "RMQ_SYS_TRACE_TOPIC") == 0);
  rmq_settings_free(&settings);
  begin();
  CHECK_INT(set_text("trace", "Mine"), 0);
  CHECK(settings.enable_trace);
  CHECK(strcmp(settings.trace_topic, "Mine") == 0);
  CHECK_INT(set_text("group", "g"), 0);
  CHECK_INT(set_text("namesrv", "a:1"), 0);
  CHECK_INT(rmq_settings_check(&settings, why, sizeof why), 0);
  CHECK_INT(set_text("trace", "a b"), 0);
  CHECK_INT(rmq_settings_check(&settings, why, sizeof why), RMQ_EINVAL);
  CHECK(strstr(why, "trace_topic has a space") != NULL);
  rmq_settings_free(&settings);
}

int main(void) {
  check_run("defaults are Java's", defaults_are_java_s);
  check_run("every row is sound", every_row_is_sound);
  check_run("names and near names", names_and_near_names);
  check_run("numbers are checked", numbers_are_checked);
  check_run("texts are checked", texts_are_checked);
  check_run("tables of latency_fault", tables_of_latency_fault);
  check_run("what must fit together", what_must_fit_together);
  check_run("message trace", message_trace);
  return check_end();
}
