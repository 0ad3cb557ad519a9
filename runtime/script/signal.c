#include <errno.h>
#include <lauxlib.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "script/worker.h"

/* SIGINT and SIGTERM. The first one stops the script as soon as the loop has control. Lua that
 * runs longer is interrupted by a hook that raises, again and again until C has control, so that
 * no pcall keeps it. Compiled loops and C functions see no hook: if control has still not come
 * back, the process ends from inside the handler. The second signal ends the process at once. */

/* How long Lua may go on before the hook is set: a callback that only does its work should not be
 * torn. */
enum { HOOK_AFTER_US = 100 * 1000 };
/* How long after that the process ends. */
enum { END_AFTER_US = 900 * 1000 };
/* How long a few words wait for room on stderr. */
enum { SAY_MS = 50 };

/* Handlers get no argument, so this names the worker that signals go to. */
static rmq_vm *volatile receiver;

static const char *name_of(int number) { return number == SIGTERM ? "SIGTERM" : "SIGINT"; }

/* The hook. Where Lua was is shown at once, because the error may pass handlers, which this
 * interrupts too. */
static void raise_interrupt(lua_State *L, lua_Debug *info) {
  (void)info;
  rmq_vm *vm = receiver;
  if (!vm->interrupted) {
    vm->interrupted = 1;
    luaL_traceback(L, L, NULL, 0);
    fflush(stdout);
    fprintf(stderr, "rmqlua: interrupted by %s\n%s\n", name_of(vm->signal), lua_tostring(L, -1));
  }
  luaL_error(L, "interrupted by %s", name_of(vm->signal));
}

/* --- Inside a handler: only what is safe there ----------------------------------------------- */

/* Who reads stderr may have stopped: the process is to end all the same, so a write must not wait for
 * them. What has room for anything has room for a few words. */
void rmq_say(const char *text) {
  struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
  if (poll(&out, 1, SAY_MS) != 1 || !(out.revents & POLLOUT)) return;
  ssize_t written = write(STDERR_FILENO, text, strlen(text));
  (void)written; /* there is nobody left to tell */
}

void rmq_say_number(size_t number) {
  char digits[24];
  char *at = digits + sizeof digits - 1;
  *at = '\0';
  do {
    *--at = (char)('0' + number % 10);
    number /= 10;
  } while (number > 0);
  rmq_say(at);
}

static void end_now(const rmq_vm *vm, const char *why) {
  rmq_say("rmqlua: ");
  rmq_say(why);
  size_t undelivered = rmq_vm_undelivered_now(vm);
  if (undelivered > 0) {
    rmq_say("; messages undelivered: ");
    rmq_say_number(undelivered);
  }
  rmq_say("\n");
  /* 3, something undelivered, beats the signal's own status, as at the ordinary end. */
  _exit(undelivered > 0 ? 3 : 128 + vm->signal);
}

/* Lets SIGALRM come once; 0 calls it off. A single system call, and so safe in a handler. */
static void alarm_after(suseconds_t us) {
  struct itimerval when = {.it_value = {.tv_usec = us}};
  setitimer(ITIMER_REAL, &when, NULL);
}

static void on_alarm(int number) {
  (void)number;
  rmq_vm *vm = receiver;
  if (!vm->hooked) {
    vm->hooked = 1;
    if (vm->depth > 0) {
      lua_sethook(vm->L, raise_interrupt, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
    }
    alarm_after(END_AFTER_US);
    return;
  }
  end_now(vm,
          "interrupted, but the script does not stop (a compiled loop or a C function cannot be "
          "interrupted); ending without flushing");
}

static void on_signal(int number) {
  rmq_vm *vm = receiver;
  int kept = errno;
  if (vm->signal) end_now(vm, "a second signal, ending without flushing");
  vm->signal = number;
  alarm_after(HOOK_AFTER_US);
  uv_async_send(&vm->signalled);
  errno = kept;
}

/* --- In the loop ----------------------------------------------------------------------------- */

void rmq_signals_calm(rmq_vm *vm) {
  alarm_after(0);
  lua_sethook(vm->L, NULL, 0, 0);
}

static void on_signalled(uv_async_t *handle) {
  rmq_vm *vm = handle->data;
  rmq_signals_calm(vm);
  rmq_log_line(&vm->log, RMQ_LOG_INFO, "%s: finishing what is in flight", name_of(vm->signal));
  rmq_vm_stop(vm);
}

static void handle_signal(int number, void (*handler)(int)) {
  struct sigaction before, action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  /* Whoever started us with the signal ignored (nohup, a shell's background job) wants it so. */
  if (sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_IGN) return;
  sigaction(number, &action, NULL);
}

void rmq_signals_init(rmq_vm *vm) {
  uv_async_init(&vm->loop, &vm->signalled, on_signalled);
  vm->signalled.data = vm;
  uv_unref((uv_handle_t *)&vm->signalled);
  receiver = vm;
  signal(SIGPIPE, SIG_IGN);
  handle_signal(SIGINT, on_signal);
  handle_signal(SIGTERM, on_signal);
  handle_signal(SIGALRM, on_alarm);
}
