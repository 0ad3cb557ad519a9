#ifndef RMQ_BASE_LIST_H
#define RMQ_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* A doubly linked ring with its links inside the elements. The head is a link too. A link that
 * is in no list points at itself, so removing it twice does no harm. */
typedef struct rmq_link {
  struct rmq_link *prev;
  struct rmq_link *next;
} rmq_link;

static inline void rmq_link_init(rmq_link *link) { link->prev = link->next = link; }
static inline bool rmq_link_alone(const rmq_link *link) { return link->next == link; }
static inline void rmq_link_remove(rmq_link *link) {
  link->prev->next = link->next;
  link->next->prev = link->prev;
  rmq_link_init(link);
}
/* Puts `link` (in no list) at the end of the list with this head. */
static inline void rmq_link_append(rmq_link *head, rmq_link *link) {
  link->prev = head->prev;
  link->next = head;
  head->prev->next = link;
  head->prev = link;
}
/* Moves everything in `from` to the end of `to`; `from` is empty afterwards. */
static inline void rmq_link_splice(rmq_link *to, rmq_link *from) {
  if (rmq_link_alone(from)) return;
  from->next->prev = to->prev;
  to->prev->next = from->next;
  from->prev->next = to;
  to->prev = from->prev;
  rmq_link_init(from);
}

/* The struct that holds a link as its member. */
#define rmq_link_owner(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

#endif
