#!/usr/bin/env python3
"""test/faults: the table is whole and known to the program and the acts; verdicts; reports."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
FAULTS = os.path.join(TOP, "test", "faults")
sys.path[:0] = [FAULTS, os.path.join(TOP, "scripts")]

import acts  # noqa: E402
import judge  # noqa: E402
import report  # noqa: E402
import table  # noqa: E402
from script_module import script_module  # noqa: E402

run = script_module(os.path.join(FAULTS, "run"))
RIGHT = "victim: 120 checks, 0 failed\n"
ERROR = "error: MPI_Recv: Other MPI error: rank 0 lost rank 2 on host h2 (10.77.0.3 port 1)\n"


def fault(expected, **more):
    return table.Fault("name", "what", expected, **more)


def end(text, code=0, hung=False, seconds=1.0, failed=""):
    return judge.End(hung, code, text, seconds, failed)


class Table(unittest.TestCase):
    def setUp(self):
        self.rows = table.table()
        self.programs = {}
        for program, files in (("victim", ("victim.c", "wire.h")), ("foreign", ("foreign.c",))):
            self.programs[program] = ""
            for name in files:
                with open(os.path.join(FAULTS, name), encoding="utf-8") as text:
                    self.programs[program] += text.read()

    def test_names_are_unique_and_fit_for_a_command_line(self):
        names = [row.name for row in self.rows]
        self.assertEqual(len(set(names)), len(names))
        self.assertEqual([name for name in names if not re.fullmatch(r"[a-z0-9_-]+", name)], [])

    def test_it_has_what_was_promised(self):
        self.assertGreaterEqual(len(self.rows), 120)

    def test_every_row_can_be_judged(self):
        for row in self.rows:
            self.assertIn(row.expected, ("goes on", "named", "ends", "refused", "told"), row.name)
            if row.expected in ("refused", "told"):
                self.assertTrue(row.says, row.name)
            re.compile(row.says)
            self.assertGreater(row.deadline, 0, row.name)

    def test_the_program_knows_every_fault_and_traffic(self):
        known = set(re.findall(r'strcmp\((?:fault|traffic), "(\w+)"\)|^    {"(\w+)", \w+},$', self.programs["victim"], re.M))
        known = {name for names in known for name in names} | {"short"}
        self.assertEqual([row.name for row in self.rows if row.program == "victim" and not {row.fault, row.traffic} <= known], [])

    def test_the_two_jobs_know_every_role_and_phase(self):
        text = self.programs["foreign"]
        roles = set(re.findall(r'strcmp\(role, "(\w+)"\)', text))
        phases = set(re.findall(r'(?:is_time|die_if|phase_is)\("(\w+)"\)', text))
        self.assertEqual(roles, {"server", "caller", "parent", "child"})
        rows = [row for row in self.rows if row.program == "foreign"]
        self.assertGreaterEqual(len(rows), 15)
        for row in rows:
            who, _, phase = row.fault.partition("-")
            self.assertIn(row.traffic, roles, row.name)
            self.assertIn(who, roles | {"network"}, row.name)
            self.assertIn(phase, phases, row.name)

    def test_the_wire_is_that_of_the_sources(self):
        numbers = run.numbers_of_the_wire()
        self.assertEqual([name for name in re.findall(r"\b((?:FRAME|PACKET)_[A-Z_]+|WIRE_VERSION|CONTROL_BYTES_MAX|[A-Z]+_PACKET_BYTES)\b", self.programs["victim"])
                          if name not in numbers], [])
        self.assertEqual((numbers["FRAME_CONTROL"], numbers["PACKET_CTS"], numbers["FRAME_HEADER_BYTES"]), ("1", "4", "32"))

    def test_every_act_can_be_done(self):
        for row in self.rows:
            for act in (row.act, row.prepare):
                self.assertTrue(not act or callable(acts.act_of(act)), row.name)
        self.assertIsNone(acts.act_of(""))

    def test_something_goes_wrong_in_every_row(self):
        quiet = [row.name for row in self.rows if row.fault == "none" and not row.act and not row.prepare and not row.settings and not row.last_settings and not row.before]
        self.assertEqual(quiet, ["borne-none", "ranks-64", "first-32"])


class Verdict(unittest.TestCase):
    def of(self, row, ending, strict=True):
        return judge.verdict(row, ending, "h2", strict)

    def test_a_job_that_goes_on(self):
        row = fault("goes on")
        self.assertEqual(self.of(row, end(RIGHT)), "")
        self.assertIn("did not go on", self.of(row, end(RIGHT, code=255)))
        self.assertIn("did not go on", self.of(row, end("victim: 0 checks, 0 failed\n")))
        self.assertIn("did not go on: error", self.of(row, end(ERROR, code=3)))
        self.assertEqual(self.of(row, end(RIGHT.replace("0 failed", "1 failed"), code=1)), "wrong data")
        self.assertEqual(self.of(row, end("x.c:1: rank 1: turn 2, 8 bytes from 0: byte 3 is wrong\n" + RIGHT)), "wrong data")
        self.assertEqual(self.of(fault("named"), end("x.c:1: rank 1: turn 17: sum 14 is 94\n" + ERROR, code=3)), "wrong data")

    def test_an_error_that_names_the_last_rank(self):
        row = fault("named")
        self.assertEqual(self.of(row, end(ERROR, code=3)), "")
        self.assertIn("names rank 2 and h2", self.of(row, end("killed", code=9)))
        self.assertIn("exit code is 0", self.of(row, end("rank 2 on host h2")))
        self.assertIn("names rank 2 and h2", self.of(row, end(ERROR.replace("rank 2", "rank 1"), code=3)))
        self.assertIn("names rank 2 and h2", self.of(row, end(ERROR.replace("h2", "h22"), code=3)))
        self.assertEqual(self.of(row, end(RIGHT)), "the job went on")
        self.assertEqual(self.of(fault("named", whom="any"), end(ERROR.replace("rank 2 on host h2", "rank 5 on host h1"), code=3)), "")

    def test_the_hosts_own_end_of_a_collective_is_one_when_the_device_says_who(self):
        text = "ch_lite: rank 1 lost rank 2 on host h2 (10.77.0.3 port 46607): Connection reset by peer\n"
        self.assertEqual(self.of(fault("named"), end(text, code=15)), "")

    def test_what_has_to_be_said_is_looked_for_whatever_is_expected(self):
        said = ERROR + "ch_lite[rank 0]: its data was changed\n"
        self.assertEqual(self.of(fault("named", says="data was changed"), end(said, code=3)), "")
        self.assertIn("nothing says", self.of(fault("named", says="data was changed"), end(ERROR, code=3)))
        self.assertIn("nothing says", self.of(fault("goes on", says="broke: "), end(RIGHT)))
        self.assertEqual(self.of(fault("goes on", says="broke: "), end(RIGHT), strict=False), "")

    def test_who_is_told_goes_on_or_not(self):
        row = fault("told", says="lost a process")
        self.assertEqual(self.of(row, end("foreign: 3 checks, 0 failed\nlost a process", code=9)), "")
        self.assertEqual(self.of(row, end("lost a process", code=9)), "")
        self.assertIn("nothing says", self.of(row, end("foreign: 3 checks, 0 failed\n")))
        self.assertEqual(self.of(row, end("lost a process", hung=True)), "hung")
        self.assertEqual(self.of(row, end("child: 3 checks, 1 failed\nlost a process")), "wrong data")

    def test_a_refusal_says_why(self):
        row = fault("refused", says="LITE_IFACE.*nosuch")
        self.assertEqual(self.of(row, end("LITE_IFACE=nosuch: no such interface", code=15)), "")
        self.assertIn("nothing says", self.of(row, end("no", code=15)))

    def test_an_end_is_a_failure(self):
        self.assertEqual(self.of(fault("ends"), end("killed", code=9)), "")
        self.assertIn("exit code is 0", self.of(fault("ends"), end("")))

    def test_hung_late_crashed_and_not_done_are_never_right(self):
        for expected in ("goes on", "named", "ends"):
            self.assertEqual(self.of(fault(expected), end("", hung=True)), "hung")
            self.assertIn("MPI_Finalize", self.of(fault(expected), end(RIGHT, hung=True)))
            self.assertEqual(self.of(fault(expected), end(RIGHT, failed="iptables: no")), "iptables: no")
        self.assertIn("12.5 s, and 10 are allowed", self.of(fault("named"), end(ERROR, code=3, seconds=12.5)))
        self.assertEqual(self.of(fault("named"), end(ERROR + "Segmentation fault\n", code=3)), "a rank crashed")

    def test_who_is_not_ours_has_to_name_nobody(self):
        text = "error: MPI_Recv: Other MPI error\n"
        self.assertEqual(self.of(fault("named"), end(text, code=3), strict=False), "")
        self.assertEqual(self.of(fault("named"), end("", hung=True), strict=False), "hung")


class Command(unittest.TestCase):
    OURS = {"name": "lite", "prefix": "/p", "family": "mpich", "device": "ch4:lite", "mpiexec": "/p/bin/mpiexec", "cxx": True}
    PEER = {"name": "mpich", "prefix": "/usr", "family": "mpich", "device": "ch4:ucx", "cxx": True}
    OTHER = {"name": "open", "prefix": "/usr", "family": "openmpi", "device": "", "cxx": False}

    def setUp(self):
        os.environ.update(LAB_MPIEXEC="/lab/mpiexec", LAB_ENTER="/lab/enter", LAB_DIR="/lab")

    def words(self, row):
        return run.words_of(row, self.OURS, "/victim", "/file")

    def test_ranks_that_are_left_end_by_themselves(self):
        self.assertIn("-disable-auto-cleanup", self.words(fault("named")))
        self.assertNotIn("-disable-auto-cleanup", self.words(fault("ends", cleanup=True)))
        self.assertNotIn("-disable-auto-cleanup", self.words(fault("goes on")))

    def test_the_last_rank_has_settings_of_its_own(self):
        words = self.words(fault("goes on", last_settings={"A": "b"}, before=["prlimit", "--nofile=9"]))
        first, last = words[:words.index(":")], words[words.index(":"):]
        self.assertEqual(first[-7:], ["2", "prlimit", "--nofile=9", "/victim", "short", "none", "/file"])
        self.assertEqual(last, [":", "-n", "1", "env", "A=b", "prlimit", "--nofile=9", "/victim", "short", "none", "/file"])

    def test_rows_of_our_settings_are_ours(self):
        rows = [fault("goes on"), fault("refused", says="x", ours=True)]
        turns = [(row.expected, who) for row, _, _, who in run.turns_of([self.OURS, self.PEER], ["sigio", "sync"], rows)]
        self.assertEqual(turns, [("goes on", "lite, sigio"), ("goes on", "lite, sync"), ("goes on", "mpich"), ("refused", "lite, sigio"), ("refused", "lite, sync")])

    def test_rows_that_an_installation_cannot_do_are_left_out(self):
        rows = [fault("told", program="foreign", says="x"), fault("named", fault="throw")]
        who = [(row.expected, who) for row, _, _, who in run.turns_of([self.PEER, self.OTHER], ["sigio"], rows)]
        self.assertEqual(who, [("told", "mpich"), ("named", "mpich")])

    def test_two_jobs_have_hosts_and_an_mpiexec_each(self):
        shell, option, script = self.words(fault("goes on", program="foreign", traffic="server", fault="caller-connected"))
        self.assertEqual((shell, option), ("sh", "-c"))
        dying, living, left = [job for job in re.split(r"; | & ", script.replace("{ ", "")) if "/lab/enter" in job]
        self.assertIn("/lab/enter 2 /p/bin/mpiexec", dying)
        self.assertIn("-hosts h2,h3 -ppn 1 -n 2 /victim caller caller-connected /file", dying)
        self.assertIn("-hosts h2,h3 -ppn 1 -n 2 /victim caller none /file", living)
        self.assertIn("-hosts h0,h1 -ppn 1 -n 2 /victim server caller-connected /file", left)
        # of the job that dies in part, the rest is to be met
        joining = self.words(fault("told", program="foreign", traffic="caller", fault="server-joining"))[2]
        self.assertEqual(joining.count("-disable-auto-cleanup"), 1)

    def test_of_a_job_that_hangs_it_is_said_where_the_ranks_are(self):
        with tempfile.TemporaryDirectory() as directory:
            file = os.path.join(directory, "row0")
            with subprocess.Popen(["sleep", "60"]) as there, subprocess.Popen(["true"]) as gone:
                gone.wait()
                for rank, process in enumerate((there, gone)):
                    with open(f"{file}.pid.{rank}", "w", encoding="utf-8") as text:
                        text.write(f"{process.pid}\n")
                said = run.where_ranks_are(acts.Scene(3, 3, file)).splitlines()
                there.kill()
        self.assertIn("rank 0 is there, state S", said)
        self.assertIn("rank 1 is not there (any more)", said)
        self.assertIn("rank 2 is not there (any more)", said)

    def test_the_report_names_no_place_of_this_machine(self):
        wanted = run.options(["--mpi", "lite=/home/x/install", "--mpi", "mpich=/usr:mpich", "--controllers", "sigio,sync", "--markdown", "/tmp/x"])
        self.assertEqual(run.said(wanted), "test/faults/run --mpi lite=PREFIX --mpi mpich=/usr:mpich --controllers sigio,sync")


class Report(unittest.TestCase):
    RESULTS = [
        {"row": "a", "what": "it burns", "expected": "named", "deadline": 10.0, "who": "lite", "outcome": "error", "seconds": 1.26, "why": "", "text": ""},
        {"row": "a", "what": "it burns", "expected": "named", "deadline": 10.0, "who": "peer", "outcome": "hung", "seconds": 20.0, "why": "hung", "text": "a\x00b<"},
        {"row": "b", "what": "it rains", "expected": "goes on", "deadline": 5.0, "who": "lite", "outcome": "went on", "seconds": 0.5, "why": "", "text": ""},
    ]

    def test_a_line_for_each_row_a_column_for_each(self):
        lines = report.markdown(self.RESULTS, "about").splitlines()
        self.assertEqual(lines[2], "| fault | has to | within, s | lite | peer |")
        self.assertEqual(lines[4], "| it burns | named | 10 | error, 1.3 | **hung, 20.0** |")
        self.assertEqual(lines[5], "| it rains | goes on | 5 | went on, 0.5 | - |")

    def test_junit_can_be_read(self):
        suite = ElementTree.fromstring(report.junit(self.RESULTS))
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("3", "1"))
        self.assertEqual([case.find("failure") is not None for case in suite], [False, True, False])

    def test_json_has_the_sums(self):
        found = json.loads(report.as_json(self.RESULTS))
        self.assertEqual((found["passed"], found["failed"], len(found["results"])), (2, 1, 3))

    def test_a_turn_is_taken_by_one_lab(self):
        with tempfile.TemporaryDirectory() as directory:
            self.assertEqual([run.is_taken(directory, number) for number in (0, 1, 0, 1)], [False, False, True, True])


if __name__ == "__main__":
    unittest.main()
