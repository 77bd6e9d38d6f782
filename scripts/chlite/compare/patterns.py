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
    "overlap": (2, None, "64K,1M,4M", "1M", "overlap: both send and receive while both compute (test/bench/overlap tells more)"),
    "many_to_one": (8, "many_to_one", "8,64K", "8,64K", "many to one: seven ranks send to one, which receives from any source"),
    "halo": (4, "halo", "1K,64K", "1K,64K", "halo exchange: four ranks in a torus, two faces contiguous, two strided"),
    "late": (2, "late", "64K,128K,256K", "64K", "late receives: messages both ways, received after 200 us of computation; us beyond those"),
    "ring": (4, "ring", "8", "8", "ring of four ranks: one message goes round"),
    "pairs": (4, "pairs", "8", "8", "pairs of four ranks: two ping-pongs at a time"),
    "ring8": (8, "ring", "8", "8", "ring of eight ranks"),
    "netpipe": (2, None, "8M", "8M", "NetPIPE: the least of seven trials; tcp-spin by the same way of measuring"),
}
NETPIPE_SIZES = [1 << shift for shift in range(24)]    # of those that NetPIPE has, the ones that are drawn; the table has some of them
NETPIPE_SHOWN = (1, 64, 1024, 4096, 16384, 65536, 131072, 262144, 524288, 1048576, 2097152, 4194304, 8388608)
DEFAULT_PATTERNS = [name for name in PATTERNS if name != "netpipe"]


def patterns_of(options):
    names = options.patterns.split(",") if options.patterns else DEFAULT_PATTERNS
    for name in names:
        if name not in PATTERNS:
            die(f"--patterns {name}: want of {','.join(PATTERNS)}")
    return [name for name in PATTERNS if name in names]


def sizes_of(options, pattern):
    _, _, sizes, quick_sizes, _ = PATTERNS[pattern]
    if options.sizes and pattern in ("pingpong", "stream", "bidirectional", "overlap", "late"):
        return [size_of(text) for text in options.sizes.split(",")]
    return [size_of(text) for text in (quick_sizes if options.quick else sizes).split(",")]


def main_metric(pattern):
    return {"overlap": "availability", "halo": "us", "late": "us", "pingpong": "us", "netpipe": "us", "stream": "gbps", "bidirectional": "gbps"}.get(pattern, "messages")
