"""One MPI program of test/bench on several installations by turns, on this machine: its points in a table, the first installation as the reference."""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

from .builder import Builder
from .common import die, say
from .installations import check_names, environment_of, identify, parse_installation, settings_of
from .running import json_objects
from .turns import ratio_of_rounds, rotated


def arguments(description, checked):
    """checked: what --check is about."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter, epilog="Exit code 1: a ratio is above --check.")
    parser.add_argument("--mpi", action="append", required=True, metavar="NAME=PREFIX[:FLAVOR][,VAR=VAL…]", help="an installation; the first one is the reference")
    parser.add_argument("--rounds", type=int, default=7, help="each runs once per round; the table has the medians (default 7)")
    parser.add_argument("--seconds", type=float, default=0.3, help="per point in a run (default 0.3)")
    parser.add_argument("--check", type=float, metavar="RATIO", help=f"exit with 1 when {checked} is slower than the reference by more than this factor")
    parser.add_argument("--json", action="store_true", help="for programs")
    return parser


def points_of(variant, program, ranks, seconds):
    """What the program prints: {"pattern": …, "bytes": …, "us": …} per point."""
    settings = dict(settings_of(variant, None))
    if variant["family"] == "openmpi":
        settings.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    bind = ["--bind-to", "core"] if variant["family"] == "openmpi" else ["-bind-to", "core"]
    command = [variant["mpiexec"], *bind, "-n", str(ranks), program, str(seconds)]
    done = subprocess.run(command, env=environment_of(settings), capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL, check=False)
    points = list(json_objects(done.stdout))
    if done.returncode != 0 or not points:
        die(f"{variant['name']}: exit code {done.returncode}:\n{done.stdout}{done.stderr}", 1)
    return points


def rows_by_turns(options, source, ranks):
    variants = [parse_installation(text) for text in options.mpi]
    check_names(variants)
    times = {}
    with tempfile.TemporaryDirectory() as scratch:
        builder = Builder(scratch)
        for variant in variants:
            identify(variant)
            variant["program"] = builder.build(variant, source)
        for number in range(options.rounds):
            for variant in rotated(variants, number):
                for point in points_of(variant, variant["program"], ranks, options.seconds):
                    times.setdefault((point["pattern"], point["bytes"]), {}).setdefault(variant["name"], []).append(point["us"])
            say(f"round {number + 1} of {options.rounds}")
    first, *others = [variant["name"] for variant in variants]
    # a type that one of them does not have is no row
    return [{"pattern": pattern, "bytes": size, "us": {name: statistics.median(values) for name, values in by_name.items()},
             "ratio": {name: ratio_of_rounds(by_name[name], by_name[first]) for name in others}}
            for (pattern, size), by_name in times.items() if len(by_name) == len(variants)]


def run(options, source, ranks, is_checked):
    """The table or --json on stdout; the exit code. is_checked(pattern): whether --check looks at it."""
    rows = rows_by_turns(options, os.path.abspath(source), ranks)
    if options.json:
        print(json.dumps(rows))
    elif rows:
        names, others, width = list(rows[0]["us"]), list(rows[0]["ratio"]), max(len(row["pattern"]) for row in rows)
        print(f"{'pattern':<{width}} {'bytes':>7}  " + "  ".join(f"{name + ' us':>14}" for name in names) + "  " + "  ".join(f"{name + ' ratio':>16}" for name in others))
        for row in rows:
            print(f"{row['pattern']:<{width}} {row['bytes']:>7}  " + "  ".join(f"{row['us'][name]:>14.3f}" for name in names) + "  " +
                  "  ".join(f"{row['ratio'][name]:>16.3f}" for name in others))
    above = [f"{row['pattern']} {row['bytes']}" for row in rows if options.check and is_checked(row["pattern"]) and any(ratio > options.check for ratio in row["ratio"].values())]
    if above:
        print("above the limit: " + ", ".join(above))
    return 1 if above else 0
