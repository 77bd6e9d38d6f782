"""Measures how much of the communication hides behind computation, between test hosts (scripts/net-lab), for any MPI installations side by side.

Runs mpi_overlap and tcp_overlap (their sources are in test/bench) in rounds: every round runs each installation once, in another order,
one process start per size. Prints medians over the rounds. docs/overlap.md tells the method and what the columns mean.
"""
import argparse
import os
import tempfile
import time

from ..common import BENCH, die
from ..running import in_lab
from ..sizes import burst_of, size_of
from .checks import parse_check
from .lab import Lab, build, variants_of
from .options import COLLECTIVES, OPS

ENTRY = os.path.join(BENCH, "overlap")


def measure_all(options):
    if options.hosts < 2:
        die("--hosts: want at least 2")
    for name, allowed in (("ops", OPS), ("datatypes", ("contiguous", "strided"))):
        for word in getattr(options, name).split(","):
            if word not in allowed:
                die(f"--{name} {word}: want of {','.join(allowed)}")
    if options.hosts > 2 and any(op not in COLLECTIVES for op in options.ops.split(",")):
        die("--hosts above 2 is for collectives: --ops ialltoall,iallreduce,ibcast")
    for compute in options.compute.split(","):
        if compute != "all" and not (compute.isdigit() and int(compute) < options.hosts):
            die(f"--compute {compute}: want all, or a rank below {options.hosts}")
    for size in options.sizes.split(","):
        size_of(size)
    for text in options.check:
        parse_check(text)
    rates = options.rate or ["1gbit"]
    if options.in_lab and ("LAB_DIR" not in os.environ or len(rates) != 1):
        die("--in-lab is for a command started by scripts/net-lab exec, with one --rate (which says what the lab was given)")
    if not options.in_lab and os.geteuid() != 0:
        die("the test hosts are network namespaces, which need root: run it with sudo")
    variants = variants_of(options)
    samples, failures = [], []
    with tempfile.TemporaryDirectory(prefix="lite-overlap-") as directory:
        build(variants, directory)
        for rate in rates:
            if options.in_lab:
                lab = Lab(options, variants, rate)
                samples += lab.measure()
                failures += lab.failures
                continue
            answer = in_lab(ENTRY, {"options": vars(options), "variants": variants, "rate": rate}, options.hosts, rate, pin=options.pin)
            samples += answer["samples"]
            failures += answer["failures"]
    versions = {}
    for sample in samples:
        versions.setdefault(sample["name"], sample["library"])
    about = {
        "kernel": " ".join(os.uname()[i] for i in (0, 2, 4)), "cores": len(os.sched_getaffinity(0)), "hosts": options.hosts, "rates": rates,
        "pin": options.pin, "rounds": options.rounds, "factor": options.factor, "date": time.strftime("%Y-%m-%d %H:%M %Z"),
        "names": [variant["name"] for variant in variants],
        "libraries": {variant["name"]: versions.get(variant["name"], "") for variant in variants},
        "environment": {variant["name"]: variant.get("environment", {}) for variant in variants},
        "drain": {rate: burst_of(rate) if options.drain is None else (0 if options.drain == "0" else size_of(options.drain)) for rate in rates},
        "burst": {rate: burst_of(rate) for rate in rates},
        "max_stolen": options.max_stolen,
        "load": [min(sample["load"] for sample in samples), max(sample["load"] for sample in samples)] if samples else None,
    }
    return {"about": about, "samples": samples, "failures": failures}


def inside(orders):
    lab = Lab(argparse.Namespace(**orders["options"]), orders["variants"], orders["rate"])
    samples = lab.measure()
    return {"samples": samples, "failures": lab.failures}
