#!/usr/bin/env python3
"""What scripts/trace-merge makes of ranks' traces: messages found at both ends, clocks aligned by
them, arrows, lanes, states, a picture. The traces are made here: the true offset is known."""
import contextlib
import io
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
SCRIPT = os.path.join(TOP, "scripts", "trace-merge")
sys.path.insert(0, os.path.join(TOP, "scripts"))
# pylint: disable=wrong-import-position
from chlite.trace.events import SENDS    # noqa: E402
from chlite.trace.program import tag_range    # noqa: E402
from chlite.trace.ranks import FORMAT    # noqa: E402


class Job:
    """Ranks' files in a directory. Times are given as they truly are; each rank's clock is off."""

    def __init__(self, directory, clocks, size=None):
        self.directory, self.clocks, self.size = directory, clocks, size or len(clocks)
        self.events = [[] for _ in clocks]

    def local(self, rank, time):
        offset, drift = self.clocks[rank][1:]
        return time + offset + drift * time

    def add(self, rank, time, name, cat, ph, **args):
        event = {"name": name, "cat": cat, "ph": ph, "ts": self.local(rank, time), "pid": rank,
                 "tid": args.pop("tid", 0), "args": {"peer": -1, **args}}
        if "dur" in args:
            event["dur"] = event["args"].pop("dur")
        self.events[rank].append(event)

    def message(self, source, target, number, sent, arrived, protocol="eager", tag=7, late=0.0,
                ends=(1.0, 2.0)):
        about = {"protocol": protocol, "tag": tag, "sequence": number, "bytes": 4096, "request": 0}
        self.add(source, sent, f"send {protocol}", "send", "b", **{**about, "peer": target})
        self.add(source, sent + ends[0], f"send {protocol}", "send", "e",
                 **{**about, "peer": target})
        about["peer"] = source
        if late:
            self.add(target, arrived, f"unexpected {protocol}", "matching", "i", **about)
        self.add(target, arrived + late, f"receive {protocol}", "receive", "b", **about)
        self.add(target, arrived + late + ends[1], f"receive {protocol}", "receive", "e", **about)

    def write(self, only=None):
        prefix = os.path.join(self.directory, "run")
        for rank, (clock, offset, _) in enumerate(self.clocks):
            if only is not None and rank not in only:
                continue
            info = {"format": FORMAT, "rank": rank, "size": self.size, "host": f"h{clock}",
                    "clock": clock, "start_us": self.local(rank, 0), "events": 1, "overwritten": 0,
                    "start_wall_us": 1e15 + offset * 0}
            name = {"name": "thread_name", "ph": "M", "pid": rank, "tid": 0,
                    "args": {"name": "thread 1"}}
            with open(f"{prefix}.{rank}.json", "w", encoding="utf-8") as out:
                json.dump({"otherData": info, "traceEvents": [
                    name, *sorted(self.events[rank], key=lambda e: e["ts"])]}, out)
        return prefix


def run(prefix, *arguments, code=0):
    done = subprocess.run([sys.executable, SCRIPT, prefix, *arguments], capture_output=True,
                          text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


class Merge(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.directory = holder.name
        self.out = os.path.join(self.directory, "job.json")

    def joined(self, prefix, *arguments):
        self.said = run(prefix, "-o", self.out, *arguments)
        with open(self.out, encoding="utf-8") as text:
            whole = json.load(text)
        self.ranks = whole["otherData"]["ranks"]
        return whole["traceEvents"]

    def two_hosts(self, offset, drift=0.0, span=1e6, count=400, back=True):
        dice = random.Random(7)
        job = Job(self.directory, [("a", 5000.0, 0.0), ("b", 5000.0 + offset, drift)])
        for number in range(1, count + 1):
            time = span * number / count
            job.message(0, 1, number, time, time + 20 + dice.expovariate(1 / 30))
            if back:
                job.message(1, 0, number, time + 200, time + 220 + dice.expovariate(1 / 30))
        return job

    def arrows(self, events):
        """[(sent, arrived)] of all flows."""
        ends = {}
        for event in events:
            if event["ph"] in "sf":
                ends.setdefault(event["id"], {})[event["ph"]] = event["ts"]
        return [(end["s"], end["f"]) for end in ends.values()]

    def test_clocks_of_two_hosts_are_aligned_within_what_it_says(self):
        for offset in (-123456.0, 0.0, 987654.3):
            events = self.joined(self.two_hosts(offset).write())
            self.assertIsNone(re.search("Traceback", self.said))
            error = self.ranks[1]["clock_error_us"]
            self.assertLessEqual(abs(self.ranks[1]["clock_offset_us"] + offset), error)
            self.assertLess(error, 25)
            arrows = self.arrows(events)
            self.assertEqual(len(arrows), 800)
            self.assertTrue(all(sent <= arrived for sent, arrived in arrows))

    def test_a_clock_that_is_faster_is_slowed_down(self):
        events = self.joined(self.two_hosts(1000.0, drift=40e-6, span=20e6).write())
        self.assertAlmostEqual(self.ranks[1]["clock_drift_ppm"], -40, delta=5)
        error = self.ranks[1]["clock_error_us"]
        self.assertLess(error, 40)
        self.assertTrue(all(sent <= arrived + 0.01 for sent, arrived in self.arrows(events)))

    def test_messages_one_way_bound_one_side_only_and_it_says_so(self):
        events = self.joined(self.two_hosts(500.0, back=False).write())
        self.assertIsNone(self.ranks[1]["clock_error_us"])
        self.assertIn("one way only", self.said)
        self.assertTrue(all(sent <= arrived for sent, arrived in self.arrows(events)))

    def test_without_messages_the_wall_clocks_have_to_do(self):
        job = Job(self.directory, [("a", 0.0, 0.0), ("b", 777.0, 0.0)])
        for rank in (0, 1):
            job.add(rank, 10.0, "armed", "progress", "i")
        events = self.joined(job.write())
        self.assertIn("wall clocks", self.said)
        self.assertEqual([e["ts"] for e in events if e["name"] == "armed"], [0.0, 0.0])

    def test_a_third_host_is_aligned_over_the_second(self):
        job = Job(self.directory, [("a", 0.0, 0.0), ("b", 3000.0, 0.0), ("c", -8000.0, 0.0)])
        for pair in ((0, 1), (1, 2)):
            for number in range(1, 20):
                job.message(*pair, number, 100.0 * number, 100.0 * number + 10)
                job.message(*pair[::-1], number, 100.0 * number + 50, 100.0 * number + 60)
        self.joined(job.write())
        self.assertAlmostEqual(self.ranks[1]["clock_offset_us"], -3000, delta=0.1)
        self.assertAlmostEqual(self.ranks[2]["clock_offset_us"], 8000, delta=0.1)
        self.assertAlmostEqual(self.ranks[2]["clock_error_us"], 20, delta=0.1)

    def test_ranks_of_one_host_keep_their_clock_unless_told_otherwise(self):
        job = Job(self.directory, [("a", 0.0, 0.0), ("a", 0.0, 0.0)])
        job.message(0, 1, 1, 10.0, 13.0)
        job.message(1, 0, 1, 20.0, 29.0)
        prefix = job.write()
        self.joined(prefix)
        about = self.ranks[1]
        self.assertEqual((about["clock_offset_us"], about["clock_error_us"]), (0, 0))
        self.joined(prefix, "--estimate-all")
        self.assertAlmostEqual(self.ranks[1]["clock_offset_us"], 3.0)
        self.assertAlmostEqual(self.ranks[1]["clock_error_us"], 6.0)

    def test_messages_that_overlap_have_lanes_and_an_unexpected_one_shows_its_wait(self):
        job = Job(self.directory, [("a", 0.0, 0.0), ("a", 0.0, 0.0)])
        for number in (1, 2, 3):
            job.message(0, 1, number, 10.0 * number, 10.0 * number + 5, late=40.0, ends=(25.0, 2.0))
        events = self.joined(job.write())
        sends = [e for e in events if e["name"] == "send eager"]
        self.assertEqual([(e["ph"], e["dur"], e["tid"] - SENDS) for e in sends],
                         [("X", 25.0, 0), ("X", 25.0, 1), ("X", 25.0, 2)])
        receives = [e for e in events if e["name"] == "receive eager"]
        waits = [e for e in events if e["name"] == "unexpected" and e["ph"] == "X"]
        self.assertEqual([(e["ts"], e["dur"]) for e in receives], [(5, 42), (15, 42), (25, 42)])
        self.assertEqual([(e["ts"], e["dur"]) for e in waits], [(5, 40), (15, 40), (25, 40)])
        for slices in (sends, receives):
            ends = {}
            for e in slices:
                self.assertLessEqual(ends.get(e["tid"], 0), e["ts"])
                ends[e["tid"]] = e["ts"] + e["dur"]

    def test_an_arrow_begins_and_ends_in_a_slice_of_its_track(self):
        events = self.joined(self.two_hosts(55.0, count=20).write())
        slices = [e for e in events if e["ph"] == "X"]
        for e in events:
            if e["ph"] in "sf":
                self.assertTrue(any(s["tid"] == e["tid"] and s["pid"] == e["pid"]
                                    and s["ts"] <= e["ts"] <= s["ts"] + s["dur"] for s in slices))

    def test_states_are_slices_that_follow_one_another(self):
        job = Job(self.directory, [("a", 0.0, 0.0)])
        for time, before, after in ((0, "idle", "making"), (5, "making", "up"), (9, "up", "gone")):
            job.add(0, time, "peer", "connection", "i", **{"from": before, "to": after, "peer": 3})
        job.add(0, 12, "armed", "progress", "i")
        events = [e for e in self.joined(job.write()) if e["ph"] == "X"]
        self.assertEqual([(e["name"], e["ts"], e["dur"]) for e in events],
                         [("making", 0, 5), ("up", 5, 4), ("gone", 9, 3)])

    def test_a_message_known_at_one_end_only_has_no_arrow_and_is_counted(self):
        job = Job(self.directory, [("a", 0.0, 0.0), ("a", 0.0, 0.0)])
        job.message(0, 1, 1, 10.0, 13.0)
        del job.events[1][:]
        job.add(1, 0.0, "armed", "progress", "i")
        self.assertEqual(self.arrows(self.joined(job.write())), [])
        self.assertIn("at one end only: 1", self.said)

    def test_a_picture_is_well_formed_and_shows_the_messages_of_the_tags(self):
        job = Job(self.directory, [("a", 0.0, 0.0), ("a", 0.0, 0.0)])
        for number, tag in ((1, 1), (2, 50), (3, 51), (4, 99)):
            job.message(0, 1, number, 1000.0 * number, 1000.0 * number + 50, tag=tag,
                        ends=(400.0, 600.0))
        picture = os.path.join(self.directory, "job.svg")
        run(job.write(), "--svg", picture, "--tags", "50:51")
        with open(picture, encoding="utf-8") as text:
            drawn = text.read()
        xml.dom.minidom.parseString(drawn)
        self.assertEqual(sorted(re.findall(r"tag (\d+), rank", drawn)), ["50", "50", "51", "51"])
        self.assertEqual(drawn.count("marker-end"), 2)

    def test_what_is_no_trace_of_the_job_is_refused_by_name(self):
        job = Job(self.directory, [("a", 0.0, 0.0), ("a", 0.0, 0.0)])
        prefix = job.write()
        self.assertIn("no such file", run(prefix + "x", code=2))
        self.assertIn("more than one file is of rank 0",
                      run(prefix + ".0.json", prefix + ".0.json", code=2))
        self.assertIn("no message has such a tag",
                      run(prefix, "--svg", os.devnull, "--tags", "1:2", code=2))
        wrong = os.path.join(self.directory, "wrong")
        for text in ("{}", "[]", "nonsense", '{"otherData":{"format":"other"}}'):
            with open(wrong, "w", encoding="utf-8") as out:
                out.write(text)
            self.assertIn(wrong, run(wrong, code=2))

    def test_missing_ranks_are_told_and_the_others_joined(self):
        job = Job(self.directory, [("a", 0.0, 0.0), ("a", 0.0, 0.0)], size=4)
        self.assertIn("2 of 4 ranks are missing, the first is 2",
                      run(job.write(), "-o", self.out))

    def test_tags_are_a_range(self):
        for text in ("1", "2:1", "a:b", "-1:2"):
            with self.assertRaises(Exception), contextlib.redirect_stderr(io.StringIO()):
                tag_range(text)
        self.assertEqual(tag_range("3:17"), (3, 17))


if __name__ == "__main__":
    unittest.main()
