#include <pthread.h>

#include "script/worker.h"

/* A script may fork through the FFI. Parent and child then share sockets and what the loop waits
 * with, so the child gets a loop of its own first, and everything that has connections gives them
 * up. This runs also in the child that starts a program, where it does no harm. */

/* The handler gets no argument. */
static rmq_vm *forking;

/* What these tasks wait for comes to the parent. In the child they do not keep the loop going, and are
 * told of at its end as tasks that nobody can wake. */
static void let_go_of_waiting(rmq_vm *vm) {
  for (rmq_link *at = vm->waiting.next; at != &vm->waiting; at = at->next) {
    rmq_task *task = rmq_link_owner(at, rmq_task, link);
    if (task->holds) rmq_vm_release(vm);
    task->holds = false;
  }
}

static void in_child(void) {
  rmq_vm *vm = forking;
  if (uv_loop_fork(&vm->loop) != 0) return;
  let_go_of_waiting(vm);
  rmq_guard_forked(vm);
  rmq_link *next;
  for (rmq_link *at = vm->endings.next; at != &vm->endings; at = next) {
    next = at->next; /* `forked` may take its ending off the list */
    rmq_ending *ending = rmq_link_owner(at, rmq_ending, link);
    if (ending->forked) ending->forked(ending);
  }
}

void rmq_fork_init(rmq_vm *vm) {
  forking = vm;
  pthread_atfork(NULL, NULL, in_child);
}
