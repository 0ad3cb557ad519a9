#ifndef RMQ_OPTIONS_H
#define RMQ_OPTIONS_H

#include "script/vm.h"

/* What a command line says. `config` borrows from argv and from the
 * lists below. */
typedef struct rmq_options {
  rmq_vm_config config; /* without `log.write` and `open`, which are NULL */
  bool log_off;
  bool help;
  bool version;
  rmq_step *steps;
  rmq_plugin_source *plugins;
} rmq_options;

/* Reads a command line. 0, or RMQ_EINVAL with a sentence in `why`. */
int rmq_options_parse(rmq_options *options, int argc, char **argv, char *why, size_t why_size);
void rmq_options_free(rmq_options *options);

/* Prints what --help prints, the settings of a producer included. */
void rmq_options_help(void);

#endif
