#ifndef RMQ_BASE_SHOWN_H
#define RMQ_BASE_SHOWN_H

#include <math.h>

/* A number for an error message. printf shows the sign of a NaN, which is chance: 0/0 gives one with and
 * one without, as the compiler likes. */
static inline double rmq_shown(double value) { return isnan(value) ? fabs(value) : value; }

#endif
