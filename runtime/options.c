#include "options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "producer/settings.h"
#include "wire/namesrv.h"

/* The longest limit of selectors and hooks: a day. */
enum { LIMIT_MAX_MS = 24 * 3600 * 1000 };

/* A command line being read. */
typedef struct reading {
  rmq_options *options;
  int argc;
  char **argv;
  int at; /* the argument being looked at */
  char *why;
  size_t why_size;
} reading;

typedef struct option_row {
  const char *name;
  const char *value; /* how --help shows the value, NULL: none; "[=...]": attached and optional */
  const char *help;
  int (*take)(reading *in, const char *value);
} option_row;

__attribute__((format(printf, 2, 3))) static int fail(reading *in, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(in->why, in->why_size, format, args);
  va_end(args);
  return RMQ_EINVAL;
}

/* --- What each option does ------------------------------------------------------------------- */

static int add_step(reading *in, bool is_module, const char *text) {
  rmq_vm_config *config = &in->options->config;
  in->options->steps[config->n_steps++] = (rmq_step){is_module, text};
  return 0;
}

static int take_chunk(reading *in, const char *value) { return add_step(in, false, value); }
static int take_module(reading *in, const char *value) { return add_step(in, true, value); }

static int add_plugins(reading *in, rmq_plugin_kind kind, const char *path) {
  rmq_vm_config *config = &in->options->config;
  rmq_plugin_source *source = &in->options->plugins[config->n_plugins++];
  source->kind = kind;
  source->path = path;
  return 0;
}

static int take_selector(reading *in, const char *value) {
  return add_plugins(in, RMQ_PLUGIN_SELECTOR, value);
}

static int take_hook(reading *in, const char *value) {
  return add_plugins(in, RMQ_PLUGIN_HOOK, value);
}

static int take_plugins(reading *in, const char *value) {
  return add_plugins(in, RMQ_PLUGIN_FOLDER, value);
}

/* Milliseconds; 0 turns the limit off. */
static int take_ms(reading *in, const char *option, const char *value, int64_t *out) {
  char *end;
  errno = 0;
  long long ms = strtoll(value, &end, 10);
  if (errno != 0 || *end || end == value || ms < 0 || ms > LIMIT_MAX_MS) {
    return fail(in, "%s: '%s' is not a number of milliseconds from 0 (for ever) to %d", option,
                value, LIMIT_MAX_MS);
  }
  *out = ms;
  return 0;
}

static int take_plugin_warn(reading *in, const char *value) {
  return take_ms(in, "--plugin-warn", value, &in->options->config.guard.warn_ms);
}

static int take_plugin_limit(reading *in, const char *value) {
  return take_ms(in, "--plugin-limit", value, &in->options->config.guard.stop_ms);
}

static int take_deadman(reading *in, const char *value) {
  return take_ms(in, "--deadman", value, &in->options->config.guard.deadman_ms);
}

static int take_check(reading *in, const char *value) {
  (void)value;
  in->options->config.check = true;
  return 0;
}

static int take_version(reading *in, const char *value) {
  (void)value;
  in->options->version = true;
  return 0;
}

static int take_help(reading *in, const char *value) {
  (void)value;
  in->options->help = true;
  return 0;
}

/* `source` is who gives the list: an option, or a variable of the environment. */
static int check_namesrv(reading *in, const char *source, const char *value) {
  rmq_slice rest = rmq_slice_text(value), one;
  const char *reason = "";
  int count = 0, status;
  while ((status = rmq_namesrv_next(&rest, &one, &reason)) > 0) count++;
  if (status < 0) {
    return fail(in, "%s: '%.*s' is not an address (%s); write host:port, several separated by ';'",
                source, (int)one.len, one.ptr, reason);
  }
  return count > 0 ? 0 : fail(in, "%s: the list is empty; write host:port", source);
}

static int take_namesrv(reading *in, const char *value) {
  in->options->config.namesrv = value;
  return check_namesrv(in, "--namesrv", value);
}

static int take_mock(reading *in, const char *value) {
  rmq_vm_config *config = &in->options->config;
  config->mock = true;
  config->mock_forced = !value || strcmp(value, "default") != 0;
  config->mock_spec = config->mock_forced ? value : NULL;
  return 0;
}

static int take_log_level(reading *in, const char *value) {
  for (rmq_log_level level = RMQ_LOG_DEBUG; level <= RMQ_LOG_ERROR; level++) {
    if (strcmp(value, rmq_log_level_name(level)) == 0) {
      in->options->config.log.level = level;
      in->options->log_off = false;
      return 0;
    }
  }
  if (strcmp(value, "off") != 0) {
    return fail(in, "--log-level: '%s' is not one of debug, info, warn, error, off", value);
  }
  in->options->log_off = true;
  return 0;
}

static const option_row rows[] = {
    {"-e", "CHUNK", "run a piece of Lua; may be repeated, and a script may follow", take_chunk},
    {"-l", "MODULE", "require a module before the script", take_module},
    {"--selector", "FILE", "load a selector, which sends then choose by its name; may be repeated",
     take_selector},
    {"--hook", "FILE", "load a hook, which every producer has then; may be repeated", take_hook},
    {"--plugins", "DIR", "load all selectors and hooks of a folder; may be repeated", take_plugins},
    {"--plugin-warn", "MS",
     "a selector or hook that takes longer is warned of: 100 ms, or MS; 0 never", take_plugin_warn},
    {"--plugin-limit", "MS",
     "a selector or hook that takes longer is stopped by an error: 1000 ms, or MS; 0 never",
     take_plugin_limit},
    {"--deadman", "MS",
     "a selector or hook that cannot be stopped ends the process: 30000 ms, or MS;\n"
     "                        0 never",
     take_deadman},
    {"--check", NULL, "load the plugins and the script, list what was found, and run nothing",
     take_check},
    {"--namesrv", "LIST", "name servers of producers that name none: host:port;host:port",
     take_namesrv},
    {"--mock", "[=SPEC]",
     "send to a mock of RocketMQ inside this process, whatever name server\n"
     "                        a script names; SPEC is its shape, brokers=3,topics={Orders=8}, or\n"
     "                        the word default: it serves only where no name server is named",
     take_mock},
    {"--log-level", "LEVEL", "debug, info, warn (the default), error, off; lines go to stderr",
     take_log_level},
    {"-v", NULL, "print versions; also --version", take_version},
    {"--version", NULL, NULL, take_version},
    {"-h", NULL, "print this help; also --help", take_help},
    {"--help", NULL, NULL, take_help},
    {NULL, NULL, NULL, NULL}};

/* --- Reading --------------------------------------------------------------------------------- */

/* How many edits turn one name into the other. */
static size_t distance(const char *a, const char *b) {
  size_t row[64], n = strlen(b);
  if (n >= sizeof row / sizeof *row) return n;
  for (size_t j = 0; j <= n; j++) row[j] = j;
  for (size_t i = 1; a[i - 1]; i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= n; j++) {
      size_t best = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      if (row[j] + 1 < best) best = row[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      row[j] = best;
    }
  }
  return row[n];
}

static const char *nearest(const char *name) {
  const char *found = NULL;
  size_t best = strlen(name) / 2 + 1;
  for (const option_row *row = rows; row->name; row++) {
    size_t now = distance(name, row->name);
    if (now < best) {
      best = now;
      found = row->name;
    }
  }
  return found;
}

static const option_row *find_row(const char *name, size_t len) {
  for (const option_row *row = rows; row->name; row++) {
    if (strlen(row->name) == len && memcmp(row->name, name, len) == 0) return row;
  }
  return NULL;
}

static int unknown_option(reading *in, const char *text, size_t name_len) {
  char *name = rmq_copy_text(text, name_len);
  const char *near = nearest(name);
  int status = near ? fail(in, "unknown option '%s'; did you mean %s?", name, near)
                    : fail(in, "unknown option '%s'; --help lists them", name);
  free(name);
  return status;
}

static int take_option(reading *in) {
  const char *text = in->argv[in->at];
  const char *equals = strncmp(text, "--", 2) == 0 ? strchr(text, '=') : NULL;
  size_t len = equals ? (size_t)(equals - text) : strlen(text);
  const option_row *row = find_row(text, len);
  if (!row) return unknown_option(in, text, len);
  const char *value = equals ? equals + 1 : NULL;
  if (!row->value && value) return fail(in, "%s takes no value", row->name);
  if (row->value && row->value[0] != '[' && !value) {
    if (in->at + 1 >= in->argc) return fail(in, "%s needs a value: %s", row->name, row->value);
    value = in->argv[++in->at];
  }
  return row->take(in, value);
}

/* An option starts with a dash; a single dash is the script on stdin, and "--" ends the options. */
static bool at_option(const reading *in) {
  const char *text = in->argv[in->at];
  return text[0] == '-' && text[1] != '\0' && strcmp(text, "--") != 0;
}

/* Where --namesrv gives none the environment may. Where one is named, in
 * either way, --mock=default has nobody to serve. */
static int complete_namesrv(reading *in) {
  rmq_vm_config *config = &in->options->config;
  const char *from_environment = getenv("NAMESRV_ADDR");
  if (!config->namesrv && from_environment && from_environment[0]) {
    if (check_namesrv(in, "NAMESRV_ADDR", from_environment) < 0) return RMQ_EINVAL;
    config->namesrv = from_environment;
  }
  if (config->namesrv && !config->mock_forced) config->mock = false;
  return 0;
}

/* What may stand in the place of a script; a script of such a name is run as ./mock. */
static const struct { const char *name, *module; } commands[] = {{"mock", "rocketmq.command.mock"}};

static const char *find_command(const char *name) {
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
    if (strcmp(name, commands[i].name) == 0) return commands[i].module;
  }
  return NULL;
}

int rmq_options_parse(rmq_options *options, int argc, char **argv, char *why, size_t why_size) {
  memset(options, 0, sizeof *options);
  options->steps = rmq_alloc_zero((size_t)argc + 1, sizeof *options->steps);
  options->config.steps = options->steps;
  options->plugins = rmq_alloc_zero((size_t)argc + 1, sizeof *options->plugins);
  options->config.plugins = options->plugins;
  options->config.argc = argc;
  options->config.argv = argv;
  options->config.log.level = RMQ_LOG_WARN;
  options->config.guard = (rmq_guard_limits){.warn_ms = 100, .stop_ms = 1000, .deadman_ms = 30000};
  reading in = {options, argc, argv, 1, why, why_size};
  for (; in.at < argc && at_option(&in); in.at++) {
    int status = take_option(&in);
    if (status != 0) return status;
  }
  bool dashes = in.at < argc && strcmp(argv[in.at], "--") == 0;
  if (dashes) in.at++;
  if (in.at < argc) options->config.script = in.at;
  if (in.at < argc && !dashes) options->config.command = find_command(argv[in.at]);
  bool something = options->config.script || options->config.n_steps > 0 || options->help;
  if (options->config.check && options->config.n_plugins > 0) something = true;
  if (!something && !options->version) {
    return fail(&in, "no script; write rmqlua SCRIPT, or rmqlua --help");
  }
  return complete_namesrv(&in);
}

void rmq_options_free(rmq_options *options) {
  free(options->steps);
  free(options->plugins);
}

/* --- Help ------------------------------------------------------------------------------------ */

static const char *type_name(rmq_setting_type type) {
  switch (type) {
    case RMQ_SETTING_TEXT:
      return "text";
    case RMQ_SETTING_NUMBERS:
      return "list of numbers";
    case RMQ_SETTING_INTEGER:
      return "number";
    case RMQ_SETTING_BOOLEAN:
      return "boolean";
  }
  return "";
}

static void print_setting(const rmq_setting *row) {
  const char *unit = row->unit && row->unit[0] ? row->unit : type_name(row->type);
  printf("  %s", row->name);
  if (row->alias) printf(", %s", row->alias);
  printf(" (%s", row->choices ? row->choices : unit);
  if (row->type == RMQ_SETTING_INTEGER) {
    printf(", %lld to %lld", (long long)row->min, (long long)row->max);
  }
  if (row->initial) printf(", default %s", row->initial[0] ? row->initial : "empty");
  if (row->java) printf("; in Java %s", row->java);
  printf(")\n      %s\n", row->help);
}

static void print_settings(void) {
  printf("\nSettings of a producer, as in rocketmq.producer { group = \"orders\" }:\n");
  for (const rmq_setting *row = rmq_setting_table; row->name; row++) print_setting(row);
}

void rmq_options_help(void) {
  printf(
      "usage: rmqlua [options] SCRIPT [arguments]\n"
      "       rmqlua mock [options]      a mock for other programs, or a proxy: rmqlua mock "
      "--help\n"
      "Runs a Lua script (LuaJIT) that sends messages to Apache RocketMQ. SCRIPT may be - for "
      "stdin.\n"
      "\nOptions:\n");
  for (const option_row *row = rows; row->name; row++) {
    if (!row->help) continue; /* another spelling of the one before */
    char left[64];
    const char *gap = row->value && row->value[0] != '[' ? " " : "";
    snprintf(left, sizeof left, "%s%s%s", row->name, gap, row->value ? row->value : "");
    printf("  %-20s  %s\n", left, row->help);
  }
  printf(
      "\nThe environment variable NAMESRV_ADDR names name servers where neither the script nor "
      "--namesrv "
      "does.\n"
      "\nExit status: 0; 1 an error in the script; 2 a wrong command line or a script that cannot "
      "be "
      "read;\n3 a message was not delivered whose result the script did not wait for; 130 and 143 "
      "after SIGINT and\nSIGTERM.\n");
  print_settings();
}
