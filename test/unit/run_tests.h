// START_TEST(name) … END_TEST makes a test and registers it: there is no list in which one could be
// forgotten. run_tests() is what a test program's main does: runs them under Check, in the order of
// the file, prints Check's summary, and tells make by the exit status.
#pragma once
#include <check.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <vector>

namespace unit {

struct Case {
  const TTest* test;
  int times;   // it runs, each with another _i from 0
  int signal;  // that has to end it; 0: none
};
inline std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}
struct Registered {
  Registered(const TTest* test, int times, int signal) { cases().push_back({test, times, signal}); }
};

inline int run(const char* name, const std::vector<Case>& chosen, double timeout_s) {
  if (chosen.empty()) {
    std::fprintf(stderr, "%s: no tests\n", name);
    return EXIT_FAILURE;
  }
  Suite* suite = suite_create(name);
  TCase* group = tcase_create(name);
  tcase_set_timeout(group, timeout_s);
  for (const Case& c : chosen)
    tcase_add_loop_test_raise_signal(group, c.test, c.signal, 0, c.times);
  suite_add_tcase(suite, group);
  SRunner* runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  const int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace unit

#define UNIT_TEST(name, times, signal)                                           \
  static void name##_body(int);                                                  \
  static const TTest name##_ttest = {"" #name, name##_body, __FILE__, __LINE__}; \
  [[maybe_unused]] static const TTest* const name = &name##_ttest;               \
  static const unit::Registered name##_registered(&name##_ttest, times, signal); \
  static void name##_body([[maybe_unused]] int _i)
#undef START_TEST
#define START_TEST(name) UNIT_TEST(name, 1, 0)
#define START_REPEATED_TEST(name, times) UNIT_TEST(name, times, 0)
#define START_DYING_TEST(name, signal) UNIT_TEST(name, 1, signal)

inline int run_tests(const char* name, double timeout_s = 30) {
  return unit::run(name, unit::cases(), timeout_s);
}

// Where the others cannot run.
inline int run_only(const char* name, std::initializer_list<const TTest*> tests,
                    double timeout_s = 30) {
  std::vector<unit::Case> chosen;
  for (const unit::Case& c : unit::cases())
    if (std::find(tests.begin(), tests.end(), c.test) != tests.end()) chosen.push_back(c);
  return unit::run(name, chosen, timeout_s);
}
