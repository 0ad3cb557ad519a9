#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

/* Part of a line may come from a peer: one that holds a newline or an escape sequence must not look
 * like lines of ours, nor move the cursor of a terminal. */
static void make_harmless(char *line) {
  for (; *line; line++) {
    if ((unsigned char)*line < ' ' || *line == 127) *line = ' ';
  }
}

void rmq_log_line(const rmq_log *log, rmq_log_level level, const char *format, ...) {
  if (!log || !log->write || level < log->level) return;
  char small[512];
  char *line = small;
  va_list args;
  va_start(args, format);
  int len = vsnprintf(small, sizeof small, format, args);
  va_end(args);
  if (len < 0) return;
  if ((size_t)len >= sizeof small) {
    line = rmq_alloc((size_t)len + 1);
    va_start(args, format);
    vsnprintf(line, (size_t)len + 1, format, args);
    va_end(args);
  }
  make_harmless(line);
  log->write(log->arg, level, line);
  if (line != small) free(line);
}

const char *rmq_log_level_name(rmq_log_level level) {
  static const char *const names[] = {"debug", "info", "warn", "error"};
  return names[level];
}
