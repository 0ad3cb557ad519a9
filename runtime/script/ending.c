#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "script/worker.h"

/* How the process ends: what is undelivered, and with which status. */

void rmq_vm_add_ending(rmq_vm *vm, rmq_ending *ending) {
  rmq_link_append(&vm->endings, &ending->link);
}

void rmq_vm_remove_ending(rmq_vm *vm, rmq_ending *ending) {
  (void)vm;
  rmq_link_remove(&ending->link);
}

void rmq_vm_count_undelivered(rmq_vm *vm, size_t n) { vm->untold += n; }

static size_t undelivered_in(const rmq_link *list) {
  size_t sum = 0;
  for (const rmq_link *at = list->next; at != list; at = at->next) {
    rmq_ending *ending = rmq_link_owner(at, rmq_ending, link);
    sum += ending->undelivered(ending);
  }
  return sum;
}

size_t rmq_vm_undelivered_now(const rmq_vm *vm) {
  return vm->undelivered + vm->untold + undelivered_in(&vm->endings) +
         undelivered_in(&vm->finishing);
}

void rmq_vm_stop(rmq_vm *vm) {
  vm->stopping = true;
  uv_stop(&vm->loop);
}

typedef struct finishing {
  rmq_vm *vm;
  char *name; /* the ending itself may be gone by then */
} finishing;

static void on_finished(void *arg, size_t undelivered) {
  finishing *one = arg;
  rmq_vm *vm = one->vm;
  if (undelivered > 0) {
    fprintf(stderr, "rmqlua: %s: %zu message%s not delivered\n", one->name, undelivered,
            undelivered == 1 ? " was" : "s were");
    vm->undelivered += undelivered;
  }
  free(one->name);
  free(one);
  rmq_vm_release(vm);
  if (--vm->unfinished == 0) uv_stop(&vm->loop);
}

static void finish_one(rmq_vm *vm, rmq_ending *ending) {
  finishing *one = rmq_alloc(sizeof *one);
  one->vm = vm;
  one->name = rmq_copy_text(ending->name, strlen(ending->name));
  vm->unfinished++;
  rmq_vm_hold(vm);
  ending->finish(ending, -1, on_finished, one);
}

void rmq_vm_finish(rmq_vm *vm) {
  fflush(stdout);
  /* Callbacks that still come may make new ones. */
  while (!rmq_link_alone(&vm->endings)) {
    while (!rmq_link_alone(&vm->endings)) {
      rmq_link *link = vm->endings.next;
      rmq_link_remove(link);
      rmq_link_append(&vm->finishing, link);
      finish_one(vm, rmq_link_owner(link, rmq_ending, link));
    }
    while (vm->unfinished > 0) uv_run(&vm->loop, UV_RUN_DEFAULT);
  }
  while (!rmq_link_alone(&vm->finishing)) rmq_link_remove(vm->finishing.next);
}

void rmq_vm_tell_undelivered(rmq_vm *vm) {
  if (vm->untold == 0) return;
  fprintf(stderr,
          "rmqlua: %zu message%s sent without asking for the result %s not delivered; "
          "a callback, or send, tells which\n",
          vm->untold, vm->untold == 1 ? "" : "s", vm->untold == 1 ? "was" : "were");
}

int rmq_vm_status(const rmq_vm *vm) {
  if (vm->refused) return 2;
  if (vm->failed) return 1;
  if (vm->undelivered + vm->untold > 0) return 3;
  return vm->signal ? 128 + vm->signal : 0;
}

/* The status as os.exit takes it: a boolean, a number, or nothing. */
static int status_argument(lua_State *L) {
  if (lua_isboolean(L, 1)) return lua_toboolean(L, 1) ? 0 : 1;
  return (int)luaL_optinteger(L, 1, 0);
}

int rmq_lua_exit(lua_State *L) {
  rmq_vm *vm = rmq_vm_of(L);
  int status = status_argument(L);
  size_t undelivered = rmq_vm_undelivered_now(vm);
  fflush(stdout);
  if (undelivered > 0) {
    fprintf(stderr,
            "rmqlua: os.exit with %zu message%s undelivered; producer:flush() or "
            "producer:shutdown() before it waits for them\n",
            undelivered, undelivered == 1 ? "" : "s");
    if (status == 0) status = 3;
  }
  if (lua_toboolean(L, 2)) {
    /* Finalizers find no task to wait in. */
    vm->running = NULL;
    lua_close(vm->L);
    exit(status);
  }
  /* Nothing is taken down: what C keeps for Lua is still in use, as far as anybody can see. */
  fflush(NULL);
  _exit(status);
}
