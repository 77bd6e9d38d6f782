"""Compares MPI installations with each other and with raw TCP, in one interleaved run: latency, throughput, message rates, many to one, a halo exchange,
four ranks on two cores, overlap. docs/compare.md tells how to read what it prints."""
import argparse

from .patterns import DEFAULT_PATTERNS, GROUPS, PATTERNS


def arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/compare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="""patterns:
""" + "\n".join(f"  {name:<14} {PATTERNS[name][4]}" for name in PATTERNS) + """

examples:
  scripts/compare --debian                                       ./_install against Debian's mpich and openmpi, and raw TCP
  scripts/compare --quick lite=PREFIX sync=PREFIX,LITE_CONTROLLER=sync old=/opt/mpich-1.2.7
  scripts/compare lite=PREFIX --debian --rate none --rate 1gbit --rate 10gbit
  scripts/compare lite=PREFIX --debian --hosts a,b               on a real cluster: ssh without password, the installations under the same paths
  scripts/compare lite=PREFIX --debian --patterns netpipe        with Debian's netpipe-tcp, netpipe-mpich2, netpipe-openmpi
  scripts/compare --netpipe NetPIPE-3.7.2 --patterns netpipe lite=MPICH1_CH_LITE p4=MPICH1_CH_P4 p4-4M=MPICH1_CH_P4,P4_SOCKBUFSIZE=4194304

Exit code 0: all ran, data was right, its bytes crossed the link; 1: not so; 2: could not run.""")
    parser.add_argument("installations", nargs="*", metavar="NAME=PREFIX[:FLAVOR][,VAR=VALUE…]",
                        help="an MPI installation, with environment (default ch_lite=./_install, where scripts/quickstart puts it). FLAVOR: the ending of its "
                             "wrappers where several share a prefix (mpicc.mpich)")
    parser.add_argument("--debian", action="store_true", help="also Debian's mpich and openmpi (packages mpich libmpich-dev, openmpi-bin libopenmpi-dev)")
    parser.add_argument("--rate", action="append", metavar="RATE", help="of the link between the test hosts: 1gbit, 10gbit, none; several allowed (default none)")
    parser.add_argument("--flow-rate", metavar="RATE", help="of each TCP connection between the test hosts at most, as cloud networks have it")
    parser.add_argument("--networks", type=int, default=1, choices=range(1, 5), metavar="N", help="between the test hosts, 1 to 4 (default 1); --rate A,B: of each one")
    parser.add_argument("--sockets", type=int, default=1, choices=range(1, 17), metavar="N", help="also raw TCP over so many connections read by one thread, in ping-pong, streaming and overlap; 2 to 16")
    parser.add_argument("--mtu", type=int, metavar="N", help="of the link between the test hosts")
    parser.add_argument("--hosts", metavar="A,B", help="real hosts instead of test hosts; more ranks than hosts are dealt out in turn")
    parser.add_argument("--ssh", default="ssh", metavar="COMMAND", help="what reaches a host (default ssh)")
    parser.add_argument("--iface", metavar="NAME", help="with --hosts: the interface that is to be used, for the installations that can be told, and counted")
    parser.add_argument("--patterns", metavar="A,B", help=f"default {','.join(DEFAULT_PATTERNS)}; also netpipe, and the groups {', '.join(GROUPS)}")
    parser.add_argument("--applications", action="store_true", help="the same as --patterns applications: time to solution of a few programs")
    parser.add_argument("--netpipe", metavar="DIR", help="NetPIPE's source (its src directory or the one above), compiled with each installation's mpicc and "
                        "with gcc for raw TCP, in place of Debian's programs")
    parser.add_argument("--sizes", metavar="8,64K", help="of ping-pong, streaming, bidirectional, overlap, late, collectives and one-sided accesses, instead of each pattern's own")
    parser.add_argument("--rounds", type=int, metavar="N", help="each installation runs each pattern once per round, in turns (default 5, --quick 2)")
    parser.add_argument("--seconds", type=float, metavar="S", help="per size in a run (default 0.3, --quick 0.06)")
    parser.add_argument("--quick", action="store_true", help="a look in a few minutes: fewer sizes, rounds, seconds")
    parser.add_argument("--no-raw", action="store_true", help="without raw TCP (and so without ratios to it)")
    parser.add_argument("--sockbuf", default="0", metavar="BYTES", help="of raw TCP's sockets, if the installations are given such too (LITE_SOCKBUF)")
    parser.add_argument("--pin", choices=("auto", "yes", "no"), default="auto", help="one core per test host (default: when there are cores enough)")
    parser.add_argument("--nice", type=int, default=0, metavar="N", help="priority of what is measured, -20 to 19, for a machine that others use (default 0)")
    parser.add_argument("--timeout", type=float, default=180.0, metavar="SECONDS", help="for one start of a program (default 180)")
    parser.add_argument("--json", action="store_true", help="the result for programs on stdout, in place of the tables")
    parser.add_argument("--out", default="_compare", metavar="DIR", help="where compare.json, compare.txt and the plots go (default ./_compare)")
    parser.add_argument("--no-plots", action="store_true", help="do not draw")
    parser.add_argument("--from", dest="source", metavar="FILE", help="show and draw a saved compare.json, measure nothing")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--only-plots", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args()
    if options.applications:
        options.patterns = ",".join(filter(None, [options.patterns, "applications"]))
    options.rounds = options.rounds or (2 if options.quick else 5)
    options.seconds = options.seconds or (0.06 if options.quick else 0.3)
    if options.rounds < 1 or options.seconds <= 0:
        parser.error("--rounds and --seconds: want more than 0")
    return options
