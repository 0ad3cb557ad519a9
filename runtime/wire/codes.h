#ifndef RMQ_WIRE_CODES_H
#define RMQ_WIRE_CODES_H

#include <stddef.h>
#include <stdint.h>

/* Request codes (RequestCode in Java). */
enum {
  RMQ_SEND_MESSAGE = 10,
  RMQ_QUERY_MESSAGE = 12,
  RMQ_UPDATE_AND_CREATE_TOPIC = 17,
  RMQ_SEARCH_OFFSET_BY_TIMESTAMP = 29,
  RMQ_GET_MAX_OFFSET = 30,
  RMQ_GET_MIN_OFFSET = 31,
  RMQ_GET_EARLIEST_MSG_STORETIME = 32,
  RMQ_VIEW_MESSAGE_BY_ID = 33,
  RMQ_HEART_BEAT = 34,
  RMQ_UNREGISTER_CLIENT = 35,
  RMQ_END_TRANSACTION = 37,
  RMQ_CHECK_TRANSACTION_STATE = 39,
  RMQ_NOTIFY_CONSUMER_IDS_CHANGED = 40,
  RMQ_GET_ROUTEINFO_BY_TOPIC = 105,
  RMQ_RESET_CONSUMER_CLIENT_OFFSET = 220,
  RMQ_GET_CONSUMER_STATUS_FROM_CLIENT = 221,
  RMQ_GET_CONSUMER_RUNNING_INFO = 307,
  RMQ_CONSUME_MESSAGE_DIRECTLY = 309,
  RMQ_SEND_MESSAGE_V2 = 310,
  RMQ_SEND_BATCH_MESSAGE = 320,
  RMQ_SEND_REPLY_MESSAGE = 324,
  RMQ_SEND_REPLY_MESSAGE_V2 = 325,
  RMQ_PUSH_REPLY_MESSAGE_TO_CLIENT = 326,
  RMQ_RECALL_MESSAGE = 370
};

/* Response codes (ResponseCode and RemotingSysResponseCode in Java). */
enum {
  RMQ_SUCCESS = 0,
  RMQ_SYSTEM_ERROR = 1,
  RMQ_SYSTEM_BUSY = 2,
  RMQ_REQUEST_CODE_NOT_SUPPORTED = 3,
  RMQ_FLUSH_DISK_TIMEOUT = 10,
  RMQ_SLAVE_NOT_AVAILABLE = 11,
  RMQ_FLUSH_SLAVE_TIMEOUT = 12,
  RMQ_MESSAGE_ILLEGAL = 13,
  RMQ_SERVICE_NOT_AVAILABLE = 14,
  RMQ_NO_PERMISSION = 16,
  RMQ_TOPIC_NOT_EXIST = 17,
  RMQ_QUERY_NOT_FOUND = 22,
  RMQ_INVALID_PARAMETER = 29,
  RMQ_NO_BUYER_ID = 204,
  RMQ_NOT_IN_CURRENT_UNIT = 205,
  RMQ_NO_MESSAGE = 208,
  RMQ_FLOW_CONTROL = 215,
  RMQ_ILLEGAL_OPERATION = 604,
  RMQ_GO_AWAY = 1500
};

/* Bits of a command's `flag`. */
enum { RMQ_FLAG_RESPONSE = 1, RMQ_FLAG_ONEWAY = 2 };

/* Bits of `perm` in a route. */
enum { RMQ_PERM_INHERIT = 1, RMQ_PERM_WRITE = 2, RMQ_PERM_READ = 4 };

/* Bits of `sysFlag`. Two of them together say what has become of a transaction's message: PREPARED,
 * COMMITTED, or both for one that was rolled back. */
enum {
  RMQ_SYS_COMPRESSED = 0x1,
  RMQ_SYS_PREPARED = 0x4,
  RMQ_SYS_COMMITTED = 0x8,
  RMQ_SYS_BORN_HOST_V6 = 0x10,
  RMQ_SYS_STORE_HOST_V6 = 0x20
};

/* The language that our requests name (LanguageCode OTHER) and the version (V5_3_3) that decides what
 * servers send us: from 401 on a name server writes standard JSON. */
enum { RMQ_LANGUAGE_OTHER = 7, RMQ_VERSION = 479 };

/* The first version whose brokers hold messages until a time of their own (MQVersion). */
enum { RMQ_VERSION_5_0_0 = 413 };

/* The master of a broker group has this id; the others are slaves. */
enum { RMQ_MASTER_ID = 0 };

/* The name of a response code as RocketMQ spells it ("TOPIC_NOT_EXIST"), or "UNKNOWN". */
const char *rmq_response_code_name(int32_t code);

/* The name of a request code ("SEND_MESSAGE_V2"), or "UNKNOWN". */
const char *rmq_request_code_name(int32_t code);

/* The names in the order of their codes, for whoever lists them: NULL after the last. */
const char *rmq_response_code_at(size_t index, int32_t *code);
const char *rmq_request_code_at(size_t index, int32_t *code);

/* The name of a language code ("JAVA"), or NULL; and back, -1 when unknown. */
const char *rmq_language_name(int code);
int rmq_language_code(const char *name, unsigned long len);

#endif
