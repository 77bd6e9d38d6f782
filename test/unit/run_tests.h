// What each unit test program's main does: runs its cases under Check, prints Check's summary, and tells make by the exit status.
#pragma once
#include <check.h>

#include <cstdlib>
#include <initializer_list>

inline int run_tests(const char* name, std::initializer_list<const TTest*> tests, double timeout_s = 30) {
  Suite* suite = suite_create(name);
  TCase* cases = tcase_create(name);
  tcase_set_timeout(cases, timeout_s);
  for (const TTest* test : tests) tcase_add_test(cases, test);
  suite_add_tcase(suite, cases);
  SRunner* runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  const int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
