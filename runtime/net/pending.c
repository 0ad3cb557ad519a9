#include "net/pending.h"

#include <stdlib.h>

#include "base/memory.h"

enum { FIRST_CAP = 32 };

static rmq_pending_cell *cell_of(const rmq_pending *pending, int32_t opaque) {
  return &pending->cells[(size_t)opaque & (pending->cap - 1)];
}

/* Numbers that differ in their low bits differ in more of them too, so nothing collides. */
static void grow(rmq_pending *pending) {
  rmq_pending old = *pending;
  pending->cap = old.cap ? 2 * old.cap : FIRST_CAP;
  pending->cells = rmq_alloc_zero(pending->cap, sizeof *pending->cells);
  for (size_t i = 0; i < old.cap; i++) {
    if (old.cells[i].request) *cell_of(pending, old.cells[i].opaque) = old.cells[i];
  }
  free(old.cells);
}

void rmq_pending_add(rmq_pending *pending, rmq_request *request) {
  if (2 * (pending->count + 1) > pending->cap) grow(pending);
  int32_t opaque;
  do {
    opaque = pending->next;
    pending->next = opaque == INT32_MAX ? 0 : opaque + 1;
  } while (cell_of(pending, opaque)->request);
  *cell_of(pending, opaque) = (rmq_pending_cell){opaque, request};
  pending->count++;
  request->opaque = opaque;
}

rmq_request *rmq_pending_get(const rmq_pending *pending, int32_t opaque) {
  if (pending->count == 0 || opaque < 0) return NULL;
  const rmq_pending_cell *cell = cell_of(pending, opaque);
  return cell->opaque == opaque ? cell->request : NULL;
}

void rmq_pending_remove(rmq_pending *pending, int32_t opaque) {
  cell_of(pending, opaque)->request = NULL;
  pending->count--;
}

void rmq_pending_clear(rmq_pending *pending) {
  free(pending->cells);
  *pending = (rmq_pending){.next = pending->next};
}
