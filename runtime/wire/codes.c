#include "wire/codes.h"

#include <string.h>

typedef struct code_name {
  int32_t code;
  const char *name;
} code_name;

static const code_name request_names[] = {
    {RMQ_SEND_MESSAGE, "SEND_MESSAGE"},
    {11, "PULL_MESSAGE"},
    {RMQ_QUERY_MESSAGE, "QUERY_MESSAGE"},
    {RMQ_UPDATE_AND_CREATE_TOPIC, "UPDATE_AND_CREATE_TOPIC"},
    {RMQ_SEARCH_OFFSET_BY_TIMESTAMP, "SEARCH_OFFSET_BY_TIMESTAMP"},
    {RMQ_GET_MAX_OFFSET, "GET_MAX_OFFSET"},
    {RMQ_GET_MIN_OFFSET, "GET_MIN_OFFSET"},
    {RMQ_GET_EARLIEST_MSG_STORETIME, "GET_EARLIEST_MSG_STORETIME"},
    {RMQ_VIEW_MESSAGE_BY_ID, "VIEW_MESSAGE_BY_ID"},
    {RMQ_HEART_BEAT, "HEART_BEAT"},
    {RMQ_UNREGISTER_CLIENT, "UNREGISTER_CLIENT"},
    {36, "CONSUMER_SEND_MSG_BACK"},
    {RMQ_END_TRANSACTION, "END_TRANSACTION"},
    {38, "GET_CONSUMER_LIST_BY_GROUP"},
    {RMQ_CHECK_TRANSACTION_STATE, "CHECK_TRANSACTION_STATE"},
    {RMQ_NOTIFY_CONSUMER_IDS_CHANGED, "NOTIFY_CONSUMER_IDS_CHANGED"},
    {RMQ_GET_ROUTEINFO_BY_TOPIC, "GET_ROUTEINFO_BY_TOPIC"},
    {106, "GET_BROKER_CLUSTER_INFO"},
    {RMQ_RESET_CONSUMER_CLIENT_OFFSET, "RESET_CONSUMER_CLIENT_OFFSET"},
    {RMQ_GET_CONSUMER_STATUS_FROM_CLIENT, "GET_CONSUMER_STATUS_FROM_CLIENT"},
    {RMQ_GET_CONSUMER_RUNNING_INFO, "GET_CONSUMER_RUNNING_INFO"},
    {RMQ_CONSUME_MESSAGE_DIRECTLY, "CONSUME_MESSAGE_DIRECTLY"},
    {RMQ_SEND_MESSAGE_V2, "SEND_MESSAGE_V2"},
    {RMQ_SEND_BATCH_MESSAGE, "SEND_BATCH_MESSAGE"},
    {RMQ_SEND_REPLY_MESSAGE, "SEND_REPLY_MESSAGE"},
    {RMQ_SEND_REPLY_MESSAGE_V2, "SEND_REPLY_MESSAGE_V2"},
    {RMQ_PUSH_REPLY_MESSAGE_TO_CLIENT, "PUSH_REPLY_MESSAGE_TO_CLIENT"},
    {370, "RECALL_MESSAGE"},
};

static const code_name response_names[] = {
    {RMQ_SUCCESS, "SUCCESS"},
    {RMQ_SYSTEM_ERROR, "SYSTEM_ERROR"},
    {RMQ_SYSTEM_BUSY, "SYSTEM_BUSY"},
    {RMQ_REQUEST_CODE_NOT_SUPPORTED, "REQUEST_CODE_NOT_SUPPORTED"},
    {4, "TRANSACTION_FAILED"},
    {RMQ_FLUSH_DISK_TIMEOUT, "FLUSH_DISK_TIMEOUT"},
    {RMQ_SLAVE_NOT_AVAILABLE, "SLAVE_NOT_AVAILABLE"},
    {RMQ_FLUSH_SLAVE_TIMEOUT, "FLUSH_SLAVE_TIMEOUT"},
    {RMQ_MESSAGE_ILLEGAL, "MESSAGE_ILLEGAL"},
    {RMQ_SERVICE_NOT_AVAILABLE, "SERVICE_NOT_AVAILABLE"},
    {15, "VERSION_NOT_SUPPORTED"},
    {RMQ_NO_PERMISSION, "NO_PERMISSION"},
    {RMQ_TOPIC_NOT_EXIST, "TOPIC_NOT_EXIST"},
    {18, "TOPIC_EXIST_ALREADY"},
    {RMQ_QUERY_NOT_FOUND, "QUERY_NOT_FOUND"},
    {29, "INVALID_PARAMETER"},
    {200, "TRANSACTION_SHOULD_COMMIT"},
    {201, "TRANSACTION_SHOULD_ROLLBACK"},
    {202, "TRANSACTION_STATE_UNKNOW"},
    {203, "TRANSACTION_STATE_GROUP_WRONG"},
    {RMQ_NO_BUYER_ID, "NO_BUYER_ID"},
    {RMQ_NOT_IN_CURRENT_UNIT, "NOT_IN_CURRENT_UNIT"},
    {206, "CONSUMER_NOT_ONLINE"},
    {207, "CONSUME_MSG_TIMEOUT"},
    {RMQ_NO_MESSAGE, "NO_MESSAGE"},
    {209, "POLLING_FULL"},
    {210, "POLLING_TIMEOUT"},
    {211, "BROKER_NOT_EXIST"},
    {212, "BROKER_DISPATCH_NOT_COMPLETE"},
    {213, "BROADCAST_CONSUMPTION"},
    {215, "FLOW_CONTROL"},
    {501, "NOT_LEADER_FOR_QUEUE"},
    {604, "ILLEGAL_OPERATION"},
    {RMQ_GO_AWAY, "GO_AWAY"},
    {3001, "USER_NOT_EXIST"},
    {3002, "POLICY_NOT_EXIST"},
};

/* Indexed by the language's code. */
static const char *const language_names[] = {
    "JAVA",  "CPP",  "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY",
    "OTHER", "HTTP", "GO",     "PHP",    "OMS",    "RUST",   "NODE_JS",
};

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static const code_name *entry_at(const code_name *table, size_t count, size_t index) {
  return index < count ? &table[index] : NULL;
}

static const char *find_name(const code_name *table, size_t count, int32_t code) {
  for (size_t i = 0; i < count; i++) {
    if (table[i].code == code) return table[i].name;
  }
  return "UNKNOWN";
}

const char *rmq_response_code_name(int32_t code) {
  return find_name(response_names, COUNT_OF(response_names), code);
}

const char *rmq_request_code_name(int32_t code) {
  return find_name(request_names, COUNT_OF(request_names), code);
}

const char *rmq_response_code_at(size_t index, int32_t *code) {
  const code_name *entry = entry_at(response_names, COUNT_OF(response_names), index);
  if (!entry) return NULL;
  *code = entry->code;
  return entry->name;
}

const char *rmq_request_code_at(size_t index, int32_t *code) {
  const code_name *entry = entry_at(request_names, COUNT_OF(request_names), index);
  if (!entry) return NULL;
  *code = entry->code;
  return entry->name;
}

const char *rmq_language_name(int code) {
  return code >= 0 && (size_t)code < COUNT_OF(language_names) ? language_names[code] : NULL;
}

int rmq_language_code(const char *name, unsigned long len) {
  for (size_t i = 0; i < COUNT_OF(language_names); i++) {
    const char *candidate = language_names[i];
    if (strlen(candidate) == len && memcmp(candidate, name, len) == 0) return (int)i;
  }
  return -1;
}
