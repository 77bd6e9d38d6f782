#!/usr/bin/env python3
"""test/soak: what counts as growth; verdicts; reports; what is left of a soak that is stopped."""
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
SOAK = os.path.join(TOP, "test", "soak")
sys.path[:0] = [SOAK, os.path.join(TOP, "scripts")]

import judge  # noqa: E402
import plot  # noqa: E402
import report  # noqa: E402
import strangers  # noqa: E402
import watch  # noqa: E402
from script_module import script_module  # noqa: E402

run = script_module(os.path.join(SOAK, "run"))
MB = judge.MB
HOUR = 3600
BOUND = judge.Bound(4 * MB, 0.03)


def series(value_at, seconds=2 * HOUR, every=30):
    return [(t, value_at(t)) for t in range(0, seconds + 1, every)]


def noise(t):
    return random.Random(t).uniform(-0.5, 0.5) * MB


def sample(rank=0, t=0.0, **more):
    found = {"rank": rank, "pid": 100 + rank, "t": t, "round": int(t), "messages": int(10 * t), "bytes": int(1000 * t), "checks": int(20 * t), "spawned": 1, "connected": 2,
             "interruptions": 3, "rss": 60 * MB, "rss_peak": 61 * MB, "heap": 40 * MB, "kept": 5 * MB, "descriptors": 25, "threads": 2, "slowest": 0.5, "slowest_step": "threads",
             "counters": {"short_msgs": int(5 * t), "put_msgs": int(t), "served_msgs": 77, "bytes_out": int(900 * t)}, "levels": {"posted_receives": 0}}
    return {**found, **more}


def samples(ranks=2, count=40, **more):
    """`more`: functions of (rank, t)."""
    return [sample(rank, 30.0 * i, **{key: value(rank, 30.0 * i) for key, value in more.items()}) for i in range(count) for rank in range(ranks)]


def watched(**more):
    return {"code": 0, "stall": "", "quiet": 2.0, "stopped": "", "text": "soak: 40 rounds, 1000 checks, 0 failed\n", "strangers": [], "waits": "", **more}


def failures(found, seen=None, ranks=2):
    return {row.name: row.why for row in judge.verdict(found, seen or watched(), ranks, 2 * HOUR) if row.why}


class Growth(unittest.TestCase):
    # what happens, value by seconds, whether it is growth
    TABLE = (
        ("nothing", lambda t: 60 * MB, False),
        ("noise", lambda t: 60 * MB + noise(t), False),
        ("a warm-up that ends", lambda t: 60 * MB + min(t, HOUR / 2) / HOUR * 40 * MB, False),
        ("pools that fill ever more slowly", lambda t: 80 * MB - 20 * MB * 0.5 ** (t / (HOUR / 4)), False),
        ("less in the end", lambda t: 60 * MB - t / HOUR * 10 * MB, False),
        ("peaks, now and then", lambda t: 60 * MB + (50 * MB if t // 30 % 9 == 0 else 0), False),
        ("a leak of 3 MB an hour", lambda t: 60 * MB + t / HOUR * 3 * MB + noise(t), True),
        ("a leak below noise of 20 MB", lambda t: 60 * MB + t / HOUR * 10 * MB + 20 * noise(t), True),
        ("a leak of 1 MB an hour: within the bound", lambda t: 60 * MB + t / HOUR * MB + noise(t), False),
        ("a jump in the last quarter", lambda t: (60 if t < 1.6 * HOUR else 70) * MB, True),
        ("a leak that begins late", lambda t: 60 * MB + max(0, t - HOUR) / HOUR * 10 * MB, True),
        ("a leak of a large job, within 3 %", lambda t: 1000 * MB + t / HOUR * 15 * MB, False),
        ("a leak of a large job", lambda t: 1000 * MB + t / HOUR * 40 * MB, True),
    )

    def test_by_table(self):
        for what, value_at, grows in self.TABLE:
            *_, why = judge.growth(series(value_at), BOUND)
            self.assertEqual(bool(why), grows, f"{what}: {why}")

    def test_a_slope_alone_is_enough(self):
        # the medians are half of the time apart, the slope is of three quarters
        points = series(lambda t: 60 * MB + t / HOUR * 3.5 * MB)
        before, after, hourly, why = judge.growth(points, judge.Bound(3.6 * MB))
        self.assertLess(after - before, 3.6 * MB)
        self.assertAlmostEqual(hourly / MB, 3.5, places=1)
        self.assertIn("a slope of", why)

    def test_a_descriptor_more_is_growth_and_one_less_is_none(self):
        for change, grows in ((1, True), (0, False), (-1, False)):
            *_, why = judge.growth(series(lambda t, by=change: 25 + (by if t > HOUR else 0)), judge.BOUNDS["descriptors"])
            self.assertEqual(bool(why), grows, str(change))
        # a stranger is there in some of the samples, at times in most of the last quarter
        for share in (2, 3):
            *_, why = judge.growth(series(lambda t, n=share: 25 + (t > HOUR and t // 30 % n != 0)), judge.BOUNDS["descriptors"])
            self.assertEqual(why, "")

    def test_too_few_points_are_no_result(self):
        self.assertIsNone(judge.growth([], BOUND))
        self.assertIsNone(judge.growth([(0, 1)], BOUND))
        self.assertIsNone(judge.growth(series(lambda t: 1, seconds=240), BOUND))
        self.assertIsNotNone(judge.growth(series(lambda t: 1, seconds=360), BOUND))
        # all in the first quarter and the last
        self.assertIsNone(judge.growth([(t, 1) for t in (0, 1, 2, 3, 97, 98, 99, 100)], BOUND))

    def test_the_slope_is_not_moved_by_outliers(self):
        points = [(t, 2 * t + (10**6 if t % 10 == 0 else 0)) for t in range(1, 100)]
        self.assertAlmostEqual(judge.slope(points), 2, places=6)
        self.assertEqual(judge.slope([(1, 5)]), 0.0)
        self.assertLessEqual(len(judge.thinned(points * 10, 200)), 200)


class Verdict(unittest.TestCase):
    def test_a_soak_that_is_well(self):
        rows = judge.verdict(samples(), watched(strangers=[("garbage at rank 0", "")]), 2, 2 * HOUR)
        self.assertEqual([row.name for row in rows if row.why], [])
        self.assertEqual(len(rows), 3 + 5 * 2 + 2 * 2 + 1)

    def test_each_rank_is_judged(self):
        found = failures(samples(rss=lambda rank, t: (60 + rank * t / 60) * MB, descriptors=lambda rank, t: 25 + (rank == 0 and t > 600)))
        self.assertEqual(set(found), {"rank 1: no growth: resident memory in use", "rank 0: no growth: descriptors"})

    def test_what_malloc_keeps_is_no_leak_within_its_own_bound(self):
        def kept(most):
            return {"rss": lambda rank, t: 60 * MB + (most if t > 700 else 0), "kept": lambda rank, t: 5 * MB + (most if t > 700 else 0)}
        self.assertEqual(failures(samples(**kept(22 * MB))), {})
        self.assertEqual(list(failures(samples(**kept(40 * MB)))), ["rank 0: no growth: resident memory", "rank 1: no growth: resident memory"])

    def test_wrong_data_is_named(self):
        text = "soak: wrong: rank 2, round 9, probe, seed 7: probed: 8 bytes from 0: byte 0 is wrong (x.h:1: wrong < 0)\n"
        found = failures(samples(), watched(code=4, text=text))
        self.assertIn("rank 2, round 9, probe, seed 7", found["all data is right"])
        self.assertIn("status 4", found["the job ends with status 0"])

    def test_a_stall_and_its_places_are_named(self):
        why = "nothing moved for 61 s (round, step): rank 0: 12 spawn; rank 1: 12 spawn"
        found = failures(samples(), watched(code=None, text="", stall=why))
        self.assertEqual(found["rounds go on"], why)
        self.assertIn("the job ends with status 0", found)

    def test_a_status_that_is_not_0_or_no_closing_line_is_a_failure(self):
        for seen in (watched(code=1), watched(text=""), watched(code=None)):
            self.assertEqual(list(failures(samples(), seen)), ["the job ends with status 0"])

    def test_counters_that_fall_are_named(self):
        found = failures(samples(counters=lambda rank, t: {"short_msgs": int(t), "writes": 10 if rank == 1 and t > 300 else 11}))
        self.assertEqual(found, {"rank 1: counters only grow": "these got less: writes"})
        self.assertIn("no counters", failures(samples(counters=lambda rank, t: {}))["rank 0: counters only grow"])

    def test_requests_that_stay_open_are_named(self):
        found = failures(samples(levels=lambda rank, t: {"requests_pending": 40 * rank}))
        self.assertEqual(found, {"rank 1: nothing stays open": "requests_pending 40"})

    def test_who_is_stopped_has_not_run_for_its_time(self):
        found = failures(samples(), watched(code=None, text="", stopped="SIGINT"))
        self.assertEqual(found, {"2 hours": "stopped by SIGINT after 1170 s"})

    def test_without_samples_everything_fails_and_nothing_breaks(self):
        found = failures([], watched(code=255, text=""))
        self.assertEqual(found["rounds go on"], "no round was done")
        self.assertEqual(found["rank 0: no growth: resident memory"], "no sample")

    def test_strangers_that_are_let_in_are_named(self):
        seen = watched(strangers=[("garbage at rank 0", ""), ("forged at rank 1", "was never challenged")])
        self.assertEqual(failures(samples(), seen), {"strangers are turned away": "forged at rank 1: was never challenged"})

    def test_growth_in_a_run_of_few_rounds_may_be_the_warm_up(self):
        grown = {"rss": lambda rank, t: (60 + rank * t / 60) * MB}
        name = "rank 1: no growth: resident memory in use"
        self.assertIn("with 10 rounds in the first quarter", failures(samples(round=lambda rank, t: int(t / 30), **grown))[name])
        self.assertNotIn("rounds", failures(samples(**grown))[name])

    def test_strangers_do_what_can_be_judged(self):
        self.assertIn("forged", strangers.kinds_for(1, 2, 4, True))
        self.assertNotIn("forged", strangers.kinds_for(1, 2, 4, False))
        for rank, hosts, ranks in ((2, 2, 4), (1, 1, 4), (0, 2, 2)):
            self.assertEqual(strangers.kinds_for(rank, hosts, ranks, True), strangers.ANYWHERE)
        with open(strangers.STRANGER, encoding="utf-8") as text:
            known = set(re.findall(r'"(\w+)"', " ".join(re.findall(r"KIND (?:==|in) .*", text.read()))))
        self.assertEqual(set(strangers.ANYWHERE + strangers.TO_RANK_OF_HOST + strangers.WITH_PROOF) - known, set())

    def test_a_c_library_that_does_not_tell_its_heap_is_not_judged_by_it(self):
        self.assertEqual(failures(samples(heap=lambda rank, t: -1, kept=lambda rank, t: -1)), {})


class Report(unittest.TestCase):
    ABOUT = {"date": "2026-11-27", "cores": 2, "mpi": "MPICH 4.0.2", "ranks": 2, "hosts": 2, "seed": 1, "command": "test/soak/run --prefix PREFIX"}

    def of(self, found, seen=None):
        seen = seen or watched()
        return report.result_of(found, seen, judge.verdict(found, seen, 2, 2 * HOUR), self.ABOUT)

    def test_totals_are_those_of_the_last_samples(self):
        sums = self.of(samples())["totals"]
        self.assertEqual((sums["rounds"], sums["messages"], sums["bytes"], sums["spawned"]), (1171, 2 * 11700, 2 * 1170000, 1))
        # puts are messages of the device; what was served is another rank's
        self.assertEqual(sums["device_messages"], 2 * (5850 + 1170))

    def test_json_has_the_true_numbers_and_what_the_plot_needs(self):
        result = json.loads(report.as_json(self.of(samples(rss=lambda rank, t: (60 + rank * t / 60) * MB))))
        self.assertEqual((result["passed"], result["failed"]), (16, 1))
        self.assertEqual(set(report.SAMPLE_KEYS), set(result["samples"][0]))
        mine = judge.by_rank(result["samples"])[0]
        self.assertEqual(plot.rates(mine)[0], (0.0, 6.0))
        self.assertTrue(all(values(mine) for _, values in plot.PANELS))

    def test_markdown_has_a_line_for_each_rank_and_metric_and_names_failures(self):
        found = samples(descriptors=lambda rank, t: 25 + (rank == 1 and t > 600))
        text = report.markdown(self.of(found, watched(text="soak: left out: threads: none\nsoak: 40 rounds, 1 checks, 0 failed\n")), found)
        self.assertIn("| 0 | resident memory in use, MB | 55.0 | 55.0 | 0.0 | 4.0 |", text)
        self.assertIn("| 1 | descriptors | 25 | 26 |", text)
        self.assertIn("- **rank 1: no growth: descriptors**: 1 more", text)
        self.assertIn("Left out: threads: none.", text)
        self.assertIn("16 passed, 1 failed:", text)


class Command(unittest.TestCase):
    def of(self, *words):
        return subprocess.run([sys.executable, os.path.join(SOAK, "run"), *words], capture_output=True, text=True, check=False)

    def test_usage_errors_end_with_2(self):
        for words in (["--hours", "0"], ["--hours", "x"], ["--controllers", "magic"], ["--ranks", "1"], ["nonsense"], ["--hosts"], []):
            done = self.of(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)

    def test_help_has_examples(self):
        done = self.of("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("test/soak/run --prefix PREFIX", done.stdout)

    def test_the_report_names_no_place_of_this_machine(self):
        wanted = run.options(["--prefix", "/home/x/install", "--hours", "0.5", "--svg", "/tmp/x.svg", "--controllers", "thread", "LITE_ENCRYPT=on"])
        self.assertEqual(run.said(wanted), "test/soak/run --prefix PREFIX --hours 0.5 --controllers thread LITE_ENCRYPT=on")

    def test_samples_are_often_enough_to_judge_by(self):
        for hours in (0.02, 0.05, 0.5, 2, 24):
            period = run.sample_period(run.options(["--hours", str(hours)]))
            self.assertGreaterEqual(hours * 3600 / 4 / period, judge.QUARTER_LEAST, hours)


class Files(unittest.TestCase):
    def test_a_line_that_is_being_written_is_no_sample(self):
        with tempfile.TemporaryDirectory() as directory:
            file = os.path.join(directory, "job")
            with open(f"{file}.samples.0", "w", encoding="utf-8") as text:
                text.write(json.dumps(sample()) + "\n" + json.dumps(sample(t=30.0))[:50])
            self.assertEqual(watch.samples_of(file, 3), [sample()])
            self.assertEqual((watch.pid_of(file, 0), watch.pid_of(file, 1)), (100, None))

    def test_a_job_that_stands_still_is_told_by_its_places(self):
        with tempfile.TemporaryDirectory() as directory:
            seen = watch.Watch({"file": os.path.join(directory, "job"), "ranks": 2, "hosts": 2, "seconds": 60.0})
            with open(f"{seen.file}.at.0", "w", encoding="utf-8") as text:
                text.write("12 spawn      \n")
            self.assertTrue(seen.look())
            seen.moved -= judge.STALL_S + 1
            self.assertFalse(seen.look())
            self.assertRegex(seen.seen["stall"], r"nothing moved for 6\d s .*: rank 0: 12 spawn; rank 1: not started")

    def test_what_was_seen_is_kept_for_who_is_stopped(self):
        with tempfile.TemporaryDirectory() as directory:
            file = os.path.join(directory, "job")
            self.assertIsNone(run.watched_of(file)["code"])
            seen = watch.Watch({"file": file, "ranks": 1, "hosts": 2, "seconds": 60.0})
            seen.seen["quiet"] = 7.5
            seen.keep()
            self.assertEqual(run.watched_of(file)["quiet"], 7.5)

    def test_the_program_tells_what_is_judged(self):
        with open(os.path.join(SOAK, "sample.h"), encoding="utf-8") as text:
            told = set(re.findall(r'\\"(\w+)\\": ', text.read())) | {"counters", "levels"}
        self.assertEqual(set(sample()) - told, set())


if __name__ == "__main__":
    unittest.main()
