#!/usr/bin/env python3
"""What the scripts share (scripts/chlite): turns, ratios, output of programs, refusals, the sums of make check."""
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(TOP, "scripts"))
# pylint: disable=wrong-import-position
from chlite import program_bench, test_log    # noqa: E402
from chlite.common import die    # noqa: E402
from chlite.installations import read_installation    # noqa: E402
from chlite.running import json_objects    # noqa: E402
from chlite.sizes import burst_of, size_of, size_text    # noqa: E402
from chlite.turns import middle, ratio_of_rounds, rotated    # noqa: E402

CHECKS = "{0}%: Checks: {1}, Failures: {2}, Errors: {3}\n"


class Turns(unittest.TestCase):
    def test_each_is_first_in_its_turn_and_the_order_stays(self):
        self.assertEqual([rotated(["a", "b", "c"], by) for by in (0, 1, 5)],
                         [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]])
        self.assertEqual(rotated([], 1), [])

    def test_ratios_are_of_the_same_round(self):
        # one round was ten times as slow for both
        self.assertEqual(ratio_of_rounds([2.0, 20.0, 3.0], [1.0, 10.0, 1.0]), 2.0)

    def test_a_median_leaves_out_what_was_not_measured(self):
        self.assertEqual(middle([None, 3.0, 1.0, None, 2.0]), 2.0)
        self.assertIsNone(middle([None]))


class ProgramBench(unittest.TestCase):
    def run_with(self, times, *arguments):
        """times: by installation, the microseconds of its two points. (exit code, output)"""
        options = program_bench.arguments("", "a point").parse_args([*(f"--mpi={name}=/p" for name in times), "--rounds=3", *arguments])

        def points(variant, _program, _ranks, _seconds):
            return [{"pattern": pattern, "bytes": 8, "us": us} for pattern, us in times[variant["name"]].items()]
        with mock.patch.multiple(program_bench, identify=mock.DEFAULT, Builder=mock.DEFAULT, points_of=points), \
                contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
            return program_bench.run(options, "a.c", 1, lambda pattern: pattern == "known"), out.getvalue()

    def test_the_first_installation_is_the_reference(self):
        code, text = self.run_with({"first": {"known": 2.0}, "second": {"known": 3.0}}, "--json")
        self.assertEqual(code, 0)
        self.assertEqual(json.loads(text), [{"pattern": "known", "bytes": 8, "us": {"first": 2.0, "second": 3.0}, "ratio": {"second": 1.5}}])

    def test_check_looks_at_the_patterns_that_count(self):
        times = {"first": {"known": 2.0, "stream": 1.0}, "second": {"known": 2.0, "stream": 9.0}}
        self.assertEqual(self.run_with(times, "--check=1.1")[0], 0)
        times["second"]["known"] = 2.3
        code, text = self.run_with(times, "--check=1.1")
        self.assertEqual(code, 1)
        self.assertIn("above the limit: known 8", text)

    def test_a_point_that_one_of_them_lacks_is_no_row(self):
        _, text = self.run_with({"first": {"known": 2.0, "half": 1.0}, "second": {"known": 2.0}}, "--json")
        self.assertEqual([row["pattern"] for row in json.loads(text)], ["known"])


class Reading(unittest.TestCase):
    def test_sizes_go_both_ways(self):
        for text in ("1", "1000", "64K", "4M"):
            self.assertEqual(size_text(size_of(text)), text)
        self.assertEqual(size_of("1g"), 1 << 30)

    def test_an_unshaped_link_has_no_burst(self):
        self.assertEqual((burst_of("none"), burst_of("1gbit") > 0, burst_of("10gbit") > 0), (0, True, True))

    def test_objects_among_other_lines(self):
        text = 'lite-stats x=1\n{"bytes": 8}\n{"byt\n{"bytes": 9}\n'
        broken = []
        self.assertEqual([point["bytes"] for point in json_objects(text, broken.append)], [8, 9])
        self.assertEqual(broken, ['{"byt'])
        with self.assertRaises(ValueError):
            json_objects(text)

    def test_what_is_no_installation_raises_before_anybody_ends(self):
        self.assertEqual(read_installation("a=/b:mpich,X=1,2")["environment"], {"X": "1,2"})
        with self.assertRaises(ValueError):
            read_installation("/b")

    def test_an_end_has_the_code_that_is_asked_for(self):
        for arguments, code in ((("why",), 2), (("why", 1), 1)):
            said = io.StringIO()
            with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as end:
                die(*arguments)
            self.assertEqual((end.exception.code, said.getvalue().split(": ")[1]), (code, "why\n"))


class Sums(unittest.TestCase):
    def test_checks_are_counted_and_a_program_without_checks_is_one(self):
        self.assertEqual(test_log.count(True, CHECKS.format(100, 21, 0, 0)), (21, 0))
        self.assertEqual(test_log.count(False, CHECKS.format(80, 10, 1, 1)), (8, 2))
        self.assertEqual(test_log.count(True, ""), (1, 0))
        self.assertEqual(test_log.count(False, ""), (0, 1))

    def test_a_program_that_fails_after_good_checks_is_a_failure_more(self):
        self.assertEqual(test_log.count(False, CHECKS.format(100, 5, 0, 0)), (5, 1))

    def sums(self, build, log):
        """(stdout, stderr) as scripts/check calls it."""
        done = subprocess.run([sys.executable, "-B", "-m", "chlite.test_log", build, log], cwd=os.path.join(TOP, "scripts"),
                              capture_output=True, text=True, check=True)
        return done.stdout, done.stderr

    def test_logs_of_the_parallel_harness(self):
        with tempfile.TemporaryDirectory() as build:
            os.makedirs(os.path.join(build, "test", "unit"))
            for name, verdict, output in (("a", "PASS", CHECKS.format(100, 3, 0, 0)), ("b", "FAIL", "x.c:9:F:core: no\n" + CHECKS.format(50, 2, 1, 0))):
                stem = os.path.join(build, "test", "unit", name)
                for suffix, content in ((".trs", f":test-result: {verdict}\n"), (".log", output)):
                    with open(stem + suffix, "w", encoding="utf-8") as text:
                        text.write(content)
            self.assertEqual(self.sums(build, "/nowhere"), ("4 1\n", "      failed: test/unit/b\n    | x.c:9:F:core: no\n"))

    def test_the_log_of_the_serial_harness(self):
        with tempfile.TemporaryDirectory() as build:
            log = os.path.join(build, "check.log")
            with open(log, "w", encoding="utf-8") as text:
                text.write(CHECKS.format(100, 3, 0, 0) + "PASS: a\nAssertion\nFAIL: b\n")
            passed, said = self.sums(build, log)
            self.assertEqual(passed, "3 1\n")
            self.assertIn("failed: b", said)


if __name__ == "__main__":
    outcome = unittest.main(exit=False).result
    # as Check's programs say it: scripts/check sums these lines up
    bad = len(outcome.failures)
    print(f"{100 if outcome.wasSuccessful() else 0}%: Checks: {outcome.testsRun}, Failures: {bad}, Errors: {len(outcome.errors)}")
    sys.exit(0 if outcome.wasSuccessful() else 1)
