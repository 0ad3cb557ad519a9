#ifndef RMQ_BASE_LOG_H
#define RMQ_BASE_LOG_H

typedef enum rmq_log_level {
  RMQ_LOG_DEBUG,
  RMQ_LOG_INFO,
  RMQ_LOG_WARN,
  RMQ_LOG_ERROR
} rmq_log_level;

/* Where lines go. `write` gets one whole line without its newline; NULL drops everything. */
typedef struct rmq_log {
  rmq_log_level level; /* lines below it are not made */
  void (*write)(void *arg, rmq_log_level level, const char *line);
  void *arg;
} rmq_log;

void rmq_log_line(const rmq_log *log, rmq_log_level level, const char *format, ...)
    __attribute__((cold, format(printf, 3, 4)));

const char *rmq_log_level_name(rmq_log_level level); /* "debug", "info", "warn", "error" */

#endif
