#include "binding/lua_loss.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"

enum { A_SECOND = 1000 };

static void write_line(rmq_lua_losses *losses) {
  if (losses->untold == 1) {
    rmq_log_line(rmq_vm_log(losses->vm), RMQ_LOG_WARN, "nobody waits to hear this: %s",
                 losses->last);
  } else if (losses->untold > 1) {
    rmq_log_line(rmq_vm_log(losses->vm), RMQ_LOG_WARN,
                 "%" PRIu64 " sends failed that nobody waits to hear of; the last: %s",
                 losses->untold, losses->last);
  }
  losses->untold = 0;
}

static void a_second_later(uv_timer_t *timer) {
  rmq_lua_losses *losses = timer->data;
  if (losses->untold == 0) return;
  write_line(losses);
  uv_timer_start(timer, a_second_later, A_SECOND, 0);
}

static void start_timer(rmq_lua_losses *losses) {
  if (!losses->timer_made) {
    uv_timer_init(rmq_vm_loop(losses->vm), &losses->timer);
    uv_unref((uv_handle_t *)&losses->timer); /* nothing waits for a line in the log */
    losses->timer.data = losses;
    losses->timer_made = true;
  }
  uv_timer_start(&losses->timer, a_second_later, A_SECOND, 0);
}

void rmq_lua_losses_open(rmq_lua_losses *losses, rmq_vm *vm) {
  *losses = (rmq_lua_losses){.vm = vm};
}

void rmq_lua_lost(rmq_lua_losses *losses, const rmq_completion *completion, bool oneway) {
  const rmq_failure *failure = completion->failure;
  /* What a shutdown cuts short is counted by it. */
  bool cut_short = failure->kind == RMQ_KIND_STATE;
  if (!cut_short) rmq_vm_count_undelivered(losses->vm, 1);
  if (cut_short && losses->ending) return;
  rmq_slice text = rmq_buf_slice(&failure->message);
  snprintf(losses->last, sizeof losses->last, "%s: %.*s", oneway ? "send_oneway" : "send_async",
           (int)text.len, text.len ? text.ptr : "");
  losses->untold++;
  if (losses->timer_made && uv_is_active((uv_handle_t *)&losses->timer)) return;
  write_line(losses);
  start_timer(losses);
}

static void on_closed(uv_handle_t *handle) {
  rmq_lua_losses *losses = handle->data;
  losses->gone(losses->gone_arg);
}

void rmq_lua_losses_close(rmq_lua_losses *losses, void (*gone)(void *arg), void *arg) {
  write_line(losses);
  losses->gone = gone;
  losses->gone_arg = arg;
  if (losses->timer_made) {
    uv_close((uv_handle_t *)&losses->timer, on_closed);
  } else {
    gone(arg);
  }
}

void rmq_lua_losses_end(rmq_lua_losses *losses) { write_line(losses); }
