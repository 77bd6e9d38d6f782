"""The table of faults: what goes wrong, what has to come of it, and how soon.

`expected` is one of
  goes on   the job ends well, all its data right
  named     an MPI error that names the rank that is lost (`whom`), and its host; no rank hangs
  ends      the job ends, with a failure
  refused   MPI_Init fails, and what is said matches `says`
  told      the job ends, well or not, and has said what `says`
Where there is `says`, it is found in what the job prints, whatever is expected.
`deadline` counts seconds from the fault to the end of the job; where the job goes on, from the time
when the program is told to end."""
from dataclasses import dataclass, field

HOSTS = 4
NETWORKS = 2
# What a user would set on a network that is to be found dead soon.
IMPATIENT = {"LITE_CONNECT_TIMEOUT": "3s", "LITE_KEEPALIVE": "1:1"}


@dataclass
class Fault:
    name: str
    what: str
    expected: str
    deadline: float = 10
    traffic: str = "short"
    fault: str = "none"  # of the program, in the last rank
    program: str = "victim"  # or "foreign": two jobs, of which one dies
    prepare: str = ""  # of acts.py, before the job
    act: str = ""  # of acts.py, on the last rank's host
    hold: float = 1.0  # seconds between the fault and the order to end, where the job goes on
    ranks: int = 3
    settings: dict = field(default_factory=dict)
    last_settings: dict = field(default_factory=dict)  # of the last rank only
    before: list = field(default_factory=list)  # words before the program
    whom: str = "last"  # the rank that is named: the last one, or any
    says: str = ""
    ours: bool = False  # of ch_lite alone: its listeners, its variables, its wire
    cleanup: bool = False  # whether the process manager may end the job first


def died():
    messages = {
        "short": "8 bytes",
        "eager": "16 KB",
        "long": "1 MB, by rendezvous",
        "any": "receives from anybody",
        "collective": "collectives",
        "rma": "one-sided communication, in an epoch",
        "rma_requests": "accumulates with requests",
        "flood": "2000 unexpected messages",
        "dup": "MPI_Comm_dup",
        "split": "MPI_Comm_split",
        "create": "MPI_Win_create",
        "disconnect": "MPI_Comm_disconnect",
    }
    ways = {
        "segv": "by a segmentation fault",
        "abort": "by abort()",
        "terminate": "by SIGTERM",
        "throw": "by an exception of C++ that nobody catches",
        "exit": "by exit(0), without MPI_Finalize",
        "exit3": "by exit(3)",
        "quick": "by _exit(0)",
        "close": "it has closed all descriptors",
    }
    rows = [(f"killed-{kind}", f"is killed; messages: {text}", kind, "kill") for kind, text in messages.items()]
    rows += [(f"soon-{kind}", f"is killed wherever it is by then; messages: {messages[kind]}", kind, "kill_soon")
             for kind in ("dup", "split", "create", "disconnect")]
    rows += [(f"left-{fault}", f"leaves: {text}", "eager", fault) for fault, text in ways.items()]
    return [
        Fault(name, f"a rank {what}", "named", traffic=traffic, fault=fault)
        for name, what, traffic, fault in rows
    ]


def borne():
    things = {
        "none": "nothing",
        "fork": "a rank forks 100 children, which leave by exit(0)",
        "exec": "a rank forks 100 children, which become another program",
        "popen": "a rank runs 20 commands by popen()",
        "blocked": "a rank blocks every signal",
        "ignored": "a rank ignores SIGIO",
        "taken": "a rank takes SIGIO for itself",
        "eintr": "a timer of 1 kHz interrupts a rank's system calls",
        "files": "a rank may open no more descriptors",
        "memory": "a rank's address space may grow by 8 MB only",
    }
    return [Fault(f"borne-{fault}", what, "goes on", traffic="long", fault=fault) for fault, what in things.items()]


def network():
    found, borne_by = [], []
    for act, what, deadline in (
        ("cut", "the cable of a host is cut", 15),
        ("silence", "no packet gets through to a host; its carrier stays", 15),
        ("address_gone", "a host loses its address", 15),
        # one side hears the other's repetitions until that has given up
        ("drop", "a firewall drops what a host receives", 20),
        ("reset", "connections are reset from outside (a firewall's RST)", 10),
        ("black_hole", "packets of more than 600 bytes vanish", 25),
    ):
        found.append(
            Fault(f"network-{act}", what, "named", deadline, "long", act=act, settings=IMPATIENT)
        )
    for act, what in (
        ("cut", "the cable of a host is cut before the first message"),
        ("drop_new", "a firewall drops new connections"),
        ("reject_new", "a firewall rejects new connections (ICMP)"),
        ("reset_new", "a firewall resets new connections"),
    ):
        # of eight ranks MPI_Init connects some pairs only
        found.append(
            Fault(f"first-{act}", what, "named", 20, "none", act=act, ranks=8, whom="any", settings=IMPATIENT)
        )
    for fault, what in (("kill_first", "before its first message"), ("kill", "in its first exchange of messages")):
        found.append(
            Fault(f"first-{fault}", f"a rank is killed {what}", "named", 20, "none", fault, ranks=8, settings={**IMPATIENT, "MPIR_CVAR_NOLOCAL": "1"})
        )
    for act, what, hold in (
        ("cut_3s", "the cable of a host is cut for 3 s", 5),
        ("drop_5s", "a firewall drops all for 5 s", 7),
        ("loss", "5 % of all packets are lost", 4),
        ("slow", "a host's network is slowed down to 10 Mb/s", 4),
        ("small_mtu", "a host's MTU becomes 576", 3),
    ):
        borne_by.append(Fault(f"network-{act}", what, "goes on", 40, "eager", act=act, hold=hold))
    return found + borne_by


def strangers():
    kinds = {
        "garbage": "writes garbage",
        "scan": "connects and leaves (a port scan)",
        "slow": "writes a byte now and then",
        "crowd": "opens very many connections",
        "forged": "says a forged hello",
        "replay": "says again what a rank has said",
        "outdated": "speaks another version",
        "astray": "asks for another rank",
    }
    return [
        Fault(f"stranger-{kind}", f"somebody {what}, at the port of a rank", "goes on", 20, act=f"stranger_{kind}", hold=0, ours=True)
        for kind, what in kinds.items()
    ] + [
        Fault(f"replay-{kind}", f"somebody says the ranks' true handshakes again; LITE_ENCRYPT={kind}", "goes on", 20, prepare="record", act="replay",
              hold=0, ours=True, settings={"LITE_ENCRYPT": kind}, says="bad proof of the job's secret")
        for kind in ("off", "auth")
    ]


def injected():
    """What no rank has sent, in the streams of proved ones."""
    tampered = r"its data was changed on the way, or does not come from it \(LITE_ENCRYPT\)"
    # what is no frame is said in a line of its own, too, unless the program ends first
    no_frame = "lost rank 2 on host h2( .*)?: Protocol error"
    streams = [
        ("off", "junk", "short", "junk", no_frame),
        ("auth", "junk", "short", "junk", tampered),
        ("on", "junk", "short", "junk", tampered),
        ("auth", "junk-long", "long", "junk in the middle of long messages", tampered),
        ("auth", "false_record", "short", "a piece with a false tag", tampered),
    ]
    rows = [Fault(f"injected-{name}-{encrypt}", f"a rank writes {what} into its own connections; LITE_ENCRYPT={encrypt}", "named", 10, traffic,
                  name.partition("-")[0], ours=True, settings={"LITE_ENCRYPT": encrypt}, says=says)
            for encrypt, name, traffic, what, says in streams]
    ways = {"changed": "is changed", "repeated": "comes twice", "left_out": "is left out"}
    rows += [Fault(f"{fault}-{encrypt}", f"a piece of a stream {what} on its way; LITE_ENCRYPT={encrypt}", "named", 10, "short", fault, ours=True,
                   settings={"LITE_ENCRYPT": encrypt}, says=tampered)
             for fault, what in ways.items() for encrypt in ("auth", "on")]
    lies = {
        "kind": ("a frame of a kind that there is not", no_frame),
        "version": ("a frame of another version", no_frame),
        "length": ("a control packet that is longer than allowed", no_frame),
        "piece": ("a piece that ends outside of its whole", no_frame),
        "goodbye": ("a goodbye, which is for other jobs", no_frame),
        "lane": ("that a million frames have come on a lane", no_frame),
        "packet": ("a packet of a type that there is not", "a control packet that makes no sense"),
        "message": ("a message that is shorter than it says", "a control packet that makes no sense"),
        "ack": ("an acknowledgement of what was never sent", "an answer to a request that it was never sent"),
        "put_ack": ("acknowledgements of puts that were never made", "acks for more puts than were sent"),
        "cts": ("that it waits for data that nobody has offered", "an answer to a request that it was never sent"),
        "credit": ("more credit than it was given", "more credit returned than was given"),
        "access": ("a get from memory that is not exposed", "not exposed"),
        "overdraft": ("more data than it has credit for", "more data than it has credit for"),
        "channel": ("data that it has not announced", no_frame),
        "channel_dies": ("data that it has not announced, and is killed", ""),
    }
    small = {"LITE_CREDITS": "16K"}
    rows += [Fault(f"hostile-{name}", f"a proved rank says {what}", "named", 10, "short", f"false_{name}", ours=True, says=says,
                   settings=small if name == "overdraft" else {})
             for name, (what, says) in lies.items()]
    return rows + [Fault("hostile-transfer", "a proved rank sends data that nobody awaits", "goes on", 10, "short", "false_transfer", ours=True)]


def floods():
    return [
        Fault("flood-short", "2000 unexpected messages, with LITE_UNEXPECTED_MAX=64K", "goes on", 20, "flood", hold=3, ours=True,
              settings={"LITE_UNEXPECTED_MAX": "64K", "LITE_CREDITS": "16K"}),
        Fault("flood-eager", "200 unexpected messages of 16 KB, with LITE_UNEXPECTED_MAX=1M", "goes on", 20, "flood_eager", hold=3, ours=True,
              settings={"LITE_UNEXPECTED_MAX": "1M"}),
    ]


def networks():
    """Each host has two, eth0 and eth1."""
    both = {"LITE_IFACE": "eth0,eth1"}
    resume = {**both, **IMPATIENT, "LITE_RESUME": "on", "LITE_CONNECT_TIMEOUT": "10s"}
    # beside load the second network may be the quicker one from the start; then nothing breaks
    over_another = "broke: .*; the job goes on over another one|another of its addresses does"
    lanes = {**both, **IMPATIENT, "LITE_LANES": "4"}
    return [
        Fault("networks-named", "the first of two networks is cut at a host, LITE_RESUME=off", "named", 15, "long", act="cut", ours=True,
              settings={**both, **IMPATIENT}),
        Fault("networks-cut", "the same, LITE_RESUME=on", "goes on", 40, "long", act="cut", hold=12, ours=True, settings=resume, says=over_another),
        Fault("networks-silence", "no packet gets through the first of two networks, LITE_RESUME=on", "goes on", 40, "long", act="silence", hold=15,
              ours=True, settings=resume, says=over_another),
        Fault("networks-lane", "the second of two networks, which has lanes only, is cut at a host", "goes on", 40, "long", act="cut_second",
              hold=12, ours=True, settings=lanes, says="one of the connections to rank \\d .* is lost"),
        Fault("networks-first", "the first of two networks leads nowhere when the job starts", "goes on", 40, "long", prepare="silence", hold=3, ours=True,
              settings=both, says="rank \\d does not answer at 10\\.77\\.0\\.\\d "),
    ]


def ipv6():
    return [
        Fault("ipv6-only", "LITE_FAMILY=ipv6, and no packet of IPv4 gets through", "goes on", 20, "long", act="drop_ipv4", hold=8, ours=True,
              settings={"LITE_FAMILY": "ipv6", **IMPATIENT}),
        Fault("ipv6-addresses", "no host has an IPv4 address", "goes on", 20, "long", prepare="ipv6_only", hold=1, ours=True,
              settings={"LITE_FAMILY": "any"}),
        Fault("ipv6-killed", "a rank is killed, no host has an IPv4 address", "named", 10, "long", "kill", prepare="ipv6_only", ours=True),
        Fault("ipv6-cut", "the cable of a host is cut, no host has an IPv4 address", "named", 15, "long", prepare="ipv6_only", act="cut", ours=True,
              settings={**IMPATIENT}),
    ]


def foreign():
    """Two jobs on two hosts each, or parents and children, of which one dies."""
    phases = {
        "before": "before the call is accepted",
        "joining": "in part, in place of the call by which they meet",
        "exchange": "in the call by which they meet",
        "connected": "while they talk",
        "disconnect": "in part, in place of MPI_Comm_disconnect",
    }
    lost = r"process of another job (\(|at )10\.77\.0\.\d port \d+\b"
    rows = []
    for victim, other in (("server", "caller"), ("caller", "server")):
        for phase, what in phases.items():
            quiet = phase == "disconnect" or (victim, phase) == ("caller", "before")
            says = "" if quiet else f"{lost}|^foreign: \\d+ checks, 0 failed$" if phase == "exchange" else lost
            rows.append(Fault(f"foreign-{victim}-{phase}", f"of two jobs the {victim} dies {what}", "goes on", 20, other, f"{victim}-{phase}", "foreign",
                              says=says, ranks=HOSTS))
    # rank 0 speaks for its group, and the others have its error
    rows += [Fault(f"foreign-caller-{phase}", f"of two jobs rank 0 of the caller dies in place of {call}", "goes on", 20, "server", f"caller-{phase}", "foreign",
                   says=f"for all: .*{lost}", ranks=HOSTS, ours=True)
             for phase, call in (("merge", "MPI_Intercomm_merge"), ("dup", "MPI_Comm_dup"), ("create", "MPI_Comm_create"))]
    rows += [Fault(f"foreign-caller-{phase}", f"of two jobs rank 0 of the caller dies in place of {call}", "goes on", 20, "server", f"caller-{phase}", "foreign",
                   says=lost, ranks=HOSTS, ours=True)
             for phase, call in (("split", "MPI_Comm_split"), ("collectives", "collectives over both"))]
    rows.append(Fault("foreign-cut", "of two jobs the server's host is cut off while they talk", "goes on", 30, "caller", "network-connected",
                      "foreign", act="cut_others", says=lost, ranks=HOSTS, settings=IMPATIENT))
    # parents and children are one job of mpiexec, and whoever hears of it first ends them all
    either = rf"{lost}|lost rank 1 on host h\d"
    for victim, phase, what in (
        ("child", "connected", "a spawned process is killed while it talks"),
        ("child", "disconnect", "a spawned process is killed in place of MPI_Comm_disconnect"),
        ("parent", "connected", "a process that has spawned others is killed while it talks to them"),
    ):
        rows.append(Fault(f"foreign-{victim}-{phase}", what, "told", 25, "parent", f"{victim}-{phase}", "foreign", says=either, ranks=2))
    # mpiexec ends the job, now and then with the exit code 0
    rows += [Fault(f"foreign-child-{phase}", f"a spawned process is killed {what}", "told", 20, "parent", f"child-{phase}", "foreign", ranks=2,
                   cleanup=True, says=rf"BAD TERMINATION|process manager error|{either}")
             for phase, what in (("before", "before MPI_Init"), ("init", "in MPI_Init"))]
    return rows


def settings():
    def refused(name, what, says, **more):
        return Fault(f"setting-{name}", what, "refused", 20, traffic="none", says=says, ours=True, **more)

    return [
        refused("number", "LITE_SHORT_MAX=abc", r"LITE_SHORT_MAX.*abc", settings={"LITE_SHORT_MAX": "abc"}),
        refused("word", "LITE_CONTROLLER=fast", r"LITE_CONTROLLER.*fast", settings={"LITE_CONTROLLER": "fast"}),
        refused("interface", "LITE_IFACE=nosuch0", r"nosuch0", settings={"LITE_IFACE": "nosuch0"}),
        refused(
            "port",
            "LITE_PORT_RANGE with one port, two ranks on a host",
            r"LITE_PORT_RANGE",
            ranks=HOSTS + 1,
            settings={"LITE_PORT_RANGE": "50321:50321"},
        ),
        refused(
            "secret",
            "LITE_SECRET_FILE names no file, on one rank",
            r"LITE_SECRET_FILE",
            last_settings={"LITE_SECRET_FILE": "/nowhere/secret"},
        ),
        refused("encrypt", "one rank has another LITE_ENCRYPT", r"rank 0 on host h0 has LITE_ENCRYPT=off, and rank 2 on host h2 has LITE_ENCRYPT=auth",
                last_settings={"LITE_ENCRYPT": "auth"}),
        refused("descriptors", "12 descriptors at most", r"descriptors|open files", before=["prlimit", "--nofile=12"]),
        Fault("setting-unequal", "one rank has another LITE_EAGER_MAX", "goes on", 20, "long", ours=True,
              last_settings={"LITE_EAGER_MAX": "4096"}),
        Fault("setting-ipv6", "one rank has IPv6 only", "goes on", 20, "long", ours=True,
              last_settings={"LITE_FAMILY": "ipv6"}, settings={"LITE_FAMILY": "any"}),
        Fault("setting-stack", "a stack of 128 KB", "goes on", 20, "long", ours=True, before=["prlimit", "--stack=131072"]),
    ]


def others():
    return [
        Fault("init-killed", "a rank is killed in MPI_Init", "ends", 20, fault="init", cleanup=True),
        Fault("finalize-killed", "a rank is killed, and the others call MPI_Finalize", "ends", 20, fault="finalize"),
        Fault("aborted", "a rank calls MPI_Abort", "ends", 10, fault="mpi_abort", cleanup=True),
        Fault("stopped", "a rank is stopped for 8 s (SIGSTOP)", "goes on", 15, "long", act="stop_8s", hold=9),
        Fault("ranks-64", "64 ranks on two cores, each with each", "goes on", 60, ranks=64, hold=0),
        Fault("first-32", "32 ranks talk to each other for the first time at once", "goes on", 60, "none", ranks=32),
    ]


def table():
    return (died() + borne() + floods() + network() + networks() + ipv6() + strangers() + injected() + settings() + foreign()
            + others())
