#ifndef SPEC_NATIVE_SELECT_WORLD_H
#define SPEC_NATIVE_SELECT_WORLD_H

#include "select/chooser.h"

/* What the tests of the choice share. */

/* A topic's queues, made as from a route. `text` names the brokers with their write queues, as in
 * "a4 b2 c4-": one letter each; with a dash the broker may only be read from. `order` is
 * orderTopicConf ("b:2;a:1;b:1"), or NULL. */
rmq_publish *world_publish(const char *text, const char *order);

/* The fault table of a strategy with its own numbers. */
rmq_faults *world_faults(rmq_strategy strategy);

/* `ms` after the start, and `us` more. */
rmq_mono world_at(int64_t ms, int64_t us);

#endif
