"""NetPIPE: Debian's programs or its source, and the lines that it prints."""
import glob
import os
import re
import shutil

from ..common import die


def netpipe_of(variant):
    """(program, None), compiled or Debian's, or (None, why not)."""
    if variant.get("netpipe"):
        return variant["netpipe"], None
    if variant["kind"] == "tcp":
        program, package = "NPtcp", "netpipe-tcp"
    elif variant["family"] == "mpich1":
        return None, "Debian has no NetPIPE for MPICH 1: name its source with --netpipe"
    else:
        program, package = ("NPopenmpi", "netpipe-openmpi") if variant["family"] == "openmpi" else ("NPmpich2", "netpipe-mpich2")
    path = shutil.which(program)
    return (path, None) if path else (None, f"no {program}: apt-get install {package}")


def netpipe_sources(directory):
    """Of a tree of NetPIPE's."""
    for place in (os.path.join(directory, "src"), directory):
        if all(os.path.exists(os.path.join(place, name)) for name in ("netpipe.c", "netpipe.h", "mpi.c", "tcp.c")):
            return os.path.realpath(place)
    die(f"--netpipe {directory}: no netpipe.c, netpipe.h, mpi.c, tcp.c there, nor in its src: want NetPIPE's source (3.7.2 is tested)")
    return ""


def is_spinning_netpipe(variant, pattern):
    """NetPIPE itself has no TCP that asks again and again: our ping-pong stands in, at its sizes, and the least of the batches as it takes the least of its trials."""
    return pattern == "netpipe" and variant.get("wait") == "spin"


def netpipe_shim(variant, directory):
    """NPmpich2 wants libmpich.so.12, Debian's name of what MPICH calls libmpi.so.12 (one ABI)."""
    found = glob.glob(os.path.join(variant["prefix"], "lib", "libmpi.so.12"))
    if variant["flavor"] or not found:
        return ""
    shim = os.path.join(directory, f"shim-{variant['name']}")
    os.makedirs(shim, exist_ok=True)
    os.symlink(found[0], os.path.join(shim, "libmpich.so.12"))
    return shim


def parse_netpipe(text):
    """ 12:      64 bytes   1234 times -->   123.45 Mbps in       4.20 usec"""
    points = {}
    for match in re.finditer(r"^\s*\d+:\s+(\d+) bytes\s+\d+ times\s+-->\s+([0-9.]+) Mbps in\s+([0-9.]+) usec", text, re.M):
        points[int(match.group(1))] = float(match.group(3))
    return points
