#ifndef RMQ_PRODUCER_FAULTS_H
#define RMQ_PRODUCER_FAULTS_H

#include "producer/settings.h"
#include "select/rules.h"

/* The rules that the settings latency_fault, latency_max, not_available_duration and
 * detect_interval make. 0, or RMQ_EINVAL and a sentence in `why`. */
int rmq_fault_rules_read(const rmq_settings *settings, rmq_fault_rules *rules, char *why,
                         size_t why_size);

#endif
