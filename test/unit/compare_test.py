#!/usr/bin/env python3
"""What scripts/compare reads and reckons: installations, sizes, NetPIPE's lines, counters, medians, ratios, dips, and that raw TCP has the engine's socket options."""
import argparse
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(TOP, "scripts"))
# pylint: disable=wrong-import-position
from chlite import builder    # noqa: E402
from chlite.common import output_of    # noqa: E402
from chlite.compare import netpipe, patterns, report, summary    # noqa: E402
from chlite.compare.runner import Runner    # noqa: E402
from chlite.compare.variants import build, cutoffs_of, reason_not    # noqa: E402
from chlite.installations import check_names, identify, parse_installation, settings_of    # noqa: E402
from chlite import places    # noqa: E402
from chlite.places import Place, sent_bytes    # noqa: E402
from chlite.sizes import size_of, size_text    # noqa: E402
from chlite.turns import rotated    # noqa: E402


def refused(function, *arguments):
    """The sentence that a bad argument is refused with."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            function(*arguments)
    except SystemExit as end:
        return said.getvalue() if end.code == 2 else ""
    return ""


def mpich1(prefix, *programs, mpichversion=None):
    """Adds programs of an MPICH 1 to an installation; without any word of its own but `mpichversion`, a shell script's."""
    os.makedirs(os.path.join(prefix, "bin"), exist_ok=True)
    contents = {"mpicc": "", **{name: "" for name in programs}, **({"mpichversion": mpichversion} if mpichversion else {})}
    for name, lines in contents.items():
        path = os.path.join(prefix, "bin", name)
        with open(path, "w", encoding="utf-8") as text:
            text.write("#!/bin/sh\n" + lines + "\n")
        os.chmod(path, 0o755)


def identified(prefix):
    variant = parse_installation(f"old={prefix}")
    identify(variant)
    return variant["family"], variant["device"], variant["version"]


def place_of(directory):
    """Two hosts, a and b, whose remote shell says where the command would be, and runs it here as a shell does."""
    place = Place(["a", "b"], "eth1")
    place.directory, place.start, place.address = directory, lambda _: [], lambda index: f"address-{index}"
    place.on = lambda _, words, __: words
    place.remote_shell = lambda: ["sh", "-c", 'printf "on %s: " "$1"; shift; exec sh -c "$*"', "sh"]
    return place


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
        got = parse_installation("lite=/a/b,LITE_CONTROLLER=sync,LITE_IFACE=eth0,^docker0")
        self.assertEqual((got["name"], got["prefix"], got["flavor"]), ("lite", "/a/b", ""))
        self.assertEqual(got["environment"], {"LITE_CONTROLLER": "sync", "LITE_IFACE": "eth0,^docker0"})
        self.assertEqual(parse_installation("mpich=/usr:mpich")["flavor"], "mpich")

    def test_what_is_no_installation_is_refused_with_its_text(self):
        for spec in ("/a/b", "=/a", "x y=/a", "x=", "x=/a,novalue"):
            self.assertIn(spec, refused(parse_installation, spec))
        self.assertIn("two are called a", refused(check_names, [{"name": "a"}, {"name": "a"}]))

    def test_sizes_are_read_and_written(self):
        for text, count in (("1", 1), ("64K", 65536), ("4m", 4 << 20), ("1000", 1000)):
            self.assertEqual(size_of(text), count)
        self.assertEqual([size_text(count) for count in (1, 1000, 1024, 1536, 8 << 20)], ["1", "1000", "1K", "1536", "8M"])
        for text in ("0", "64X", "", "-1"):
            self.assertIn(f"'{text}'", refused(size_of, text))

    def test_netpipe_lines_are_read(self):
        text = "Now starting the main loop\n  0:       1 bytes   5000 times -->      0.30 Mbps in      25.30 usec\n 43: 1048576 bytes     12 times -->  61234.50 Mbps in     130.64 usec\n"
        self.assertEqual(netpipe.parse_netpipe(text), {1: 25.30, 1048576: 130.64})

    def test_bytes_are_counted_on_the_interface_that_is_named_or_on_all_but_the_loopback(self):
        text = ("Inter-|   Receive  |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes\n"
                "    lo: 1 1 0 0 0 0 0 0 100 1 0\n  eth0: 5 1 0 0 0 0 0 0 20 1 0\n  eth1: 5 1 0 0 0 0 0 0 3 1 0\n")
        self.assertEqual(sent_bytes(text, "eth0"), 20)
        self.assertEqual(sent_bytes(text, None), 23)

    def test_an_mpich_1_is_known_by_its_mpirun_and_its_device_by_what_starts_it(self):
        with tempfile.TemporaryDirectory() as prefix:
            mpich1(prefix, "mpirun.args")
            self.assertIn("want ch_p4 with its mpirun.ch_p4, or ch_lite with its lite-mprun", refused(identify, parse_installation(f"old={prefix}")))
            mpich1(prefix, "mpirun.ch_p4")
            self.assertEqual(identified(prefix), ("mpich1", "ch_p4", "MPICH 1, ch_p4"))
            mpich1(prefix, "lite-mprun", "mpirun.ch_lite")
            self.assertEqual(identified(prefix), ("mpich1", "ch_lite", "MPICH 1, ch_lite nonblocking"))
            # both starters are there: the library's own word decides
            mpich1(prefix, mpichversion="echo 'MPICH Version:     \t1.2.7 (release)'; echo 'MPICH Device:      \tch_p4'")
            self.assertEqual(identified(prefix), ("mpich1", "ch_p4", "MPICH 1.2.7, ch_p4"))
            mpich1(prefix, mpichversion="echo 'MPICH configure:   \t--with-device=ch_lite:-form=blocking'; echo 'MPICH Device: ch_lite'")
            self.assertEqual(identified(prefix), ("mpich1", "ch_lite", "MPICH 1, ch_lite blocking"))
            mpich1(prefix, mpichversion="echo 'MPICH Device: ch_shmem'")
            self.assertIn("is ch_shmem: want", refused(identify, parse_installation(f"old={prefix}")))

    def test_ch_p4_is_started_by_a_process_group_file_with_its_settings_on_every_host(self):
        with tempfile.TemporaryDirectory() as prefix:
            mpich1(prefix, "mpirun.ch_p4")
            variant = parse_installation(f"old={prefix},P4_SOCKBUFSIZE=4194304")
            identify(variant)
            words = place_of(prefix).mpi_command(variant, 3, ["/program", "--x"], settings_of(variant, "eth1"))
            self.assertEqual(words[3:], ["/program", "--x", "-p4pg", os.path.join(prefix, "procgroup")])
            # one that does not know P4_RSHCOMMAND starts rsh
            self.assertEqual(os.path.join(words[2].partition("=")[2].split(":")[0], "rsh"), words[1].partition("=")[2])
            with open(os.path.join(prefix, "procgroup"), encoding="utf-8") as text:
                self.assertEqual(text.read(), "a 0 /program\nb 1 /program\na 1 /program\n")
            remote = words[1].partition("=")[2]
            self.assertEqual(output_of([remote, "b", "-l", "somebody", "-n", "sh", "-c", "'echo $P4_SOCKBUFSIZE'"]), "on b: 4194304\n")

    def test_ch_lite_of_mpich_1_is_started_by_lite_mprun_and_a_machine_file(self):
        with tempfile.TemporaryDirectory() as prefix:
            mpich1(prefix, "lite-mprun", "mpirun.ch_lite")
            variant = parse_installation(f"lite={prefix},LITE_EAGER_MAX=16K")
            identify(variant)
            settings = settings_of(variant, "eth1")
            self.assertEqual(settings, {"LITE_IFACE": "eth1", "LITE_EAGER_MAX": "16K"})
            words = place_of(prefix).mpi_command(variant, 3, ["/program", "--x"], settings)
            machines = os.path.join(prefix, "machines")
            self.assertEqual(words[2:], [os.path.join(prefix, "bin", "lite-mprun"), "-n", "3", "-machinefile", machines, "-x", "LITE_IFACE=eth1", "-x", "LITE_EAGER_MAX=16K",
                                         "--", "/program", "--x"])
            with open(machines, encoding="utf-8") as text:
                self.assertEqual(text.read(), "a\nb\na\n")
            self.assertEqual(words[0], "env")
            variable, _, remote = words[1].partition("=")
            self.assertEqual(variable, "LITE_RSH")
            self.assertEqual(output_of([remote, "b", "echo 'two  words'"]), "on b: two  words\n")
            named = parse_installation(f"lite={prefix},LITE_IFACE=10.1.0.0/16")
            identify(named)
            self.assertEqual(settings_of(named, "eth1")["LITE_IFACE"], "10.1.0.0/16")

    def test_netpipe_is_compiled_from_its_source_for_whom_debian_has_none(self):
        mine = {"name": "lite", "kind": "mpi", "family": "mpich1", "device": "ch_lite", "flavor": "", "prefix": "/a", "compiler": "mpicc-of-lite"}
        variants = [mine, {"name": "tcp-block", "kind": "tcp", "wait": "block"}, {"name": "tcp-spin", "kind": "tcp", "wait": "spin"}]
        self.assertIn("name its source with --netpipe", reason_not(mine, "netpipe"))
        self.assertIn("no netpipe.c", refused(netpipe.netpipe_sources, "/nowhere"))
        compiled = []
        with tempfile.TemporaryDirectory() as top:
            os.mkdir(os.path.join(top, "src"))
            for name in ("netpipe.c", "netpipe.h", "mpi.c", "tcp.c"):
                with open(os.path.join(top, "src", name), "w", encoding="utf-8"):
                    pass
            with unittest.mock.patch.object(builder, "compile_program", lambda compiler, sources, *more, **flags: compiled.append((compiler, sources, flags)) or True), \
                 contextlib.redirect_stderr(io.StringIO()):
                build(variants, ["netpipe"], top, top)
            source = os.path.join(os.path.realpath(top), "src")
        mpi, block, spin = compiled
        self.assertEqual(mpi[:2], ("mpicc-of-lite", [os.path.join(source, "netpipe.c"), os.path.join(source, "mpi.c")]))
        self.assertIn("-DMPI", mpi[2]["flags"])
        self.assertEqual(block[1], [os.path.join(source, "netpipe.c"), os.path.join(source, "tcp.c")])
        self.assertIn("-DTCP", block[2]["flags"])
        self.assertEqual(spin[1], ["tcp_bench.c"])
        self.assertEqual([reason_not(variant, "netpipe") for variant in variants], [None, None, None])

    def test_the_spinning_tcp_of_netpipe_is_the_ping_pong_at_its_sizes_by_the_least_of_its_batches(self):
        spin = {"name": "tcp-spin", "kind": "tcp", "wait": "spin", "program": "/tcp_bench"}
        options = argparse.Namespace(timeout=60, nice=0, seconds=0.1, sizes=None, quick=False, sockbuf="0")
        runner = Runner(place_of("/"), options, [spin], ["netpipe"], "none")
        words = runner.commands(spin, "netpipe", {})[0]
        self.assertEqual(words[words.index("--pattern") + 1], "pingpong")
        self.assertEqual(words[words.index("--sizes") + 1].split(",")[:3] + [words[words.index("--sizes") + 1].split(",")[-1]], ["1", "2", "4", str(8 << 20)])
        line = {"bytes": 8, "us": 5.0, "us_min": 4.0, "us_max": 9.0, "unfair": None, "verified": True, "payload": 800}
        samples, payload = runner.samples_of(spin, "netpipe", types.SimpleNamespace(json_lines=lambda: [line], output="", error_text=""))
        self.assertEqual((samples[0]["us"], payload), (4.0, 800))

    def test_a_netpipe_that_ends_early_has_no_result(self):
        block = {"name": "tcp-block", "kind": "tcp", "wait": "block", "netpipe": "/NPtcp"}
        options = argparse.Namespace(timeout=60, nice=0, seconds=0.1, sizes=None, quick=False, sockbuf="0")
        runner = Runner(place_of("/"), options, [block], ["netpipe"], "none")
        line = "  0:  {0} bytes  5000 times -->  1.0 Mbps in  2.00 usec\n"
        for last, count in ((4 << 20, 0), (8 << 20, 2)):
            got, _ = runner.samples_of(block, "netpipe", types.SimpleNamespace(output=line.format(1) + line.format(last), error_text=""))
            self.assertEqual(len(got), count)

    def test_cutoffs_are_those_set_or_the_defaults_of_the_readme(self):
        with open(os.path.join(TOP, "docs", "variables.md"), encoding="utf-8") as text:
            default = re.search(r"^\| `LITE_SHORT_MAX` \| `(\w+)`", text.read(), re.M).group(1)
        got = cutoffs_of({"device": "ch4:lite", "environment": {"LITE_EAGER_MAX": "64K"}})
        self.assertEqual(got, {"SHORT_MAX": size_of(default), "EAGER_MAX": 65536})
        self.assertEqual(cutoffs_of({"device": "ch4:lite", "environment": {"LITE_EAGER_MAX": "auto", "LITE_SHORT_MAX": "0"}}), {})
        self.assertEqual(cutoffs_of({"device": "ch4:ucx", "environment": {}}), {})


class Reckoning(unittest.TestCase):
    def test_ratios_are_medians_of_the_ratios_of_each_round(self):
        # a machine that was twice as slow in one round slows both
        samples = [sample("tcp-spin", "pingpong", 8, number, us) for number, us in enumerate((10.0, 20.0, 10.0))]
        samples += [sample("lite", "pingpong", 8, number, us) for number, us in enumerate((12.5, 25.0, 50.0))]
        lite = [point for point in summary.summarize(result_of(samples)) if point["name"] == "lite"][0]
        self.assertEqual((lite["us"]["median"], lite["us"]["low"], lite["us"]["high"]), (25.0, 12.5, 50.0))
        self.assertAlmostEqual(lite["speed_of_raw"], 0.8)

    def test_more_is_faster_for_rates_and_less_for_times(self):
        samples = [sample(name, pattern, 8, 0, us) for pattern in ("rate", "halo", "stream") for name, us in (("lite", 1.0), ("peer", 2.0), ("other", 4.0))]
        for point in summary.summarize(result_of(samples)):
            if point["name"] == "lite":
                self.assertEqual((point["best_peer"], point["speed_of_best_peer"]), ("peer", 2.0), point["pattern"])
            else:
                self.assertIsNone(point["speed_of_best_peer"])

    def test_what_a_call_adds_to_a_loop_of_barriers_is_compared_with_the_peer_that_adds_least(self):
        added = {"lite": (5.0, 4.0, 6.0), "peer": (8.0, 7.0, 9.0), "other": (5.5, 50.0, 5.0)}
        samples = [sample(name, "bcast2", 8, number, 1.0, added_us=value) for name, values in added.items() for number, value in enumerate(values)]
        samples += [sample(name, "put_flush", 8, 0, 1.0, added_us=None) for name in added]
        points = summary.summarize(result_of(samples))
        lite = {point["pattern"]: point for point in points if point["name"] == "lite"}
        self.assertEqual((lite["bcast2"]["added"]["median"], lite["bcast2"]["added_of_best_peer"]), (5.0, 1.1))
        self.assertIsNone(lite["put_flush"]["added_of_best_peer"])
        lines = report.table(result_of(samples), points)
        self.assertIn("added, us", next(line for line in lines if line.startswith("   bytes")))
        self.assertTrue(next(line for line in lines if " lite " in line and "1.10" in line))

    def test_calls_are_compared_by_their_times_and_groups_name_them(self):
        options = types.SimpleNamespace(patterns="one_sided,allreduce4,collectives,pingpong", sizes="8,64K", quick=False)
        names = patterns.patterns_of(options)
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(set(names), set(patterns.CALLS) | {"pingpong"})
        self.assertEqual([patterns.sizes_of(options, name) for name in ("allreduce4", "barrier2", "swap_lock", "put_fence", "reduce_scatter4")],
                         [[8, 65536], [8], [8], [8, 65536], [65536]])
        self.assertFalse((set(patterns.CALLS) | set(patterns.APPLICATIONS)) & set(patterns.DEFAULT_PATTERNS))
        for name, (source, _) in patterns.APPLICATIONS.items():
            self.assertTrue(os.path.exists(os.path.join(TOP, "test", "bench", "apps", f"{source}.c")), name)
        self.assertIn("collectives", refused(patterns.patterns_of, types.SimpleNamespace(patterns="broadcast")))
        for pattern in ("allreduce4", "put_flush", "stencil2d_4_overlap"):
            lite = [point for point in summary.summarize(result_of([sample("lite", pattern, 8, 0, 2.0), sample("peer", pattern, 8, 0, 3.0)])) if point["name"] == "lite"][0]
            self.assertEqual((lite["us"]["median"], lite["speed_of_best_peer"]), (2.0, 1.5))
            self.assertEqual(reason_not({"name": "tcp-spin", "kind": "tcp", "wait": "spin"}, pattern), "")
            self.assertIn("MPI 3", reason_not({"name": "old", "kind": "mpi", "calls_program": None}, pattern))
        self.assertEqual([reason_not({"name": "tcp-spin", "kind": "tcp", "wait": "spin"}, pattern) for pattern in ("rate", "thread_rate")], [None, ""])

    def test_raw_tcp_over_several_connections_uses_each_network(self):
        several = {"name": "tcp-4", "kind": "tcp", "wait": "spin", "sockets": 4, "program": "/tcp_bench"}
        self.assertEqual([reason_not(several, pattern) for pattern in ("pingpong", "stream", "rate", "overlap", "netpipe")], [None, None, "", "", ""])
        options = argparse.Namespace(timeout=60, nice=0, seconds=0.1, sizes=None, quick=False, sockbuf="0", networks=2)
        place = place_of("/")
        place.address = lambda host: f"10.77.0.{host + 1}"
        place.addresses = types.MethodType(places.LabPlace.addresses, place)
        words = Runner(place, options, [several], ["stream"], "none").commands(several, "stream", {})[0]
        self.assertEqual(words[words.index("--sockets") + 1], "4")
        self.assertEqual(words[words.index("--hosts") + 1], "10.77.0.1+10.77.1.1,10.77.0.2+10.77.1.2")
        handled = {"name": "tcp-4-sigio", "kind": "tcp", "wait": "sigio", "sockets": 4, "overlap_program": "/tcp_overlap"}
        self.assertEqual([reason_not(handled, pattern) for pattern in ("overlap", "pingpong", "stream", "netpipe")], [None, "", "", ""])
        words = Runner(place, options, [handled], ["overlap"], "none").commands(handled, "overlap", {})[0]
        self.assertEqual([words[words.index(word) + 1] for word in ("--sockets", "--address")], ["4", "10.77.0.2+10.77.1.2"])

    def test_a_missing_round_of_raw_tcp_costs_its_ratio_only(self):
        samples = [sample("tcp-spin", "pingpong", 8, 1, 10.0), sample("lite", "pingpong", 8, 0, 10.0), sample("lite", "pingpong", 8, 1, 20.0)]
        lite = [point for point in summary.summarize(result_of(samples)) if point["name"] == "lite"][0]
        self.assertEqual((lite["rounds"], lite["speed_of_raw"]), (2, 0.5))

    def test_a_dip_is_below_the_line_through_its_neighbours(self):
        got = summary.on_the_line({1024: 1.0, 2048: 2.0, 4096: 2.0, 8192: 8.0})
        self.assertEqual(sorted(got), [2048, 4096])
        self.assertAlmostEqual(got[2048], 2 ** 0.5)
        self.assertAlmostEqual(got[4096], 0.5)

    def test_throughput_counts_both_directions_of_bidirectional(self):
        self.assertEqual(summary.metrics_of(sample("lite", "stream", 1000, 0, 8.0))["gbps"], 1.0)
        self.assertEqual(summary.metrics_of(sample("lite", "bidirectional", 1000, 0, 8.0))["gbps"], 2.0)

    def test_wrong_data_failures_and_what_is_behind_are_in_the_table(self):
        samples = [sample("tcp-spin", "pingpong", 8, 0, 10.0), sample("lite", "pingpong", 8, 0, 40.0, verified=False)]
        result = result_of(samples)
        result["failures"].append("peer: ring: no end within 9 s")
        lines = report.table(result, summary.summarize(result))
        self.assertTrue(any(" lite " in line and " 0.25 " in line and "WRONG DATA" in line for line in lines), lines)
        self.assertTrue(any("0.25 of raw TCP: lite pingpong 8" in line for line in lines), lines)
        self.assertIn("failed: peer: ring: no end within 9 s", lines)

    def test_each_round_begins_with_another(self):
        self.assertEqual([rotated(["a", "b", "c"], by)[0] for by in range(4)], ["a", "b", "c", "a"])
        self.assertEqual(rotated([], 3), [])


class Drawing(unittest.TestCase):
    def test_without_matplotlib_all_but_the_plots_is_made_and_one_line_says_so(self):
        samples = [sample("tcp-spin", "pingpong", 8, 0, 10.0), sample("lite", "pingpong", 8, 0, 20.0)]
        # this interpreter as it is called, and one that asks Debian's, which has none either; a package that is broken is none
        for name, fault in (("python", "ModuleNotFoundError('no')"), (None, "ImportError('no')"), (None, "AttributeError('half of it')")):
            with self.subTest(name=name, fault=fault), tempfile.TemporaryDirectory() as directory:
                with open(os.path.join(directory, "matplotlib.py"), "w", encoding="utf-8") as text:
                    text.write(f"raise {fault}\n")
                saved, out = os.path.join(directory, "saved.json"), os.path.join(directory, "out")
                with open(saved, "w", encoding="utf-8") as text:
                    json.dump(result_of(samples), text)
                command = [sys.executable, os.path.join(TOP, "scripts", "compare")]
                if name:    # /usr/bin/python3 is another one, as for whoever has a newer one first in PATH
                    command = [sys.executable, "-c", f"import runpy, sys; sys.executable = '/elsewhere/{name}'; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"] + command[1:]
                done = subprocess.run(command + ["--from", saved, "--out", out], capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": directory})
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("Traceback", done.stderr)
                self.assertEqual(done.stderr, "compare: no plots: drawing needs matplotlib: apt-get install python3-matplotlib\n")
                self.assertIn(" lite ", done.stdout)
                with open(os.path.join(out, "compare.txt"), encoding="utf-8") as text:
                    self.assertEqual(text.read(), done.stdout)


class Sockets(unittest.TestCase):
    def test_raw_tcp_has_the_socket_options_of_the_engine(self):
        def options(path, begin):
            with open(os.path.join(TOP, path), encoding="utf-8") as text:
                source = text.read()
            body = source[source.index(begin):]
            return set(re.findall(r"set_int\(fd, \w+, (\w+),", body[:body.index("\n}\n")]))
        engine = options("src/mplite/net/net_posix.cpp", "void PosixNet::set_options(")
        raw = options("test/bench/tcp_bench.c", "static void set_options(")
        self.assertGreaterEqual(len(engine), 7)
        self.assertEqual({name.replace("kTcpRtoMaxMs", "TCP_RTO_MAX_MS_") for name in engine}, raw)


if __name__ == "__main__":
    outcome = unittest.main(exit=False).result
    # as Check's programs say it: scripts/check sums these lines up
    bad = len(outcome.failures)
    print(f"{100 if outcome.wasSuccessful() else 0}%: Checks: {outcome.testsRun}, Failures: {bad}, Errors: {len(outcome.errors)}")
    sys.exit(0 if outcome.wasSuccessful() else 1)
