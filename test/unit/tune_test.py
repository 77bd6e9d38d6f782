#!/usr/bin/env python3
"""What scripts/tune reckons and writes: which protocol a sample stands for, the cutoffs, and a profile in which other lines stay."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from script_module import script_module  # noqa: E402

TUNE = os.path.join(TOP, "scripts", "tune")
tune = script_module(TUNE)


def result(times, rounds=3):
    """{bytes: {protocol: us}}; the rounds differ in speed, not in what is faster."""
    return {"samples": [{"bytes": count, "name": name, "round": number, "us": us * (1 + number)} for count, by_name in times.items() for name, us in by_name.items()
                        for number in range(rounds)], "about": {"where": "hosts a,b", "rates": ["link"]}}


USUAL = {
    64: {"short": 3.0, "eager": 3.4, "rendezvous": 9.9, "auto": 3.0},
    4096: {"short": 5.0, "eager": 5.2, "rendezvous": 9.9, "auto": 5.0},
    8192: {"short": 7.0, "eager": 6.5, "rendezvous": 9.9, "auto": 6.6},
    65536: {"short": 20.0, "eager": 20.0, "rendezvous": 20.1, "auto": 20.0},
    131072: {"short": 30.0, "eager": 30.0, "rendezvous": 36.0, "auto": 36.0},
    262144: {"short": 50.0, "eager": 50.0, "rendezvous": 52.0, "auto": 50.0},
    524288: {"short": 90.0, "eager": 90.0, "rendezvous": 91.0, "auto": 90.0},
    2097152: {"short": 300.0, "eager": 300.0, "rendezvous": 400.0, "auto": 300.0},
}


class Choosing(unittest.TestCase):
    def test_samples_stand_for_the_protocol_that_they_were_forced_to(self):
        curve = {point["bytes"]: point for point in tune.curve_of(result(USUAL))}
        self.assertEqual(set(curve[64]["us"]), {"short", "eager", "auto"})
        self.assertEqual(set(curve[65536]["us"]), {"eager", "auto"})
        self.assertEqual(set(curve[131072]["us"]), {"eager", "rendezvous", "auto"})
        self.assertEqual(curve[64]["us"]["short"], 6.0)
        self.assertAlmostEqual(curve[131072]["ratio"]["rendezvous/eager"], 1.2)
        self.assertAlmostEqual(curve[8192]["ratio"]["eager/short"], 6.5 / 7)

    def test_ratios_are_of_the_same_round(self):
        samples = [{"bytes": 131072, "name": name, "round": number, "us": us} for name, by_round in (("eager", (10, 100, 30)), ("rendezvous", (20, 110, 33))) for number, us in enumerate(by_round)]
        self.assertAlmostEqual(tune.curve_of({"samples": samples})[0]["ratio"]["rendezvous/eager"], 1.1)
        # a round that one of them did not end counts for neither
        self.assertAlmostEqual(tune.curve_of({"samples": samples[:-1]})[0]["ratio"]["rendezvous/eager"], 1.55)

    def test_samples_without_a_time_count_for_nothing(self):
        whole = result(USUAL)
        holes = [dict(sample, us=us, round=sample["round"] + 3) for sample in whole["samples"] for us in (None, 0, float("nan"), "fast")]
        self.assertEqual(tune.curve_of({"samples": holes + whole["samples"]}), tune.curve_of(whole))
        self.assertEqual(tune.curve_of({"samples": holes}), [])
        # no round in which both have one
        apart = [{"bytes": 131072, "name": name, "round": number, "us": 30.0} for number, name in enumerate(("eager", "rendezvous"))]
        self.assertEqual(tune.curve_of({"samples": apart})[0]["ratio"], {})

    def test_cutoffs_are_where_the_protocols_cross(self):
        curve = tune.curve_of(result(USUAL))
        self.assertEqual(tune.choose(curve, 3), {"LITE_SHORT_MAX": 4096, "LITE_EAGER_MAX": 262144})
        for point in curve:
            point["us"].pop("auto")
        self.assertEqual(tune.choose(curve, 10)["LITE_EAGER_MAX"], 131072)
        self.assertEqual(tune.choose(curve, 50)["LITE_EAGER_MAX"], tune.EAGER_LEAST)
        # more than the credit bears is not suggested, however fast
        self.assertEqual(tune.choose(curve, 0)["LITE_EAGER_MAX"], 524288)

    def test_a_number_must_gain_something_over_auto(self):
        for us, wanted in ((30.0, "auto"), (32.5, "auto"), (33.5, 262144)):
            self.assertEqual(tune.choose(tune.curve_of(result(USUAL | {131072: USUAL[131072] | {"auto": us}})), 3)["LITE_EAGER_MAX"], wanted)

    def short_max(self, times):
        return tune.choose(tune.curve_of(result({count: {"short": us, "eager": 5.0} for count, us in zip((64, 128, 256, 512, 1024), times)})), 3)["LITE_SHORT_MAX"]

    def test_one_odd_time_does_not_decide(self):
        self.assertEqual(self.short_max((4.0, 4.5, 5.04, 5.2, 5.3)), 256)    # within the tolerance
        self.assertEqual(self.short_max((9.0, 4.0, 4.0, 4.0, 6.0)), 512)
        self.assertEqual(self.short_max((4.0, 90.0, 4.0, 4.0, 4.0)), 1024)
        self.assertEqual(self.short_max((4.0, 6.0, 6.0, 2.0, 6.0)), 512)
        self.assertEqual(self.short_max((6.0, 6.0, 6.0, 2.0, 6.0)), 0)


def shaken(times, rounds, by):
    """As on a machine with other work: in round number N what is in `by`[N] takes so many times as long, {protocol: factor}."""
    whole = result(times, rounds)
    for sample in whole["samples"]:
        sample["us"] *= by[sample["round"]].get(sample["name"], 1.0)
    return whole


# No protocol is better than another anywhere.
ALIKE = {count: dict.fromkeys(("short", "eager", "rendezvous", "auto"), 3.0 + count / 5000) for count in USUAL}


class Doubting(unittest.TestCase):
    def doubts(self, whole):
        return tune.doubts(whole, tune.choose(tune.curve_of(whole), 3))

    def test_a_gain_that_every_round_has_is_believed(self):
        self.assertEqual(self.doubts(result(USUAL)), [])
        self.assertEqual(self.doubts(shaken(USUAL, 3, [{"short": 1.02}, {}, {"auto": 1.02}])), [])

    def test_the_defaults_need_no_proof(self):
        whole = shaken(ALIKE, 3, [{}, {"eager": 2.0}, {"rendezvous": 2.0, "eager": 3.0}])
        self.assertEqual(tune.choose(tune.curve_of(whole), 3), {"LITE_SHORT_MAX": 8192, "LITE_EAGER_MAX": "auto"})    # the longest that was measured
        self.assertEqual(self.doubts(whole), [])

    def test_a_gain_by_chance_is_doubted(self):
        # short was disturbed in two rounds of three, once by little and once by much
        found = self.doubts(shaken(ALIKE, 3, [{}, {"short": 1.1}, {"short": 2.0}]))
        self.assertEqual(len(found), 1)
        self.assertRegex(found[0], r"^LITE_SHORT_MAX=0 gains 8\.9 % over the default, 32K, and the rounds differ by 100\.0 % in that$")
        found = self.doubts(shaken(USUAL, 3, [{"auto": 1.3}, {}, {"auto": 1.6}]))
        self.assertEqual(len(found), 1)
        self.assertRegex(found[0], r"^LITE_EAGER_MAX=256K gains \d+\.\d % over the default, auto, and the rounds differ by 60\.0 % in that$")

    def test_one_disturbed_round_of_five_counts_for_nothing(self):
        self.assertEqual(self.doubts(shaken(USUAL, 5, [{}, {}, {"short": 5.0, "auto": 5.0}, {}, {}])), [])
        self.assertEqual(len(self.doubts(shaken(USUAL, 4, [{}, {}, {"short": 5.0, "auto": 5.0}, {}]))), 2)

    def test_a_single_round_proves_nothing(self):
        found = self.doubts(result(USUAL, 1))
        self.assertEqual([sentence.split("=")[0] for sentence in found], ["LITE_SHORT_MAX", "LITE_EAGER_MAX"])
        self.assertIn("a single round", found[0])


class Writing(unittest.TestCase):
    def run_tune(self, directory, *arguments, times=None, whole=None):
        source = os.path.join(directory, "compare.json")
        with open(source, "w", encoding="utf-8") as text:
            json.dump(whole or result(times or USUAL), text)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LITE_") and name != "XDG_CONFIG_HOME"}
        environment["HOME"] = directory
        return subprocess.run([sys.executable, TUNE, "--from", source, *arguments], capture_output=True, text=True, check=False, env=environment)

    def test_profile_is_where_the_device_looks(self):
        with tempfile.TemporaryDirectory() as directory:
            done = self.run_tune(directory)
            path = os.path.join(directory, ".config", "ch_lite", "profile")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(path, done.stdout)
            self.assertRegex(done.stdout, r"\n +4K +10\.00 +10\.40 +- +10\.00 +-  <- LITE_SHORT_MAX\n")
            self.assertRegex(done.stdout, r"\n +256K +- +100\.00 +104\.00 +100\.00 +1\.04  <- LITE_EAGER_MAX\n")
            with open(path, encoding="utf-8") as text:
                self.assertRegex(text.read(), r"\A# scripts/tune, \d{4}-\d\d-\d\d: hosts a,b, rate link\nLITE_SHORT_MAX=4K\nLITE_EAGER_MAX=256K\n\Z")
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o644)

    def test_auto_is_written_as_it_is(self):
        with tempfile.TemporaryDirectory() as directory:
            done = self.run_tune(directory, times=USUAL | {131072: USUAL[131072] | {"auto": 30.0}})
            self.assertRegex(done.stdout, r"\nLITE_SHORT_MAX=4K\nLITE_EAGER_MAX=auto\n")
            with open(os.path.join(directory, ".config", "ch_lite", "profile"), encoding="utf-8") as text:
                self.assertRegex(text.read(), r"\nLITE_SHORT_MAX=4K\nLITE_EAGER_MAX=auto\n\Z")

    def test_other_lines_stay_and_a_second_run_replaces_the_first(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "mine")
            with open(path, "w", encoding="utf-8") as text:
                text.write("# my own\n LITE_EAGER_MAX = 7\nLITE_CREDITS=4M\n")
            os.chmod(path, 0o600)
            for _ in range(2):
                self.assertEqual(self.run_tune(directory, "--profile", path).returncode, 0)
            with open(path, encoding="utf-8") as text:
                self.assertRegex(text.read(), r"\A# my own\nLITE_CREDITS=4M\n# scripts/tune, .*\nLITE_SHORT_MAX=4K\nLITE_EAGER_MAX=256K\n\Z")
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
            self.assertEqual(sorted(os.listdir(directory)), ["compare.json", "mine"])

    def test_figures_of_test_hosts_are_written_only_where_asked(self):
        with tempfile.TemporaryDirectory() as directory:
            whole = result(USUAL)
            whole["about"]["where"] = "test hosts (network namespaces, veth)"
            done = self.run_tune(directory, whole=whole)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("LITE_EAGER_MAX=256K", done.stdout)
            self.assertIn("these are figures of test hosts", done.stderr)
            self.assertEqual(os.listdir(directory), ["compare.json"])
            self.assertEqual(self.run_tune(directory, "--profile", os.path.join(directory, "mine"), whole=whole).returncode, 0)
            self.assertEqual(sorted(os.listdir(directory)), ["compare.json", "mine"])

    def test_the_table_is_there_where_the_profile_cannot_be_written(self):
        with tempfile.TemporaryDirectory() as directory:
            done = self.run_tune(directory, "--profile", "/proc/nowhere/profile")
            self.assertEqual(done.returncode, 2)
            self.assertIn("LITE_EAGER_MAX=256K", done.stdout)
            self.assertIn("the profile cannot be written", done.stderr)

    def test_a_loaded_machine_writes_nothing(self):
        loaded = shaken(ALIKE, 3, [{}, {"short": 1.1}, {"short": 2.0}])
        with tempfile.TemporaryDirectory() as directory:
            done = self.run_tune(directory, whole=loaded)
            self.assertEqual(done.returncode, 1)
            self.assertIn("tune: LITE_SHORT_MAX=0 gains 8.9 % over the default, 32K, and the rounds differ by 100.0 % in that\ntune: nothing is written: measure while", done.stderr)
            self.assertRegex(done.stdout, r"\n +4K +\d")    # what was measured
            self.assertEqual(os.listdir(directory), ["compare.json"])
            done = self.run_tune(directory, "--no-write", "--json", whole=loaded)
            self.assertEqual(done.returncode, 0)
            self.assertEqual(len(json.loads(done.stdout)["doubts"]), 1)
            # what was there stays
            with open(os.path.join(directory, "mine"), "w", encoding="utf-8") as text:
                text.write("LITE_SHORT_MAX=16K\n")
            self.assertEqual(self.run_tune(directory, "--profile", os.path.join(directory, "mine"), whole=loaded).returncode, 1)
            with open(os.path.join(directory, "mine"), encoding="utf-8") as text:
                self.assertEqual(text.read(), "LITE_SHORT_MAX=16K\n")

    def test_nothing_is_written_when_it_cannot_be_or_need_not(self):
        with tempfile.TemporaryDirectory() as directory:
            done = self.run_tune(directory, "--no-write", "--json")
            self.assertEqual(json.loads(done.stdout)["chosen"], {"LITE_SHORT_MAX": 4096, "LITE_EAGER_MAX": 262144})
            self.assertIsNone(json.loads(done.stdout)["profile"])
            done = self.run_tune(directory, times={64: USUAL[64]})
            self.assertEqual(done.returncode, 2)
            self.assertIn("some of --sizes below and some above 64K", done.stderr)
            done = self.run_tune(directory, times={count: dict.fromkeys(by_name, 0) for count, by_name in USUAL.items()})
            self.assertEqual(done.returncode, 2)
            self.assertIn("some of --sizes below and some above 64K", done.stderr)
            done = self.run_tune(directory, "--profile", os.path.join(directory, "compare.json", "profile"))
            self.assertEqual(done.returncode, 2)
            self.assertIn("cannot be written", done.stderr)
            self.assertEqual(os.listdir(directory), ["compare.json"])


if __name__ == "__main__":
    unittest.main()
