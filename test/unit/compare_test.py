#!/usr/bin/env python3
"""What scripts/compare reads and reckons: installations, sizes, NetPIPE's lines, counters, medians, ratios, dips, and that raw TCP has the engine's socket options."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import re
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
loader = importlib.machinery.SourceFileLoader("compare", os.path.join(TOP, "scripts", "compare"))
compare = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare", loader))
loader.exec_module(compare)
rounds = compare.rounds


def refused(function, *arguments):
    """The sentence that a bad argument is refused with."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            function(*arguments)
    except SystemExit as end:
        return said.getvalue() if end.code == 2 else ""
    return ""


def sample(name, pattern, count, number, us=None, **more):
    return {"name": name, "pattern": pattern, "bytes": count, "round": number, "rate": "none", "us": us, "unfair": None, "verified": True, "load": 0.0, **more}


def result_of(samples, names=("tcp-spin", "lite", "peer", "other")):
    kinds = {"tcp-spin": ("tcp", ""), "lite": ("mpi", "ch4:lite"), "peer": ("mpi", "ch4:ucx"), "other": ("mpi", "")}
    return {"about": {"names": list(names), "rates": ["none"], "where": "test hosts", "date": "", "minutes": 0, "project": "", "command": "", "kernel": "", "processor": "",
                      "cores": 2, "load": None, "pin": "auto", "rounds": 3, "seconds": 1, "sockbuf": "0", "link": {}, "skipped": [],
                      "variants": {name: {"kind": kinds[name][0], "prefix": "", "device": kinds[name][1], "library": "", "settings": {}, "cutoffs": {}} for name in names}},
            "samples": samples, "failures": []}


class Reading(unittest.TestCase):
    def test_an_installation_is_a_name_a_directory_and_an_environment(self):
        got = rounds.parse_installation("lite=/a/b,LITE_CONTROLLER=sync,LITE_IFACE=eth0,^docker0")
        self.assertEqual((got["name"], got["prefix"], got["flavor"]), ("lite", "/a/b", ""))
        self.assertEqual(got["environment"], {"LITE_CONTROLLER": "sync", "LITE_IFACE": "eth0,^docker0"})
        self.assertEqual(rounds.parse_installation("mpich=/usr:mpich")["flavor"], "mpich")

    def test_what_is_no_installation_is_refused_with_its_text(self):
        for spec in ("/a/b", "=/a", "x y=/a", "x=", "x=/a,novalue"):
            self.assertIn(spec, refused(rounds.parse_installation, spec))
        self.assertIn("two are called a", refused(rounds.check_names, [{"name": "a"}, {"name": "a"}]))

    def test_sizes_are_read_and_written(self):
        for text, count in (("1", 1), ("64K", 65536), ("4m", 4 << 20), ("1000", 1000)):
            self.assertEqual(rounds.size_of(text), count)
        self.assertEqual([rounds.size_text(count) for count in (1, 1000, 1024, 1536, 8 << 20)], ["1", "1000", "1K", "1536", "8M"])
        for text in ("0", "64X", "", "-1"):
            self.assertIn(f"'{text}'", refused(rounds.size_of, text))

    def test_netpipe_lines_are_read(self):
        text = "Now starting the main loop\n  0:       1 bytes   5000 times -->      0.30 Mbps in      25.30 usec\n 43: 1048576 bytes     12 times -->  61234.50 Mbps in     130.64 usec\n"
        self.assertEqual(compare.parse_netpipe(text), {1: 25.30, 1048576: 130.64})

    def test_bytes_are_counted_on_the_interface_that_is_named_or_on_all_but_the_loopback(self):
        text = ("Inter-|   Receive  |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes\n"
                "    lo: 1 1 0 0 0 0 0 0 100 1 0\n  eth0: 5 1 0 0 0 0 0 0 20 1 0\n  eth1: 5 1 0 0 0 0 0 0 3 1 0\n")
        self.assertEqual(rounds.sent_bytes(text, "eth0"), 20)
        self.assertEqual(rounds.sent_bytes(text, None), 23)

    def test_an_mpich_1_is_known_by_its_mpirun(self):
        with tempfile.TemporaryDirectory() as prefix:
            os.mkdir(os.path.join(prefix, "bin"))
            for name in ("mpicc", "mpirun", "mpirun.args"):
                path = os.path.join(prefix, "bin", name)
                with open(path, "w", encoding="utf-8") as text:
                    text.write("#!/bin/sh\n")
                os.chmod(path, 0o755)
            variant = rounds.parse_installation(f"old={prefix}")
            self.assertIn("no mpirun.ch_p4", refused(rounds.identify, variant))
            os.rename(os.path.join(prefix, "bin", "mpirun.args"), os.path.join(prefix, "bin", "mpirun.ch_p4"))
            rounds.identify(variant)
            self.assertEqual((variant["family"], variant["device"]), ("mpich1", "ch_p4"))
            place = rounds.Place(["a", "b"], None)
            place.directory, place.start, place.remote_shell = prefix, lambda _: [], lambda: ["ssh"]
            words = place.mpi_command(variant, 3, ["/program", "--x"], {})
            self.assertEqual(words[2:], ["/program", "--x", "-p4pg", os.path.join(prefix, "procgroup")])
            with open(os.path.join(prefix, "procgroup"), encoding="utf-8") as text:
                self.assertEqual(text.read(), "a 0 /program\nb 1 /program\na 1 /program\n")

    def test_cutoffs_are_those_set_or_the_defaults_of_the_readme(self):
        with open(os.path.join(TOP, "README.md"), encoding="utf-8") as text:
            default = re.search(r"^\| `LITE_SHORT_MAX` \| `(\w+)`", text.read(), re.M).group(1)
        got = compare.cutoffs_of({"device": "ch4:lite", "environment": {"LITE_EAGER_MAX": "64K"}})
        self.assertEqual(got, {"SHORT_MAX": rounds.size_of(default), "EAGER_MAX": 65536})
        self.assertEqual(compare.cutoffs_of({"device": "ch4:lite", "environment": {"LITE_EAGER_MAX": "auto", "LITE_SHORT_MAX": "0"}}), {})
        self.assertEqual(compare.cutoffs_of({"device": "ch4:ucx", "environment": {}}), {})


class Reckoning(unittest.TestCase):
    def test_ratios_are_medians_of_the_ratios_of_each_round(self):
        # a machine that was twice as slow in one round slows both
        samples = [sample("tcp-spin", "pingpong", 8, number, us) for number, us in enumerate((10.0, 20.0, 10.0))]
        samples += [sample("lite", "pingpong", 8, number, us) for number, us in enumerate((12.5, 25.0, 50.0))]
        lite = [point for point in compare.summarize(result_of(samples)) if point["name"] == "lite"][0]
        self.assertEqual((lite["us"]["median"], lite["us"]["low"], lite["us"]["high"]), (25.0, 12.5, 50.0))
        self.assertAlmostEqual(lite["speed_of_raw"], 0.8)

    def test_more_is_faster_for_rates_and_less_for_times(self):
        samples = [sample(name, pattern, 8, 0, us) for pattern in ("rate", "halo", "stream") for name, us in (("lite", 1.0), ("peer", 2.0), ("other", 4.0))]
        for point in compare.summarize(result_of(samples)):
            if point["name"] == "lite":
                self.assertEqual((point["best_peer"], point["speed_of_best_peer"]), ("peer", 2.0), point["pattern"])
            else:
                self.assertIsNone(point["speed_of_best_peer"])

    def test_a_missing_round_of_raw_tcp_costs_its_ratio_only(self):
        samples = [sample("tcp-spin", "pingpong", 8, 1, 10.0), sample("lite", "pingpong", 8, 0, 10.0), sample("lite", "pingpong", 8, 1, 20.0)]
        lite = [point for point in compare.summarize(result_of(samples)) if point["name"] == "lite"][0]
        self.assertEqual((lite["rounds"], lite["speed_of_raw"]), (2, 0.5))

    def test_a_dip_is_below_the_line_through_its_neighbours(self):
        got = compare.on_the_line({1024: 1.0, 2048: 2.0, 4096: 2.0, 8192: 8.0})
        self.assertEqual(sorted(got), [2048, 4096])
        self.assertAlmostEqual(got[2048], 2 ** 0.5)
        self.assertAlmostEqual(got[4096], 0.5)

    def test_throughput_counts_both_directions_of_bidirectional(self):
        self.assertEqual(compare.metrics_of(sample("lite", "stream", 1000, 0, 8.0))["gbps"], 1.0)
        self.assertEqual(compare.metrics_of(sample("lite", "bidirectional", 1000, 0, 8.0))["gbps"], 2.0)

    def test_wrong_data_failures_and_what_is_behind_are_in_the_table(self):
        samples = [sample("tcp-spin", "pingpong", 8, 0, 10.0), sample("lite", "pingpong", 8, 0, 40.0, verified=False)]
        result = result_of(samples)
        result["failures"].append("peer: ring: no end within 9 s")
        lines = compare.table(result, compare.summarize(result))
        self.assertTrue(any(" lite " in line and " 0.25 " in line and "WRONG DATA" in line for line in lines), lines)
        self.assertTrue(any("0.25 of raw TCP: lite pingpong 8" in line for line in lines), lines)
        self.assertIn("failed: peer: ring: no end within 9 s", lines)

    def test_each_round_begins_with_another(self):
        self.assertEqual([rounds.rotated(["a", "b", "c"], by)[0] for by in range(4)], ["a", "b", "c", "a"])
        self.assertEqual(rounds.rotated([], 3), [])


class Sockets(unittest.TestCase):
    def test_raw_tcp_has_the_socket_options_of_the_engine(self):
        def options(path, begin):
            with open(os.path.join(TOP, path), encoding="utf-8") as text:
                source = text.read()
            body = source[source.index(begin):]
            return set(re.findall(r"set_int\(fd, \w+, (\w+),", body[:body.index("\n}\n")]))
        engine = options("src/mplite/net_posix.cpp", "void PosixNet::set_options(")
        raw = options("test/bench/tcp_bench.c", "static void set_options(")
        self.assertGreaterEqual(len(engine), 7)
        self.assertEqual({name.replace("kTcpRtoMaxMs", "TCP_RTO_MAX_MS_") for name in engine}, raw)


if __name__ == "__main__":
    outcome = unittest.main(exit=False).result
    # as Check's programs say it: scripts/check sums these lines up
    bad = len(outcome.failures)
    print(f"{100 if outcome.wasSuccessful() else 0}%: Checks: {outcome.testsRun}, Failures: {bad}, Errors: {len(outcome.errors)}")
    sys.exit(0 if outcome.wasSuccessful() else 1)
