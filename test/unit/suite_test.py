#!/usr/bin/env python3
"""What scripts/mpi-suite makes of the host's testlists and of its own list, and what scripts/suite-table makes of the results."""
import argparse
import contextlib
import io
import os
import sys
import tempfile
import threading
import time
import unittest

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from script_module import script_module  # noqa: E402

mpi_suite = script_module(os.path.join(TOP, "scripts", "mpi-suite"))
suite_table = script_module(os.path.join(TOP, "scripts", "suite-table"))


class Environment(unittest.TestCase):
    def of(self, **more):
        options = argparse.Namespace(**{"env": [], "mode": "net", "timeout_multiplier": 2.0, "jobs": 2, **more})
        return mpi_suite.suite_environment(options)

    def test_each_entry_is_run_by_itself(self):
        self.assertEqual(self.of()["MPITEST_RUN_INDIVIDUAL"], "1")

    def test_mode_net_makes_every_rank_a_node(self):
        self.assertEqual(self.of()["MPIR_CVAR_NOLOCAL"], "1")
        self.assertNotIn("MPIR_CVAR_NOLOCAL", self.of(mode="node"))

    def test_the_users_settings_are_set_and_nonsense_is_refused(self):
        self.assertEqual(self.of(env=["LITE_CONTROLLER=thread"])["LITE_CONTROLLER"], "thread")
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit):
            self.of(env=["LITE_CONTROLLER"])


class Lists(unittest.TestCase):
    def setUp(self):
        self.here = tempfile.TemporaryDirectory()
        self.addCleanup(self.here.cleanup)
        self.build = os.path.join(self.here.name, "build")
        self.put("build/threads/testlist", "pt2pt\ncomm\n")
        self.put("build/threads/comm/testlist", "ctxdup 4\nctxidup 4 xfail=ticket1\n")
        self.put("build/threads/pt2pt/testlist", "!../util:tools\nthreads 2  # a comment\n\nalltoall 16\ngreq_wait 1 timeLimit=400 arg=a\n")
        self.put("build/io/testlist", "async 4\nsetinfo 4\n")
        self.put("build/pt2pt/testlist", "sendrecv1 4\n")
        self.suite = mpi_suite.Suite.__new__(mpi_suite.Suite)
        self.suite.build, self.suite.src = self.build, os.path.join(self.here.name, "src")
        self.suite.options = argparse.Namespace(only=None, max_ranks=8, dirs="threads pt2pt io", jobs=2, mode="net", resume=None, begin_until=None)
        self.suite.known, self.suite.lock, self.suite.running, self.suite.stopping = [], threading.Lock(), {}, False

    def put(self, path, text):
        path = os.path.join(self.here.name, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def names(self, directory):
        return [test.name for test in self.suite.tests_of(directory)]

    def test_a_directory_named_in_a_list_is_gone_into_and_too_many_ranks_are_left_out(self):
        self.assertEqual(self.names("threads"), ["threads/pt2pt/threads 2", "threads/pt2pt/greq_wait 1 timeLimit=400 arg=a", "threads/comm/ctxdup 4",
                                                 "threads/comm/ctxidup 4 xfail=ticket1"])
        self.suite.options.max_ranks = 16
        self.assertIn("threads/pt2pt/alltoall 16", self.names("threads"))

    def test_only_selects_by_the_whole_entry(self):
        self.suite.options.only = "greq.*arg=a"
        self.assertEqual(self.names("threads"), ["threads/pt2pt/greq_wait 1 timeLimit=400 arg=a"])

    def test_an_entry_knows_its_limit_its_ranks_its_part_and_what_it_needs(self):
        test = self.suite.tests_of("threads")[1]
        self.assertEqual((test.limit, test.ranks, test.part, test.directory, test.needs), (400.0, 1, "threads", "threads/pt2pt", ["!../util:tools"]))

    def test_an_entry_is_known_by_the_words_that_the_list_gives(self):
        path = self.put("expected", "# why\nthreads/pt2pt greq_wait 1 : the host's own\npt2pt sendrecv1 2 : other ranks\n")
        self.suite.known = mpi_suite.expected_failures(path)
        reasons = [self.suite.reason_known(test) for directory in ("threads", "pt2pt") for test in self.suite.tests_of(directory)]
        self.assertEqual(reasons, ["", "the host's own", "", "", ""])

    def test_an_expected_failure_without_a_reason_is_refused(self):
        path = self.put("expected", "pt2pt sendflood 8\n")
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit):
            mpi_suite.expected_failures(path)
        self.assertIn("expected:1: want", said.getvalue())

    def test_io_tests_never_run_beside_each_other_and_all_run(self):
        lock, now, together, done = threading.Lock(), [], [], []

        def run_test(test, _slot):
            with lock:
                now.append(test)
                together.append(sorted(other.directory for other in now))
            threading.Event().wait(0.05)
            with lock:
                now.remove(test)
                done.append(test.name)
            test.status = "passed"

        self.suite.run_test = run_test
        with contextlib.redirect_stderr(io.StringIO()):
            plan, _ = self.suite.run()
        self.assertEqual(len(done), 7)
        self.assertTrue(any(len(names) == 2 for names in together))
        self.assertFalse(any(names.count("io") > 1 for names in together))
        self.assertEqual({test.status for _, tests in plan for test in tests}, {"passed"})

    def test_what_its_time_leaves_over_is_skipped_with_the_reason(self):
        ran = []

        def run_test(test, _slot):
            ran.append(test.name)
            test.status = "passed"
            if len(ran) == 2:
                self.suite.options.begin_until = time.time()

        self.suite.run_test, self.suite.options.jobs = run_test, 1
        with contextlib.redirect_stderr(io.StringIO()):
            plan, _ = self.suite.run()
        self.assertEqual(len(ran), 2)
        left = [test for _, tests in plan for test in tests if test.name not in ran]
        self.assertEqual({(test.status, test.reason) for test in left}, {("skipped", mpi_suite.TIME_IS_OVER)})
        self.assertEqual(len(left), 5)

    def test_an_interrupted_run_is_taken_up_again(self):
        self.suite.options.resume = os.path.join(self.here.name, "noted")
        ran = []

        def run_test(test, _slot):
            ran.append(test.name)
            test.status, test.output = ("failed", "why") if test.directory == "io" else ("passed", "")
            if len(ran) == 3:
                self.suite.stopping = True

        self.suite.run_test, self.suite.options.jobs = run_test, 1
        with contextlib.redirect_stderr(io.StringIO()):
            self.suite.run()
            first = list(ran)
            with open(self.suite.options.resume, "a", encoding="utf-8") as text:
                text.write('{"name": "pt2pt/send')  # ended in the middle of a word
            self.suite.stopping = False
            plan, _ = self.suite.run()
        # what was running when it was stopped runs again, what had ended does not
        self.assertEqual(ran[3:], [first[2]] + [name for name in ran[3:] if name != first[2]])
        self.assertEqual(sorted(set(ran)), sorted(test.name for _, tests in plan for test in tests))
        self.assertEqual(len(ran), 8)
        self.assertEqual(suite_table.counts_of(self.suite.options.resume), {"threads": [4, 0, 0], "pt2pt": [1, 0, 0], "io": [0, 2, 0]})
        self.assertEqual({(test.directory == "io", test.status, test.output) for _, tests in plan for test in tests}, {(True, "failed", "why"), (False, "passed", "")})

    def test_results_are_counted_by_directory_and_columns_of_one_name_are_added(self):
        plan = [("threads", self.suite.tests_of("threads")), ("pt2pt", self.suite.tests_of("pt2pt"))]
        for test, status in zip([test for _, tests in plan for test in tests], ("passed", "timed out", "known", "skipped", "failed")):
            test.status = status
        path = os.path.join(self.here.name, "a.xml")
        mpi_suite.junit(path, plan)
        other = os.path.join(self.here.name, "b.xml")
        plan[1][1][0].status = "passed"
        mpi_suite.junit(other, plan[1:])
        columns = {"A": suite_table.counts_of(path), "B": suite_table.counts_of(other)}
        self.assertEqual(suite_table.table(columns), ["| directory | A | B |", "|---|---|---|", "| pt2pt | 0 / 1 / 0 | 1 / 0 / 0 |", "| threads | 1 / 1 / 2 |  |",
                                                      "| all | 1 / 2 / 2 | 1 / 0 / 0 |"])
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            suite_table.main([f"A={path}", f"A={other}"])
        self.assertIn("| pt2pt | 1 / 1 / 0 |", said.getvalue())


if __name__ == "__main__":
    unittest.main()
