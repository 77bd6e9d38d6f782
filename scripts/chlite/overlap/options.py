"""What scripts give it: the command line of test/bench/overlap."""
import argparse

OPS = ("isend", "irecv", "both", "put", "get", "ialltoall", "iallreduce", "ibcast")
TCP_OPS = ("isend", "irecv", "both")
COLLECTIVES = ("ialltoall", "iallreduce", "ibcast")


def arguments():
    parser = argparse.ArgumentParser(
        prog="test/bench/overlap", description="Overlap of communication and computation, measured between network namespaces, against any MPI.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="""examples:
  test/bench/overlap --mpi sigio=PREFIX,LITE_CONTROLLER=sigio --mpi sync=PREFIX,LITE_CONTROLLER=sync --tcp --tcp 256K
  test/bench/overlap --mpi sigio=PREFIX --mpi mpich=/usr:mpich --mpi async=/usr:mpich,MPIR_CVAR_ASYNC_PROGRESS=1 --mpi openmpi=/usr:openmpi
  test/bench/overlap --mpi sigio=PREFIX --compute 0 --ops isend,irecv           # the other side waits in MPI_Recv or MPI_Send
  test/bench/overlap --mpi thread=PREFIX,LITE_CONTROLLER=thread --hosts 4 --ops ialltoall,iallreduce --sizes 1M
  test/bench/overlap --mpi sigio=PREFIX --tcp 256K --sizes 4M --check 'sigio@4M>=94' --check 'sigio@4M>=tcp-256K - 2'

Exit code 0: all ran, their data was right and every --check held; 1: not so; 2: could not run.""")
    parser.add_argument("--mpi", action="append", default=[], metavar="NAME=PREFIX[:FLAVOR][,VAR=VALUE…]",
                        help="an installation, called NAME, with environment. FLAVOR: the ending of its wrappers where several share a prefix, as Debian's "
                             "do (mpicc.mpich, mpicc.openmpi)")
    parser.add_argument("--tcp", action="append", nargs="?", const="0", default=[], metavar="LOWAT",
                        help="the plain-TCP program beside them, called tcp or tcp-LOWAT; LOWAT: its SO_RCVLOWAT, or 'idle' for one without a handler")
    parser.add_argument("--rate", action="append", metavar="RATE", help="1gbit, 10gbit, none …, as for scripts/net-lab; several allowed (default 1gbit)")
    parser.add_argument("--hosts", type=int, default=2, help="one rank each (default 2; more for collectives)")
    parser.add_argument("--pin", choices=("auto", "yes", "no"), default="auto", help="one core per host (default: when there are cores enough)")
    parser.add_argument("--ops", default="both", help=f"of {','.join(OPS)} (default both)")
    parser.add_argument("--datatypes", default="contiguous", help="of contiguous,strided")
    parser.add_argument("--block", default="1K", help="bytes per block of the strided datatype, at twice that stride (default 1K)")
    parser.add_argument("--compute", default="all", help="who computes: all, or a rank; several with commas (default all)")
    parser.add_argument("--sizes", default="1K,16K,64K,256K,1M,4M,16M", help="default 1K,16K,64K,256K,1M,4M,16M")
    parser.add_argument("--rounds", type=int, default=3, help="default 3")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a measurement (default 1)")
    parser.add_argument("--iterations", type=int, default=0, help="of each kind, instead of --seconds")
    parser.add_argument("--factor", type=float, default=1.2,
                        help="computation = factor x communication alone (default 1.2: room for the wire to be done before the computation is)")
    parser.add_argument("--drain", metavar="BYTES", help="bytes exchanged before each iteration, so that a shaper's bucket is empty, as a real link has "
                                                         "none; 0: leave it full (default: the burst of the rate)")
    parser.add_argument("--multiple", action="store_true", help="ask for MPI_THREAD_MULTIPLE")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one process start (default 120)")
    parser.add_argument("--max-stolen", type=float, default=2.0, metavar="PERCENT",
                        help="repeat a run in which others took more than this of a core from the computation without communication (default 2)")
    parser.add_argument("--retries", type=int, default=2, help="how often, the least disturbed counts (default 2)")
    parser.add_argument("--nice", type=int, default=0, metavar="N",
                        help="priority of what is measured, -20 to 19, for a machine that others use (default 0)")
    parser.add_argument("--wait-idle", type=float, default=0.0, metavar="SECONDS",
                        help="before each run wait up to so long for the machine to be idle (default 0)")
    parser.add_argument("--in-lab", action="store_true", help="run in the net-lab that this is started in, one --rate being its rate")
    parser.add_argument("--json", action="store_true", help="the result for programs on stdout, in place of the tables")
    parser.add_argument("--save", metavar="FILE", help="write the same to a file")
    parser.add_argument("--from", dest="source", metavar="FILE", help="show, plot or check a saved result, measure nothing")
    parser.add_argument("--csv", metavar="FILE", help="one line per point and rank")
    parser.add_argument("--plot", metavar="FILE", help="availability by size as .png or .svg (python3-matplotlib)")
    parser.add_argument("--check", action="append", default=[], metavar="CONDITION",
                        help="NAME[.METRIC]@SIZES>=VALUE (or <=), VALUE a number or another NAME with '- N'; METRIC: a column of --csv, availability by "
                             "default; the worst rank counts")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--only-plot", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.source and not options.inside and not options.mpi and not options.tcp:
        parser.error("nothing to measure: name installations with --mpi, or --tcp")
    return options
