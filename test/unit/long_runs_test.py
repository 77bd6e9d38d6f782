#!/usr/bin/env python3
"""scripts/long-runs: which target comes next, with which seed; the sums; the account; what is left of turns that are stopped."""
import os
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
SCRIPT = os.path.join(TOP, "scripts", "long-runs")
sys.path.insert(0, os.path.join(TOP, "scripts"))

from script_module import script_module  # noqa: E402

long_runs = script_module(SCRIPT)


def row(target, first_seed=0, runs=10, cpu_s=5, findings=0):
    return {"date": "2026-11-27", "commit": "abc", "wire": 7, "target": target, "first_seed": first_seed, "runs": runs, "cpu_s": cpu_s, "findings": findings}


def stand_in(directory, text):
    """A build directory whose engine_sim is a shell script."""
    where = os.path.join(directory, "sim", "test", "sim")
    os.makedirs(where)
    with open(os.path.join(where, "engine_sim"), "w", encoding="utf-8") as script:
        script.write(f"#!/bin/sh\n{text}\n")
    os.chmod(os.path.join(where, "engine_sim"), 0o755)


class NextTest(unittest.TestCase):
    def test_least_time_comes_first(self):
        rows = [row("frame", cpu_s=10), row("packet", cpu_s=4), row("packet", cpu_s=5)]
        self.assertEqual(long_runs.next_target(rows, ["frame", "packet"]), "packet")
        self.assertEqual(long_runs.next_target(rows, ["frame", "packet", "table"]), "table")
        self.assertEqual(long_runs.next_target([], ["frame", "packet"]), "frame")

    def test_no_seed_twice(self):
        rows = [row("engine_sim", 500, 20), row("engine_sim", 100, 20), row("device_sim", 9000, 20)]
        self.assertEqual(long_runs.next_seed(rows, "engine_sim"), 520)
        self.assertEqual(long_runs.next_seed(rows, "probe_sim"), long_runs.FIRST_SEED)


class AccountTest(unittest.TestCase):
    def test_written_and_read(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "a.csv")
            self.assertEqual(long_runs.read_account(path), [])
            rows = [row("engine_sim", 7), row("frame", findings=1)]
            for one in rows:
                long_runs.add_to_account(path, one)
            self.assertEqual(long_runs.read_account(path), rows)

    def test_a_broken_line_is_refused(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "a.csv")
            long_runs.add_to_account(path, row("frame"))
            with open(path, "a", encoding="utf-8") as text:
                text.write("2026-11-27,abc,7,frame\n")
            self.assertRaises(ValueError, long_runs.read_account, path)

    def test_sums(self):
        text = long_runs.page([row("engine_sim", 1, 30, 3), row("engine_sim", 31, 40, 4), row("device_sim", 1, 1000, 1), row("frame", 0, 5_000_000, 99, 1)])
        self.assertIn("| engine_sim | 70 | 7 | 0 |", text)
        self.assertIn("| frame | 5,000,000 | 99 | 1 |", text)
        self.assertIn("| probe_sim | 0 | 0 | 0 |", text)
        self.assertIn("1,070 runs of", text)
        self.assertIn("0 findings.", text)

    def test_the_page_in_docs_is_that_of_the_account_in_docs(self):
        with open(os.path.splitext(long_runs.ACCOUNT)[0] + ".md", encoding="utf-8") as text:
            self.assertEqual(text.read(), long_runs.page(long_runs.read_account(long_runs.ACCOUNT)))


class TurnsTest(unittest.TestCase):
    def turns(self, directory, text, seconds=0.05):
        stand_in(directory, text)
        wanted = long_runs.arguments(["--minutes", str(seconds / 60), "--turn", "1", "--nice", "0", "--account", os.path.join(directory, "a.csv"), "engine_sim"])
        return long_runs.Turns(wanted, directory)

    def test_a_turn_is_written_down(self):
        with tempfile.TemporaryDirectory() as directory:
            turns = self.turns(directory, 'echo "100%: Checks: 48, Failures: 0, Errors: 0"', 3)
            turns.work(["engine_sim"])
            found = long_runs.read_account(os.path.join(directory, "a.csv"))
            self.assertGreaterEqual(len(found), 2)
            self.assertEqual([one["first_seed"] for one in found[:2]], [long_runs.FIRST_SEED, long_runs.FIRST_SEED + 48])
            self.assertEqual((found[0]["runs"], found[0]["findings"], turns.findings), (48, 0, 0))

    def test_a_finding_ends_its_target(self):
        with tempfile.TemporaryDirectory() as directory:
            turns = self.turns(directory, 'echo "repeat with: engine_sim --seed 5"; exit 134', 30)
            turns.work(["engine_sim"])
            found = long_runs.read_account(os.path.join(directory, "a.csv"))
            self.assertEqual([(one["runs"], one["findings"]) for one in found], [(0, 1)])
            self.assertEqual(turns.findings, 1)

    def test_stopped_turns_are_not_counted(self):
        with tempfile.TemporaryDirectory() as directory:
            turns = self.turns(directory, "exec sleep 1000", 1000)
            thread = long_runs.threading.Thread(target=turns.work, args=(["engine_sim"],))
            thread.start()
            deadline = time.monotonic() + 10
            while not turns.children and time.monotonic() < deadline:
                time.sleep(0.01)
            turns.stop()
            thread.join(10)
            self.assertFalse(thread.is_alive())
            self.assertFalse(os.path.exists(os.path.join(directory, "a.csv")))

    def test_usage(self):
        for words in (["no_such_target"], ["--minutes", "0"], ["--turn", "-1"], ["--bad"]):
            result = subprocess.run([SCRIPT] + words, capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 2, words)
            self.assertIn("usage:", result.stderr)


if __name__ == "__main__":
    unittest.main()
