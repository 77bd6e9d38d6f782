"""One whole measurement: compiles, runs on test hosts or on real ones, and says on what."""
import argparse
import os
import shlex
import sys
import tempfile
import time

from ..common import SCRIPTS, TOP, die, output_of, say
from ..places import ClusterPlace, LabPlace
from ..running import in_lab
from .patterns import PATTERNS, patterns_of, sizes_of
from .runner import Runner
from .variants import build, cutoffs_of, reason_not, variants_of

ENTRY = os.path.join(SCRIPTS, "compare")


def merge(into, answer, rate):
    into["samples"] += answer["samples"]
    into["failures"] += answer["failures"]
    into["libraries"] = {**answer["libraries"], **into["libraries"]}
    into["settings"] = {**answer["settings"], **into["settings"]}
    into["link"].setdefault(rate, answer["link"])


def inside(orders):
    options = argparse.Namespace(**orders["options"])
    place = LabPlace(orders["hosts"])
    try:
        return Runner(place, options, orders["variants"], orders["patterns"], orders["rate"]).answer()
    finally:
        place.end_leftovers()


def measure_all(options):
    variants, patterns = variants_of(options), patterns_of(options)
    rates = options.rate or ["none"]
    if options.hosts:
        hosts = [host for host in options.hosts.split(",") if host]
        if len(hosts) < 2:
            die(f"--hosts {options.hosts}: want two or more, with commas")
        if options.rate or options.mtu or options.flow_rate or options.networks != 1:
            die("--rate, --flow-rate, --networks and --mtu are for test hosts: a real link has its own")
        rates = ["link"]
    elif os.geteuid() != 0:
        die("the test hosts are network namespaces, which need root: run it with sudo, or on real hosts with --hosts")
    for pattern in patterns:
        sizes_of(options, pattern)
    got = {"samples": [], "failures": [], "libraries": {}, "settings": {}, "link": {}}
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lite-compare-") as directory:
        programs = build(variants, patterns, directory, options.netpipe)
        skipped = []
        for variant in variants:
            for pattern in patterns:
                why = reason_not(variant, pattern)
                if why:
                    skipped.append(f"{variant['name']}, {pattern}: {why}")
                    say(f"compare: not run: {skipped[-1]}")
        if options.hosts:
            place = ClusterPlace(hosts, options.ssh, options.iface, directory)
            for host in hosts:
                answer = output_of(place.ssh + [host, "echo reached"])
                if answer.strip().split("\n")[-1] != "reached":
                    die(f"cannot reach host {host} by '{options.ssh} {host}': {answer.strip() or 'no answer'}")
            try:
                place.copy(programs)
                merge(got, Runner(place, options, variants, patterns, rates[0]).answer(), rates[0])
            finally:
                place.remove()
        else:
            for rate in rates:
                for count in sorted({PATTERNS[pattern][0] for pattern in patterns}):
                    group = [pattern for pattern in patterns if PATTERNS[pattern][0] == count]
                    say(f"compare: rate {rate}, {count} test hosts: {', '.join(group)}")
                    orders = {"options": vars(options), "variants": variants, "patterns": group, "rate": rate, "hosts": count}
                    more = (["--flow-rate", options.flow_rate] if options.flow_rate else []) + (["--networks", str(options.networks)] if options.networks != 1 else [])
                    merge(got, in_lab(ENTRY, orders, count, rate, pin=options.pin, mtu=options.mtu, direct=count == 2 and not more, more=more), rate)
    loads = [sample["load"] for sample in got["samples"]]
    about = {
        "date": time.strftime("%Y-%m-%d %H:%M %Z"), "minutes": round((time.monotonic() - begin) / 60, 1), "command": shlex.join(sys.argv),
        "project": output_of(["git", "-C", TOP, "describe", "--always", "--dirty"]).strip() if os.path.exists(os.path.join(TOP, ".git")) else "",
        "kernel": " ".join(os.uname()[i] for i in (0, 2, 4)), "processor": processor(), "cores": len(os.sched_getaffinity(0)),
        "where": f"hosts {options.hosts}" if options.hosts else "test hosts (network namespaces, veth)", "rates": rates, "mtu": options.mtu, "pin": options.pin,
        "link": got["link"], "rounds": options.rounds, "seconds": options.seconds, "sockbuf": options.sockbuf, "load": [min(loads), max(loads)] if loads else None,
        "names": [variant["name"] for variant in variants], "patterns": patterns, "skipped": skipped,
        "variants": {variant["name"]: {"kind": variant["kind"], "prefix": variant.get("prefix", ""), "device": variant.get("device", ""),
                                       "library": got["libraries"].get(variant["name"], "").replace("MPICH Version: ", "MPICH "), "settings": got["settings"].get(variant["name"], {}),
                                       "cutoffs": cutoffs_of(variant)} for variant in variants},
    }
    return {"about": about, "samples": got["samples"], "failures": got["failures"]}


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as text:
            return next((line.split(":", 1)[1].strip() for line in text if line.startswith("model name")), "")
    except OSError:
        return ""
