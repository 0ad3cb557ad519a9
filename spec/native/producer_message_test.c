/* What a message must be like, and its property string. */
#include <stdlib.h>

#include "base/error.h"
#include "check.h"
#include "producer/message.h"
#include "producer/message_fields.h"
#include "producer/names.h"
#include "wire/properties.h"

static rmq_failure why;
static rmq_buf out;

static rmq_slice s(const char *text) { return rmq_slice_text(text); }

static bool says(const char *part) {
  rmq_buf_u8(&why.message, 0);
  bool found = strstr((const char *)rmq_buf_head(&why.message), part) != NULL;
  if (!found) printf("it says: %s\n", (const char *)rmq_buf_head(&why.message));
  why.message.end--;
  return found;
}

static void topics(void) {
  char name[129];
  memset(name, 't', sizeof name);
  CHECK_INT(rmq_topic_check(rmq_slice_make(name, 127), &why), 0);
  CHECK_INT(rmq_topic_check(rmq_slice_make(name, 128), &why), RMQ_EINVAL);
  CHECK(says("topic is 128 bytes long") && says("127"));
  CHECK_INT(why.kind, RMQ_KIND_MESSAGE);
  CHECK_INT(rmq_topic_check(s("%RETRY%g|_-aZ09"), &why), 0);
  CHECK_INT(rmq_topic_check(s(""), &why), RMQ_EINVAL);
  CHECK(says("topic is empty"));
  CHECK_INT(rmq_topic_check(s(" \t"), &why), RMQ_EINVAL);
  CHECK(says("topic is blank"));
  CHECK_INT(rmq_topic_check(s("a b"), &why), RMQ_EINVAL);
  CHECK(says("a space at position 2"));
  CHECK_INT(rmq_topic_check(s("a/b"), &why), RMQ_EINVAL);
  CHECK(says("'/'"));
  CHECK_INT(rmq_topic_check(s("\xff\xfe"), &why), RMQ_EINVAL);
  CHECK(says("byte 0xFF at position 1"));
  CHECK_INT(rmq_topic_check(rmq_slice_make("a\0b", 3), &why), RMQ_EINVAL);
  CHECK_INT(rmq_topic_check(s("SCHEDULE_TOPIC_XXXX"), &why), RMQ_EINVAL);
  CHECK(says("SCHEDULE_TOPIC_XXXX"));
  CHECK_INT(rmq_topic_check(s("TBW102"), &why), 0); /* may be sent to, cannot be created */
}

static void bodies(void) {
  rmq_settings settings;
  rmq_settings_init(&settings);
  char *body = calloc(1, 4194305);
  CHECK_INT(rmq_body_check(&settings, rmq_slice_make(body, 4194304), &why), 0);
  CHECK_INT(rmq_body_check(&settings, rmq_slice_make(body, 4194305), &why), RMQ_EINVAL);
  CHECK(says("4194305") && says("max_message_size allows 4194304"));
  CHECK_INT(why.code, 13);
  CHECK_INT(rmq_body_check(&settings, rmq_slice_make(NULL, 0), &why), RMQ_EINVAL);
  CHECK(says("body is empty"));
  settings.max_inflight_bytes = 10;
  CHECK_INT(rmq_body_check(&settings, rmq_slice_make(body, 10), &why), 0);
  CHECK_INT(rmq_body_check(&settings, rmq_slice_make(body, 11), &why), RMQ_EOVERLOAD);
  CHECK_INT(why.kind, RMQ_KIND_OVERLOAD);
  free(body);
  rmq_settings_free(&settings);
}

static int properties(const rmq_message *message) {
  return rmq_message_properties(message, s("ID"), &out, &why);
}

static void check_string(const char *expected) {
  rmq_slice actual = rmq_buf_slice(&out);
  bool same = rmq_slice_is(actual, expected);
  if (!same) printf("it is \"%.*s\"\n", (int)actual.len, actual.ptr);
  CHECK(same);
}

static void the_string(void) {
  rmq_field user[] = {{s("a"), s("1")}, {s("订单"), s("😀")}};
  rmq_slice keys[] = {s("k1"), s("k2")};
  rmq_message message = {.tags = s("paid"),
                         .keys = keys,
                         .n_keys = 2,
                         .properties = user,
                         .n_properties = 2,
                         .wait = true};
  CHECK_INT(properties(&message), 0);
  check_string(
      "a\0011\002订单\001😀\002KEYS\001k1 k2\002TAGS\001paid\002WAIT\001true\002UNIQ_KEY\001ID\002");
  message = (rmq_message){.wait = false};
  CHECK_INT(properties(&message), 0);
  check_string("WAIT\001false\002UNIQ_KEY\001ID\002");
}

static void keys_rules(void) {
  rmq_slice blank[] = {s("k1 k2")}, listed[] = {s("k1"), s("k 2")}, hole[] = {s("k1"), s("")};
  rmq_slice nothing[] = {s("")}, broken[] = {s("k\001x")};
  rmq_message message = {.keys = blank, .n_keys = 1, .wait = true};
  CHECK_INT(properties(&message), 0); /* a single string may hold several keys */
  check_string("KEYS\001k1 k2\002WAIT\001true\002UNIQ_KEY\001ID\002");
  message.keys = nothing;
  CHECK_INT(properties(&message), 0); /* counts as absent */
  check_string("WAIT\001true\002UNIQ_KEY\001ID\002");
  message.keys = broken;
  CHECK_INT(properties(&message), RMQ_EINVAL);
  CHECK(says("keys has byte 1 at position 2"));
  message.n_keys = 2;
  message.keys = listed;
  CHECK_INT(properties(&message), RMQ_EINVAL);
  CHECK(says("keys[2]") && says("k 2") && says("space"));
  message.keys = hole;
  CHECK_INT(properties(&message), RMQ_EINVAL);
  CHECK(says("keys[2] is empty"));
}

static int one_property(rmq_slice name, rmq_slice value) {
  rmq_field field = {name, value};
  return properties(&(rmq_message){.properties = &field, .n_properties = 1});
}

static void what_would_change_other_properties(void) {
  CHECK_INT(one_property(s("a"), s("x\002b\001y")), RMQ_EINVAL);
  CHECK(says("properties[\"a\"] has byte 2 at position 2"));
  CHECK_INT(one_property(s("a\001"), s("x")), RMQ_EINVAL);
  CHECK(says("a name in properties has byte 1 at position 2"));
  CHECK_INT(one_property(s(""), s("x")), RMQ_EINVAL);
  CHECK(says("empty name"));
  CHECK_INT(one_property(s("a"), s("")), RMQ_EINVAL);
  CHECK(says("properties[\"a\"] is empty"));
  CHECK_INT(properties(&(rmq_message){.tags = s("t\002")}), RMQ_EINVAL);
  CHECK(says("tags has byte 2 at position 2"));
}

static void utf8_only(void) {
  CHECK_INT(one_property(s("a"), s("ab\xff")), RMQ_EINVAL);
  CHECK(says("properties[\"a\"] is not valid UTF-8 at position 3"));
  CHECK_INT(one_property(s("\xc0\x80"), s("a")), RMQ_EINVAL);
  CHECK(says("a name in properties is not valid UTF-8"));
  CHECK_INT(properties(&(rmq_message){.tags = s("\xed\xa0\x80")}), RMQ_EINVAL);
  CHECK(says("tags is not valid UTF-8 at position 1"));
  rmq_slice key = s("k\xe4");
  CHECK_INT(properties(&(rmq_message){.keys = &key, .n_keys = 1}), RMQ_EINVAL);
  CHECK(says("keys is not valid UTF-8 at position 2"));
}

static void reserved_names(void) {
  static const char *const fields[][2] = {
      {"KEYS", "keys"},
      {"TAGS", "tags"},
      {"WAIT", "wait"},
      {"DELAY", "delay_level"},
      {"TIMER_DELAY_MS", "delay_ms"},
      {"TIMER_DELAY_SEC", "delay_seconds"},
      {"TIMER_DELIVER_MS", "deliver_at"},
      {"BUYER_ID", "buyer_id"},
  };
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
    char hint[64];
    snprintf(hint, sizeof hint, "set the message's %s instead", fields[i][1]);
    CHECK_INT(one_property(s(fields[i][0]), s("x")), RMQ_EINVAL);
    CHECK(says(fields[i][0]) && says(hint));
  }
  CHECK_INT(one_property(s("UNIQ_KEY"), s("x")), RMQ_EINVAL);
  CHECK(says("UNIQ_KEY") && says("result.msg_id"));
  CHECK_INT(one_property(s("POP_CK"), s("x")), RMQ_EINVAL);
  CHECK(says("POP_CK") && says("choose another name"));
  CHECK_INT(one_property(s("DELAY"), s("4")), RMQ_EINVAL);
  CHECK(says("DELAY") && says("set the message's delay_level instead"));
  CHECK_INT(one_property(s("keys"), s("x")), 0);
}

static void the_longest(void) {
  static char value[70000];
  memset(value, 'v', sizeof value);
  /* "WAIT" and "UNIQ_KEY" with their values take 24 bytes, the name and separators of "a" 3
   * more. */
  size_t fits = RMQ_PROPERTIES_MAX - 3 - sizeof "WAIT.false.UNIQ_KEY.ID." + 1;
  CHECK_INT(one_property(s("a"), rmq_slice_make(value, fits)), 0);
  CHECK_INT(rmq_buf_len(&out), RMQ_PROPERTIES_MAX);
  CHECK_INT(one_property(s("a"), rmq_slice_make(value, fits + 1)), RMQ_EINVAL);
  CHECK(says("32768 bytes") && says("32767"));
  CHECK_INT(one_property(s("a"), rmq_slice_make(value, 70000)), RMQ_EINVAL);
}

static int delayed(rmq_delay_kind kind, int64_t delay) {
  return properties(&(rmq_message){.delay_kind = kind, .delay = delay});
}

static void delays(void) {
  static const struct {
    rmq_delay_kind kind;
    int64_t least, most;
    const char *property, *field;
  } rows[] = {
      {RMQ_DELAY_LEVEL, 1, 18, "DELAY", "delay_level"},
      {RMQ_DELAY_MS, 0, 2147483647000, "TIMER_DELAY_MS", "delay_ms"},
      {RMQ_DELAY_SECONDS, 0, 2147483647, "TIMER_DELAY_SEC", "delay_seconds"},
      {RMQ_DELAY_UNTIL, 100000000000, 253402300799999, "TIMER_DELIVER_MS", "deliver_at"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char expected[128];
    snprintf(expected, sizeof expected, "%s\001%lld\002WAIT\001false\002UNIQ_KEY\001ID\002",
             rows[i].property, (long long)rows[i].most);
    CHECK_INT(delayed(rows[i].kind, rows[i].most), 0);
    check_string(expected);
    CHECK_INT(delayed(rows[i].kind, rows[i].least), 0);
    int64_t wrong[] = {rows[i].least - 1, rows[i].most + 1, INT64_MAX, INT64_MIN};
    for (size_t j = 0; j < sizeof wrong / sizeof wrong[0]; j++) {
      CHECK_INT(delayed(rows[i].kind, wrong[j]), RMQ_EINVAL);
      char number[64];
      snprintf(number, sizeof number, "%s is %lld;", rows[i].field, (long long)wrong[j]);
      CHECK(says(number));
      CHECK_INT(why.code, 13);
      CHECK_INT(why.kind, RMQ_KIND_MESSAGE);
    }
  }
}

static void sharding_key_and_buyer_id(void) {
  rmq_message message = {.sharding_key = s("user-7"), .buyer_id = s("买家")};
  CHECK_INT(properties(&message), 0);
  check_string(
      "__SHARDINGKEY\001user-7\002BUYER_ID\001买家\002WAIT\001false\002UNIQ_KEY\001ID\002");
  message.sharding_key = s("a\002b");
  CHECK_INT(properties(&message), RMQ_EINVAL);
  CHECK(says("sharding_key has byte 2 at position 2"));
  message.sharding_key = s("");
  message.buyer_id = s("b\xff");
  CHECK_INT(properties(&message), RMQ_EINVAL);
  CHECK(says("buyer_id is not valid UTF-8 at position 2"));
  rmq_field own = {s("__SHARDINGKEY"), s("x")};
  message = (rmq_message){.sharding_key = s("y"), .properties = &own, .n_properties = 1};
  CHECK_INT(properties(&message), RMQ_EINVAL);
  CHECK(says("sharding_key and properties[\"__SHARDINGKEY\"] are the same thing"));
}

static int light_queue(rmq_slice name) {
  return properties(&(rmq_message){.lmq = &name, .n_lmq = 1});
}

static void light_queues(void) {
  rmq_slice names[] = {s("phone-1"), s("%LMQ%设备")};
  CHECK_INT(properties(&(rmq_message){.lmq = names, .n_lmq = 2}), 0);
  check_string(
      "INNER_MULTI_DISPATCH\001%LMQ%phone-1,%LMQ%设备\002WAIT\001false\002UNIQ_KEY\001ID\002");
  static const char *const wrong[][2] = {{"a,b", "','"},      {"a/b", "'/'"},  {"a b", "byte 32"},
                                         {"a\001", "byte 1"}, {"", "empty"},   {"%LMQ%", "empty"},
                                         {"\xff", "UTF-8"},   {"a\x7f", "127"}};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    CHECK_INT(light_queue(s(wrong[i][0])), RMQ_EINVAL);
    CHECK(says("lmq[1]") && says(wrong[i][1]));
  }
  char longest[257];
  memset(longest, 'q', sizeof longest);
  CHECK_INT(light_queue(rmq_slice_make(longest, 250)), 0); /* and 5 for %LMQ% */
  CHECK_INT(light_queue(rmq_slice_make(longest, 251)), RMQ_EINVAL);
  memcpy(longest, "%LMQ%", 5);
  CHECK_INT(light_queue(rmq_slice_make(longest, 255)), 0);
  CHECK_INT(light_queue(rmq_slice_make(longest, 256)), RMQ_EINVAL);
  CHECK(says("256 bytes") && says("255"));
  rmq_field own = {s("INNER_MULTI_DISPATCH"), s("%LMQ%x")};
  CHECK_INT(
      properties(&(rmq_message){.lmq = names, .n_lmq = 2, .properties = &own, .n_properties = 1}),
      RMQ_EINVAL);
  CHECK(says("lmq and properties[\"INNER_MULTI_DISPATCH\"]"));
}

static void counts_of_retry_topics(void) {
  rmq_field counts[] = {
      {s("RECONSUME_TIME"), s("3")}, {s("a"), s("1")}, {s("MAX_RECONSUME_TIMES"), s("16")}};
  rmq_message message = {.topic = s("%RETRY%g"), .properties = counts, .n_properties = 3};
  int32_t reconsumed = 7, max = 7;
  CHECK_INT(properties(&message), 0);
  check_string("a\0011\002WAIT\001false\002UNIQ_KEY\001ID\002");
  CHECK_INT(rmq_message_retry_counts(&message, &reconsumed, &max, &why), 0);
  CHECK_INT(reconsumed, 3);
  CHECK_INT(max, 16);
  static const char *const wrong[] = {"-1", "1.5", "", "x", "2147483648"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    counts[2].value = s(wrong[i]);
    CHECK_INT(rmq_message_retry_counts(&message, &reconsumed, &max, &why), RMQ_EINVAL);
    CHECK(says("properties[\"MAX_RECONSUME_TIMES\"]") && says(wrong[i]));
  }
  static const char *const others[] = {"Orders", "%RETRY%", "%DLQ%g"};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    message.topic = s(others[i]);
    CHECK_INT(rmq_message_retry_counts(&message, &reconsumed, &max, &why), 0);
    CHECK_INT(reconsumed, 0);
    CHECK_INT(max, -1);
    CHECK_INT(properties(&message), RMQ_EINVAL);
    CHECK(says("RECONSUME_TIME") && says("%RETRY%"));
  }
}

int main(void) {
  rmq_failure_init(&why);
  check_run("topics", topics);
  check_run("bodies", bodies);
  check_run("the string", the_string);
  check_run("keys", keys_rules);
  check_run("what would change other properties", what_would_change_other_properties);
  check_run("UTF-8 only", utf8_only);
  check_run("reserved names", reserved_names);
  check_run("the longest", the_longest);
  check_run("delays", delays);
  check_run("sharding key and buyer id", sharding_key_and_buyer_id);
  check_run("light queues", light_queues);
  check_run("counts of retry topics", counts_of_retry_topics);
  rmq_failure_clear(&why);
  rmq_buf_free(&out);
  return check_end();
}
