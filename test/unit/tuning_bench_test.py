#!/usr/bin/env python3
"""What test/bench/tuning plans and reckons: every heuristic has a place, and gains are those of the same round."""
import argparse
import os
import re
import sys
import unittest
from unittest import mock

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from script_module import script_module  # noqa: E402

tuning = script_module(os.path.join(TOP, "test", "bench", "tuning"))


def sample(name, number, us, count=8):
    return {"name": name, "pattern": "pingpong", "bytes": count, "round": number, "us": us}


class Tuning(unittest.TestCase):
    def test_every_heuristic_has_a_place_and_a_line_in_the_documentation(self):
        with open(os.path.join(TOP, "src", "mplite", "tuning", "tuning.h"), encoding="utf-8") as text:
            names = re.findall(r'^  X\(k\w+,\s*"(\w+)"', text.read(), re.MULTILINE)
        self.assertGreater(len(names), 15)
        self.assertEqual(sorted(names), sorted([*tuning.PLACES, *tuning.NOT_MEASURED]))
        with open(os.path.join(TOP, "docs", "tuning.md"), encoding="utf-8") as text:
            self.assertEqual(re.findall(r"^\| `(\w+)` \|", text.read(), re.MULTILINE), names)

    def test_places_are_patterns_of_compare_and_their_sizes(self):
        for places in tuning.PLACES.values():
            for pattern, sizes in places.items():
                self.assertIn(pattern, [*tuning.PATTERNS, "shared_memory"])
                self.assertEqual(sizes != "", pattern in ("pingpong", "stream", "bidirectional", "overlap"), pattern)

    def test_those_of_one_pattern_share_a_run(self):
        plan = tuning.plan_of(["repoll", "first_look", "coalesce"])
        self.assertEqual(plan["pingpong"], (["repoll", "first_look"], [8, 1024, 2048, 8192, 32768, 57344]))
        self.assertEqual(plan["rate"], (["coalesce"], []))

    def test_variants_differ_by_the_switch(self):
        self.assertEqual(tuning.variants_of("/p", ["repoll"])[0::2], ["auto=/p,LITE_TUNING=auto", "repoll=/p,LITE_TUNING=-repoll"])

    def test_gain_is_the_median_of_rounds(self):
        samples = []
        for number, slow in enumerate((1.0, 2.0, 10.0)):    # the machine is slower in some
            samples += [sample("auto", number, 10 * slow), sample("again", number, 10.1 * slow), sample("first_look", number, 11 * slow)]
        row, = tuning.rows_of("pingpong", ["first_look"], samples)
        self.assertAlmostEqual(row["gain"], 10)
        self.assertAlmostEqual(row["noise"], 1)
        self.assertEqual(row["rounds"], 3)

    def test_sizes_where_it_does_not_act_are_left_out(self):
        samples = [sample(name, 0, 10, 1 << 20) for name in ("auto", "again", "first_look")]
        self.assertEqual(tuning.rows_of("pingpong", ["first_look"], samples), [])

    def test_overlap_is_in_points(self):
        points = [{"name": name, "pattern": "overlap", "bytes": 1, "round": 0, "availability": value} for name, value in (("a", 90.0), ("b", 85.0))]
        self.assertAlmostEqual(tuning.gain("overlap", *points), 5)

    def test_shared_memory_prints_a_list_of_rows(self):
        rows = [{"pattern": "known", "bytes": 8, "us": {"auto": 1.0, "again": 1.01, "pacing": 1.1}, "ratio": {"again": 1.01, "pacing": 1.1}}]
        with mock.patch.object(tuning, "run", return_value=(rows, True)):
            found, well = tuning.rows_of_shared_memory(["pacing"], argparse.Namespace(rounds=3, seconds=0.1, prefix="/p"), ".")
        self.assertTrue(well)
        self.assertEqual([(row["pattern"], round(row["gain"]), round(row["noise"])) for row in found], [("shared memory, known", 10, 1)])

    def test_what_earns_little_is_named(self):
        rows = [{"heuristic": name, "pattern": "rate", "bytes": 8, "gain": value, "low": value, "high": value, "noise": 0.1} for name, value in (("repoll", 1.9), ("halves", 2))]
        self.assertIn("Less than 2 everywhere: repoll.", tuning.table(rows, ["repoll", "halves"]))


if __name__ == "__main__":
    unittest.main()
