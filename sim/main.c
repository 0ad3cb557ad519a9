/* rmqlua-sim: lives seeds, and tells which broke an invariant. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim/life.h"

static const char usage[] =
    "usage: rmqlua-sim [--seed N] [--seeds FROM COUNT] [--seconds S] [--twice] [--verbose]\n"
    "\n"
    "Runs the producer's core in simulated worlds, one for each seed.\n"
    "\n"
    "  --seed N            one seed\n"
    "  --seeds FROM COUNT  seeds FROM to FROM + COUNT - 1 (without an option: 1 1000)\n"
    "  --seconds S         seeds from FROM on for S seconds\n"
    "  --twice             live every seed twice: both traces must be the same\n"
    "  --verbose           print every event, and the core's log\n";

typedef struct options {
  uint64_t from, count;
  double seconds; /* 0: as many as count says */
  bool twice, verbose;
} options;

/* What a signal handler or a sanitizer's last call can still say: the one thing that has to be
 * known outside of the life that dies. */
static char last_words[128];
static size_t last_words_len;

static void prepare_last_words(uint64_t seed) {
  int len = snprintf(last_words, sizeof last_words,
                     "seed %" PRIu64 " died. Replay: rmqlua-sim --seed %" PRIu64 " --verbose\n",
                     seed, seed);
  last_words_len = (size_t)len;
}

static void say_seed(void) {
  if (write(STDERR_FILENO, last_words, last_words_len) < 0) return;
}

static void on_death(int signal_number) {
  say_seed();
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

/* There when a sanitizer is: it calls back before it ends the process. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void watch_deaths(void) {
  if (__sanitizer_set_death_callback) {
    __sanitizer_set_death_callback(say_seed);
    return;
  }
  signal(SIGSEGV, on_death);
  signal(SIGABRT, on_death);
  signal(SIGFPE, on_death);
}

static uint64_t number(const char *text) {
  char *end = NULL;
  errno = 0;
  uint64_t value = text ? strtoull(text, &end, 10) : 0;
  if (!text || end == text || *end != '\0' || errno) {
    fprintf(stderr, "rmqlua-sim: %s is no number\n%s", text ? text : "nothing", usage);
    exit(2);
  }
  return value;
}

static options read_options(char **arg) {
  options out = {.from = 1, .count = 1000};
  while (*++arg) {
    if (strcmp(*arg, "--seed") == 0) {
      out.from = number(*++arg);
      out.count = 1;
    } else if (strcmp(*arg, "--seeds") == 0) {
      out.from = number(*++arg);
      out.count = number(*++arg);
    } else if (strcmp(*arg, "--seconds") == 0) {
      out.seconds = (double)number(*++arg);
    } else if (strcmp(*arg, "--twice") == 0) {
      out.twice = true;
    } else if (strcmp(*arg, "--verbose") == 0) {
      out.verbose = true;
    } else {
      bool help = strcmp(*arg, "--help") == 0;
      fputs(usage, help ? stdout : stderr);
      exit(help ? 0 : 2);
    }
  }
  return out;
}

static double seconds_since(const struct timespec *start) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) / 1e9;
}

static bool live(uint64_t seed, const options *how, sim_result *sum) {
  prepare_last_words(seed);
  sim_result result = sim_live(seed, how->verbose);
  if (how->twice && !result.broken[0]) {
    sim_result again = sim_live(seed, false);
    if (again.hash != result.hash) {
      snprintf(result.broken, sizeof result.broken,
               "two lives of one seed differ: trace %016" PRIx64 ", then %016" PRIx64, result.hash,
               again.hash);
    }
  }
  sum->events += result.events;
  sum->virtual_ms += result.virtual_ms;
  sum->sends += result.sends;
  sum->acknowledged += result.acknowledged;
  sum->failed += result.failed;
  sum->refused += result.refused;
  sum->faults += result.faults;
  sum->hash = sum->hash * 31 + result.hash;
  if (!result.broken[0]) return true;
  printf("seed %" PRIu64 ", event %" PRIu64 ": %s\nreplay: rmqlua-sim --seed %" PRIu64
         " --verbose\n\n",
         seed, result.events, result.broken, seed);
  fflush(stdout); /* whoever ends a long run early has seen what it found */
  return false;
}

int main(int argc, char **argv) {
  (void)argc;
  options how = read_options(argv);
  /* Ids count from the month's beginning in local time: the same everywhere here. */
  setenv("TZ", "UTC", 1);
  watch_deaths();
  struct timespec start;
  clock_gettime(CLOCK_MONOTONIC, &start);
  sim_result sum = {0};
  uint64_t passed = 0, failed = 0;
  for (uint64_t seed = how.from;; seed++) {
    bool enough =
        how.seconds > 0 ? seconds_since(&start) > how.seconds : seed - how.from >= how.count;
    if (enough) break;
    if (live(seed, &how, &sum))
      passed++;
    else
      failed++;
  }
  printf("%" PRIu64 " events, %.1f hours of virtual time, %" PRIu64 " faults; %" PRIu64
         " sends: %" PRIu64 " acknowledged, %" PRIu64 " failed, %" PRIu64
         " refused at once; traces %016" PRIx64 "\n",
         sum.events, (double)sum.virtual_ms / 3600000.0, sum.faults, sum.sends, sum.acknowledged,
         sum.failed, sum.refused, sum.hash);
  printf("%" PRIu64 " passed, %" PRIu64 " failed\n", passed, failed);
  if (failed == 0) return 0;
  /* What broken lives held is still held: a leak checker would only say that. */
  fflush(stdout);
  _exit(1);
}
