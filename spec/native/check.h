#ifndef SPEC_NATIVE_CHECK_H
#define SPEC_NATIVE_CHECK_H

#include <stdio.h>
#include <string.h>

/* A test is a function; CHECK notes what fails and goes on; check_end prints the count and gives the
 * exit status. */
static int check_failures;
static int check_passed;
static int check_failed;

#define CHECK(what) check_that((what) ? 1 : 0, #what, __FILE__, __LINE__)
#define CHECK_INT(actual, expected) \
  check_int((long long)(actual), (long long)(expected), #actual, __FILE__, __LINE__)

static inline void check_that(int holds, const char *what, const char *file, int line) {
  if (holds) return;
  check_failures++;
  printf("%s:%d: not true: %s\n", file, line, what);
}

static inline void check_int(long long actual, long long expected, const char *what,
                             const char *file, int line) {
  if (actual == expected) return;
  check_failures++;
  printf("%s:%d: %s is %lld, not %lld\n", file, line, what, actual, expected);
}

static inline void check_run(const char *name, void (*test)(void)) {
  check_failures = 0;
  test();
  if (check_failures) {
    check_failed++;
    printf("failed: %s\n", name);
  } else {
    check_passed++;
  }
}

static inline int check_end(void) {
  printf("%d passed, %d failed\n", check_passed, check_failed);
  return check_failed ? 1 : 0;
}

#endif
