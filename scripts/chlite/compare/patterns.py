"""What is measured: the patterns, their ranks and sizes."""
from ..common import die
from ..sizes import size_of

ALL_SIZES = "1,8,64,256,1K,4K,8K,16K,32K,64K,128K,256K,512K,1M,2M,4M,8M"
BULK_SIZES = "1K,16K,64K,256K,1M,4M"
QUICK_SIZES = "1,64,4K,64K,256K,1M"
# name: ranks, the program's pattern, sizes, sizes of --quick, title. Two ranks: each has a host and a core.
PATTERNS = {
    "pingpong": (2, "pingpong", ALL_SIZES, QUICK_SIZES, "ping-pong: half a round trip of blocking calls"),
    "stream": (2, "stream", BULK_SIZES, "4K,64K,1M", "streaming: one way, 64 messages (at most 16 MB) under way"),
    "bidirectional": (2, "bidirectional", BULK_SIZES, "4K,64K,1M", "bidirectional: streaming both ways at a time, the sum"),
    "rate": (2, "rate", "8", "8", "message rate: streaming of small messages"),
    "thread_rate": (2, "thread_rate", "8", "8", "message rate of two threads of each rank, each with a communicator (MPI_THREAD_MULTIPLE)"),
    "overlap": (2, None, "64K,1M,4M", "1M", "overlap: both send and receive while both compute (test/bench/overlap tells more)"),
    "many_to_one": (8, "many_to_one", "8,64K", "8,64K", "many to one: seven ranks send to one, which receives from any source"),
    "halo": (4, "halo", "1K,64K", "1K,64K", "halo exchange: four ranks in a torus, two faces contiguous, two strided"),
    "late": (2, "late", "64K,128K,256K", "64K", "late receives: messages both ways, received after 200 us of computation; us beyond those"),
    "ring": (4, "ring", "8", "8", "ring of four ranks: one message goes round"),
    "pairs": (4, "pairs", "8", "8", "pairs of four ranks: two ping-pongs at a time"),
    "ring8": (8, "ring", "8", "8", "ring of eight ranks"),
    "netpipe": (2, None, "8M", "8M", "NetPIPE: the least of seven trials; tcp-spin by the same way of measuring"),
}
# What one call costs (test/bench/mpi_calls.c): collectives by 2 and 4 ranks, one-sided accesses with what completes them.
COLLECTIVES = ("bcast", "reduce", "allreduce", "reduce_scatter", "scan", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall", "alltoallv")
CALL_SIZES, QUICK_CALL_SIZES = "8,64,512,4K,16K,32K,64K,128K,256K,1M,4M", "64,4K,64K,1M"
PAIR_SIZES = "8,64,512,4K,16K,64K,256K,1M"    # of a block for every rank
GROUPS = {"collectives": [], "one_sided": []}
for _ranks in (2, 4):
    for _name in ("barrier",) + COLLECTIVES:
        _calls = CALL_SIZES.removeprefix("8,") if _name == "reduce_scatter" else CALL_SIZES    # a part is left for each
        _sizes = ("8", "8") if _name == "barrier" else (PAIR_SIZES if _name[:3] == "all" and _name != "allreduce" else _calls, QUICK_CALL_SIZES)
        PATTERNS[f"{_name}{_ranks}"] = (_ranks, _name, *_sizes, f"MPI_{_name.capitalize()} of {_ranks} ranks: from a barrier until the slowest is back")
        GROUPS["collectives"].append(f"{_name}{_ranks}")
for _access in ("put", "get", "accumulate", "fetch_add", "swap"):
    for _end in ("flush", "lock", "fence", "post"):
        _sizes = ("8", "8") if _access in ("fetch_add", "swap") else (CALL_SIZES, QUICK_CALL_SIZES)
        PATTERNS[f"{_access}_{_end}"] = (2, f"{_access}_{_end}", *_sizes, f"one-sided: {_access}, completed by {_end}")
        GROUPS["one_sided"].append(f"{_access}_{_end}")
CALLS = [name for group in GROUPS.values() for name in group]
# Time to solution (test/bench/apps): a rank per core, and two per core; messages waited for, and computed meanwhile.
APPLICATIONS = {}    # name: its program, and whether it is to compute while messages travel
for _program, _sizes, _what in (("stencil2d", "256,1K", "heat equation in two dimensions, edge of the square"),
                                ("stencil3d", "64,128", "heat equation in three dimensions, edge of the cube"),
                                ("conjugate_gradient", "64,256", "conjugate gradients, edge of the square"),
                                ("fft_transpose", "512,1K", "Fourier transform in two dimensions and back, edge of the square"),
                                ("sample_sort", "256K,1M", "sort, keys of a rank")):
    for _ranks in (2, 4):
        for _overlap in (False, True):
            _name = f"{_program}_{_ranks}" + ("_overlap" if _overlap else "")
            APPLICATIONS[_name] = (_program, _overlap)
            PATTERNS[_name] = (_ranks, _program, _sizes, _sizes, f"{_what}; {_ranks} ranks on two cores, messages {'travel while it computes' if _overlap else 'waited for'}: time to solution")
GROUPS["applications"] = list(APPLICATIONS)
MPI_TIMES = ("halo", "late", *CALLS, *APPLICATIONS)    # in us
MPI_ONLY = (*MPI_TIMES, "thread_rate")    # not of raw TCP

NETPIPE_SIZES = [1 << shift for shift in range(24)]    # of those that NetPIPE has, the ones that are drawn; the table has some of them
NETPIPE_SHOWN = (1, 64, 1024, 4096, 16384, 65536, 131072, 262144, 524288, 1048576, 2097152, 4194304, 8388608)
ON_REQUEST = ("netpipe", "thread_rate", *CALLS, *APPLICATIONS)
DEFAULT_PATTERNS = [name for name in PATTERNS if name not in ON_REQUEST]


def patterns_of(options):
    names = []
    for name in options.patterns.split(",") if options.patterns else DEFAULT_PATTERNS:
        if name not in PATTERNS and name not in GROUPS:
            die(f"--patterns {name}: want of {','.join([*GROUPS, *PATTERNS])}")
        names += GROUPS.get(name, [name])
    return [name for name in PATTERNS if name in names]


def sizes_of(options, pattern):
    ranks, program, sizes, quick_sizes, _ = PATTERNS[pattern]
    if options.sizes and (pattern in ("pingpong", "stream", "bidirectional", "overlap", "late") or (pattern in CALLS and sizes != "8")):
        least = 8 * ranks if program == "reduce_scatter" else 1    # a part of the input is left for each
        return [size for size in map(size_of, options.sizes.split(",")) if size >= least] or die(f"--sizes {options.sizes}: {pattern} wants {least} bytes at least")
    return [size_of(text) for text in (quick_sizes if options.quick else sizes).split(",")]


def main_metric(pattern):
    if pattern in MPI_TIMES:
        return "us"
    return {"overlap": "availability", "pingpong": "us", "netpipe": "us", "stream": "gbps", "bidirectional": "gbps"}.get(pattern, "messages")
