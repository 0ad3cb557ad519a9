/* What a message must be like, and its property string. */
#include <stdlib.h>

#include "base/error.h"
#include "check.h"
#include "producer/message.h"
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
  static const char *const fields[][2] = {{"KEYS", "keys"}, {"TAGS", "tags"}, {"WAIT", "wait"}};
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
    char hint[64];
    snprintf(hint, sizeof hint, "set the message's %s instead", fields[i][1]);
    CHECK_INT(one_property(s(fields[i][0]), s("x")), RMQ_EINVAL);
    CHECK(says(fields[i][0]) && says(hint));
  }
  CHECK_INT(one_property(s("UNIQ_KEY"), s("x")), RMQ_EINVAL);
  CHECK(says("UNIQ_KEY") && says("choose another name"));
  CHECK_INT(one_property(s("DELAY"), s("4")), RMQ_EINVAL);
  CHECK(says("DELAY") && says("choose another name"));
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
  rmq_failure_clear(&why);
  rmq_buf_free(&out);
  return check_end();
}
