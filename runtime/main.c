#include <luajit.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <uv.h>

#include "binding/binding.h"
#include "options.h"

/* The command line. */

/* One line: when, how bad, what. */
static void write_log(void *arg, rmq_log_level level, const char *line) {
  (void)arg;
  struct timeval now;
  struct tm parts;
  char when[32] = "";
  gettimeofday(&now, NULL);
  if (localtime_r(&now.tv_sec, &parts)) strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &parts);
  fprintf(stderr, "%s.%03d %-5s %s\n", when, (int)(now.tv_usec / 1000), rmq_log_level_name(level),
          line);
}

static void print_versions(void) {
  printf("rmqlua %s\n%s\nlibuv %s\nluv %s\n", RMQLUA_VERSION, LUAJIT_VERSION, uv_version_string(),
         RMQLUA_LUV_VERSION);
}

int main(int argc, char **argv) {
  rmq_options options;
  char why[512];
  int status = 0;
  if (rmq_options_parse(&options, argc, argv, why, sizeof why) != 0) {
    fprintf(stderr, "rmqlua: %s\n", why);
    status = 2;
  } else if (options.help) {
    rmq_options_help();
  } else if (options.version) {
    print_versions();
  } else {
    if (!options.log_off) options.config.log.write = write_log;
    options.config.open = rmq_binding_open;
    status = rmq_vm_main(&options.config);
  }
  rmq_options_free(&options);
  return status;
}
