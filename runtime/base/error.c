#include "base/error.h"

#include <stddef.h>

static const struct {
  const char *name;
  const char *text;
} errors[] = {
    {"RMQ_OK", "no error"},
    {"RMQ_EINVAL", "invalid argument"},
    {"RMQ_EPROTO", "the other side broke the protocol"},
    {"RMQ_ELIMIT", "over a limit"},
    {"RMQ_ETIMEOUT", "timed out"},
    {"RMQ_ECONNECT", "no connection could be made"},
    {"RMQ_ECLOSED", "the connection was closed"},
    {"RMQ_ELOOKUP", "the host name could not be resolved"},
    {"RMQ_EROUTE", "no name server gave a usable route"},
    {"RMQ_ESTATE", "not possible in the present state"},
    {"RMQ_EOVERLOAD", "too much is in flight"},
};

static size_t index_of(int error) {
  size_t count = sizeof errors / sizeof errors[0];
  if (error > 0 || error <= -(int)count) return count;
  return (size_t)-error;
}

const char *rmq_error_name(int error) {
  size_t at = index_of(error);
  return at < sizeof errors / sizeof errors[0] ? errors[at].name : "RMQ_UNKNOWN";
}

const char *rmq_error_text(int error) {
  size_t at = index_of(error);
  return at < sizeof errors / sizeof errors[0] ? errors[at].text : "unknown error";
}
