"""Runs the programs by turns inside of a lab."""
import os
import re
import time

from ..builder import Builder
from ..common import say
from ..installations import (
    check_names, environment_of, identify, niced, parse_installation, settings_of)
from ..places import LabPlace
from ..running import Progress, Started
from ..sizes import burst_of, size_of, size_text
from ..turns import rotated
from .options import TCP_OPS


def variants_of(options):
    variants = [parse_installation(spec) for spec in options.mpi]
    for lowat in options.tcp:
        name = "tcp" if lowat == "0" else f"tcp-{lowat}"
        if lowat not in ("0", "idle"):
            size_of(lowat)
        variants.append({"name": name, "kind": "tcp", "lowat": lowat})
    check_names(variants)
    return variants


def build(variants, directory):
    """Compiles what is needed, and finds out what each installation is."""
    builder = Builder(directory)
    for variant in variants:
        if variant["kind"] == "mpi":
            identify(variant)
        variant["program"] = builder.build(variant, "tcp_overlap.c" if variant["kind"] == "tcp" else "mpi_overlap.c")


def settings_for(variant):
    settings = settings_of(variant, "eth0")
    if "lite" in variant.get("device", ""):
        settings.setdefault("LITE_STATS", "1")
    return settings


class Lab:
    def __init__(self, options, variants, rate):
        self.options, self.variants, self.rate = options, variants, rate
        self.hosts = int(os.environ["LAB_HOSTS"])
        self.place = LabPlace(self.hosts)
        self.failures = []
        self.port = 20000

    def points(self):
        sizes = [size_of(text) for text in self.options.sizes.split(",")]
        for op in self.options.ops.split(","):
            for datatype in self.options.datatypes.split(","):
                if datatype == "strided" and op == "iallreduce":
                    continue
                for compute in self.options.compute.split(","):
                    for size in sizes:
                        yield op, datatype, compute, size

    def command_arguments(self, op, compute, size):
        drain = burst_of(self.rate) if self.options.drain is None else (0 if self.options.drain == "0" else size_of(self.options.drain))
        words = ["--op", op, "--compute", compute, "--sizes", str(size), "--factor", str(self.options.factor), "--seconds", str(self.options.seconds)]
        if self.options.iterations:
            words += ["--iterations", str(self.options.iterations)]
        if drain:
            words += ["--drain", str(drain)]
        return words

    def commands(self, variant, op, datatype, compute, size, settings):
        """What to start, in order; the last one prints the result."""
        words = self.command_arguments(op, compute, size)
        program = niced(self.options.nice, [variant["program"]])
        if variant["kind"] == "tcp":
            self.port += 1
            if variant["lowat"] == "idle":
                words += ["--handler", "no"]
            elif variant["lowat"] != "0":
                words += ["--lowat", variant["lowat"]]
            words += ["--address", self.place.address(1), "--port", str(self.port)]
            return [self.place.on(rank, program + ["--rank", str(rank)] + words, settings) for rank in (1, 0)]
        words += ["--datatype", datatype, "--block", str(size_of(self.options.block))]
        if self.options.multiple:
            words.append("--multiple")
        return [self.place.mpi_command(variant, self.hosts, program + words, settings)]

    def run(self, variant, op, datatype, compute, size):
        """One process start: its result, or None."""
        settings = settings_for(variant)
        # Debian's ch4:ucx with its asynchronous thread now and then does not return from MPI_Finalize: its numbers are good, so they are taken
        started = Started(self.place, self.commands(variant, op, datatype, compute, size, settings), environment_of(settings), self.options.timeout,
                                 has_result=lambda text: b'"per_rank"' in text)
        lines = started.json_lines()
        result = lines[-1] if lines else None
        text = started.error_text
        failed = started.hung or started.code != 0
        if result and started.hung and "lite" not in variant.get("device", "lite"):
            say(f"overlap: {variant['name']} did not end after its result, {op} {datatype} {size_text(size)}: the result is taken")
            failed = False
        if result is None or failed:
            what = f"{variant['name']}: {op} {datatype} {size_text(size)} compute={compute} at {self.rate}: " + (
                f"no end within {self.options.timeout:g} s" if started.hung else f"exit code {started.code}")
            say(f"overlap: {what}")
            for line in [line for line in text.splitlines() if not line.startswith("lite-stats")][-8:]:
                say(f"    | {line}")
            self.failures.append(what)
            return None
        self.add_signals(result, started.output + text)
        return result

    @staticmethod
    def add_signals(result, text):
        """Linux counts no signals for a process, the device does. Its line is for the whole process, so what start and barriers cost is in it too."""
        for line in re.findall(r"lite-stats (.*)", text):
            fields = dict(re.findall(r"(\w+)=(\S+)", line))
            try:
                rank = result["per_rank"][int(fields["rank"])]
                rank["signals_per_mb"] = int(fields["signals"]) / (rank["iterations"] * rank["moved_mb"])
                if "thread_wakes" in fields:
                    rank["thread_wakes_per_mb"] = int(fields["thread_wakes"]) / (rank["iterations"] * rank["moved_mb"])
            except (KeyError, IndexError, TypeError, ValueError):
                pass

    def wait_idle(self):
        deadline = time.monotonic() + self.options.wait_idle
        while time.monotonic() < deadline:
            def look():
                with open("/proc/stat", encoding="ascii") as text:
                    fields = [int(word) for word in text.readline().split()[1:9]]
                return sum(fields), fields[3] + fields[4]
            all_before, idle_before = look()
            time.sleep(0.5)
            all_after, idle_after = look()
            if idle_after - idle_before >= 0.95 * (all_after - all_before):
                return

    def run_undisturbed(self, variant, point):
        """Neighbours that compute on our cores are not to be measured: again, a few times. What decides is the computation alone, which no MPI slows."""
        best = None
        # more ranks than cores take them from each other
        tries = 1 + (self.options.retries if self.hosts <= len(os.sched_getaffinity(0)) else 0)
        for attempt in range(tries):
            self.wait_idle()
            load = os.getloadavg()[0]
            result = self.run(variant, *point)
            if not result:
                return best
            result["stolen_pct"] = max((rank["stolen_pct"] for rank in result["per_rank"] if rank["stolen_pct"] is not None), default=0.0)
            result.update(name=variant["name"], rate=self.rate, load=load, attempt=attempt)
            if best is None or result["stolen_pct"] < best["stolen_pct"]:
                best = result
            if best["stolen_pct"] <= self.options.max_stolen:
                break
        return best

    def measure(self):
        points = list(self.points())
        plan = []
        for round_number in range(self.options.rounds):
            for index, point in enumerate(points):
                able = [variant for variant in self.variants if variant["kind"] == "mpi" or (point[0] in TCP_OPS and point[1] == "contiguous")]
                plan += [(round_number, variant, point) for variant in rotated(able, round_number + index)]
        samples = []
        progress = Progress(len(plan))
        for round_number, variant, point in plan:
            op, datatype, compute, size = point
            progress.show(f"{self.rate}, now {variant['name']} {op} {datatype} {size_text(size)} compute={compute}")
            result = self.run_undisturbed(variant, point)
            if result:
                result["round"] = round_number
                samples.append(result)
            progress.done += 1
        progress.end()
        return samples
