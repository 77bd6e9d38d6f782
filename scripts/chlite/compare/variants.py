"""What is compared: installations and raw TCP, which patterns each has, its programs, its cutoffs."""
import os
import re

from ..builder import Builder
from ..common import TOP, die
from ..installations import check_names, identify, parse_installation
from ..sizes import size_of
from .netpipe import is_spinning_netpipe, netpipe_of, netpipe_shim, netpipe_sources
from .patterns import APPLICATIONS, CALLS, MPI_ONLY, PATTERNS


def variants_of(options):
    specs = list(options.installations)
    if not specs:
        places = [os.path.join(directory, "_install") for directory in (os.getcwd(), TOP)]
        found = [place for place in places if os.path.exists(os.path.join(place, "bin", "mpicc"))]
        if not found:
            die("no installation: make one with scripts/quickstart, or name some as NAME=PREFIX (see --help)")
        specs = [f"ch_lite={found[0]}"]
    if options.debian:
        specs += ["mpich=/usr:mpich", "openmpi=/usr:openmpi"]
    variants = [parse_installation(spec) for spec in specs]
    if not options.no_raw:
        size_of(options.sockbuf if options.sockbuf != "0" else "1")
        variants = [{"name": f"tcp-{wait}", "kind": "tcp", "wait": wait} for wait in ("spin", "block", "sigio")] + variants
        if options.sockets != 1:
            several = {"kind": "tcp", "sockets": options.sockets}
            variants = [{"name": f"tcp-{options.sockets}", "wait": "spin", **several}, {"name": f"tcp-{options.sockets}-sigio", "wait": "sigio", **several}] + variants
    check_names(variants)
    for variant in variants:
        if variant["kind"] == "mpi":
            identify(variant)
    return variants


def is_lite(variant):
    return "lite" in variant.get("device", "")


def reason_not(variant, pattern):
    """Why an installation has no such pattern, or None."""
    if variant["kind"] == "tcp":
        if (variant["wait"] == "sigio") != (pattern == "overlap") or ("sockets" in variant and pattern not in ("pingpong", "stream", "overlap")):
            return ""
        if pattern in MPI_ONLY:
            return ""
    if pattern == "overlap" and variant.get("overlap_program") is None:
        return "the overlap program needs MPI 3"
    if pattern in CALLS and variant.get("calls_program") is None:
        return "the program of calls needs MPI 3"
    if pattern in APPLICATIONS and variant.get("applications", {}).get(APPLICATIONS[pattern][0]) is None:
        return "the program needs MPI 3"
    if pattern == "netpipe" and not is_spinning_netpipe(variant, pattern):
        return netpipe_of(variant)[1]
    return None


def build(variants, patterns, directory, netpipe=None):
    builder = Builder(directory)
    netpipe = netpipe_sources(netpipe) if netpipe else None
    for variant in variants:
        tcp = variant["kind"] == "tcp"
        if any((PATTERNS[name][1] and name not in CALLS and name not in APPLICATIONS) or is_spinning_netpipe(variant, name) for name in patterns) and variant.get("wait") != "sigio":
            variant["program"] = builder.build(variant, "tcp_bench.c" if tcp else "mpi_bench.c")
        if not tcp and any(name in CALLS for name in patterns):
            variant["calls_program"] = builder.build(variant, "mpi_calls.c", optional=True)
        if not tcp:
            sources = dict.fromkeys(APPLICATIONS[name][0] for name in patterns if name in APPLICATIONS)
            variant["applications"] = {source: builder.build(variant, os.path.join("apps", f"{source}.c"), optional=True) for source in sources}
        if "overlap" in patterns and (not tcp or variant["wait"] == "sigio"):
            variant["overlap_program"] = builder.build(variant, "tcp_overlap.c" if tcp else "mpi_overlap.c", optional=not tcp)
        if "netpipe" in patterns and netpipe and variant.get("wait") in (None, "block"):
            sources = [os.path.join(netpipe, name) for name in ("netpipe.c", "tcp.c" if tcp else "mpi.c")]
            variant["netpipe"] = builder.build_of(variant, sources, flags=("-w", "-DTCP" if tcp else "-DMPI", f"-I{netpipe}"))
        elif "netpipe" in patterns and not tcp and variant["family"] == "mpich":
            variant["shim"] = netpipe_shim(variant, directory)
    return [program for program in builder.made.values() if program]


def cutoffs_of(variant):
    """Where the device changes its protocol: as set, or the defaults in the table of docs/variables.md, which make check keeps true."""
    if not is_lite(variant):
        return {}
    cutoffs = {}
    for name in ("SHORT_MAX", "EAGER_MAX"):
        value = variant["environment"].get(f"LITE_{name}")
        if value is None:
            try:
                with open(os.path.join(TOP, "docs", "variables.md"), encoding="utf-8") as text:
                    found = re.search(rf"^\| `LITE_{name}` \| `(\w+)` \|", text.read(), re.M)
            except OSError:
                found = None
            value = found.group(1) if found else "auto"
        if re.fullmatch(r"[1-9]\d*[KMGkmg]?", value):
            cutoffs[name] = size_of(value)
    return cutoffs
