"""The table of faults: what goes wrong, what has to come of it, and how soon.

`expected` is one of
  goes on   the job ends well, all its data right
  named     an MPI error that names the rank that is lost (`whom`), and its host; no rank hangs
  ends      the job ends, with a failure
  refused   MPI_Init fails, and what is said matches `says`
`deadline` counts seconds from the fault to the end of the job; where the job goes on, from the time
when the program is told to end."""
from dataclasses import dataclass, field

HOSTS = 4
# What a user would set on a network that is to be found dead soon.
IMPATIENT = {"LITE_CONNECT_TIMEOUT": "3s", "LITE_KEEPALIVE": "1:1"}


@dataclass
class Fault:
    name: str
    what: str
    expected: str
    deadline: float = 10
    traffic: str = "short"
    fault: str = "none"  # of victim.c, in the last rank
    act: str = ""  # of acts.py, on the last rank's host
    hold: float = 1.0  # seconds between the fault and the order to end, where the job goes on
    ranks: int = 3
    settings: dict = field(default_factory=dict)
    last_settings: dict = field(default_factory=dict)  # of the last rank only
    before: list = field(default_factory=list)  # words before the program
    whom: str = "last"  # the rank that is named: the last one, or any
    says: str = ""
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
    }
    ways = {
        "segv": "by a segmentation fault",
        "abort": "by abort()",
        "terminate": "by SIGTERM",
        "exit": "by exit(0), without MPI_Finalize",
        "exit3": "by exit(3)",
        "quick": "by _exit(0)",
        "close": "it has closed all descriptors",
    }
    rows = [(f"killed-{kind}", f"is killed; messages: {text}", kind, "kill") for kind, text in messages.items()]
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
        ("drop", "a firewall drops what a host receives", 15),
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
        Fault(f"stranger-{kind}", f"somebody {what}, at the port of a rank", "goes on", 20, act=f"stranger_{kind}", hold=0)
        for kind, what in kinds.items()
    ]


def settings():
    def refused(name, what, says, **more):
        return Fault(f"setting-{name}", what, "refused", 20, traffic="none", says=says, **more)

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
        refused("descriptors", "12 descriptors at most", r"descriptors|open files", before=["prlimit", "--nofile=12"]),
        Fault("setting-unequal", "one rank has another LITE_EAGER_MAX", "goes on", 20, "long",
              last_settings={"LITE_EAGER_MAX": "4096"}),
        Fault("setting-ipv6", "one rank has IPv6 only", "goes on", 20, "long",
              last_settings={"LITE_FAMILY": "ipv6"}, settings={"LITE_FAMILY": "any"}),
        Fault("setting-stack", "a stack of 128 KB", "goes on", 20, "long", before=["prlimit", "--stack=131072"]),
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
    return died() + borne() + network() + strangers() + settings() + others()
