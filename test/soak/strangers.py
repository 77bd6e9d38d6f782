"""Strangers at the listeners of the job's ranks, now and then: test/lab/stranger.py, from another
host of the lab."""
import os
import random
import re
import subprocess
import sys
import threading

from chlite.common import TOP, output_of

STRANGER = os.path.join(TOP, "test", "lab", "stranger.py")
PATIENCE_S = 20  # for one that wants to be hung up on, with ranks that compute on a busy machine
ANYWHERE = ("garbage", "slow", "scan", "outdated")
# stranger.py takes the listener of host I for that of rank I, and knows no LITE_ENCRYPT: where it is
# set, nobody is asked for a proof who has not said so
TO_RANK_OF_HOST = ("astray",)
WITH_PROOF = ("forged", "replay")


def kinds_for(rank, hosts, ranks, proofs):
    """What a stranger may do at that rank's listener."""
    if rank >= min(2, hosts) or ranks < 3:  # it claims to be rank 2
        return ANYWHERE
    return ANYWHERE + TO_RANK_OF_HOST + (WITH_PROOF if proofs else ())


def listener(host, pid):
    """(address, port) that a process of the host listens at; None when it has none (any more)."""
    address = os.environ[f"LAB_ADDR_{host}"]
    for line in output_of(["ip", "netns", "exec", os.environ[f"LAB_NS_{host}"], "ss", "-ltnpH"]).splitlines():
        fields = line.split()
        if len(fields) > 3 and fields[3].startswith(address + ":") and re.search(rf"\bpid={pid}\b", line):
            return address, fields[3].rsplit(":", 1)[1]
    return None


class Strangers:
    """A thread that sends one after the other, until end(). `pid_of(rank)` is None while it is not known."""

    def __init__(self, orders, every_s, pid_of):
        self.hosts, self.ranks, self.every_s, self.pid_of = orders["hosts"], orders["ranks"], every_s, pid_of
        self.proofs = orders["settings"].get("LITE_ENCRYPT", "off") == "off"
        self.random, self.found, self.over = random.Random(orders["seed"]), [], threading.Event()
        self.child = None
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self):
        while not self.over.wait(self.every_s):
            rank = self.random.randrange(self.ranks)
            self.one(rank, self.random.choice(kinds_for(rank, self.hosts, self.ranks, self.proofs)))

    def one(self, rank, kind):
        host, pid = rank % self.hosts, self.pid_of(rank)
        where = listener(host, pid) if pid else None
        if not where:
            return
        self.child = subprocess.Popen([os.environ["LAB_ENTER"], str((host + 1) % self.hosts), sys.executable, STRANGER, kind, *where, str(PATIENCE_S), "2"],
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = self.child.communicate()[0]
        # a rank that has ended has no listener
        if not self.over.is_set():
            wrong = [line for line in said.splitlines() if "from port" not in line]
            self.found.append((f"{kind} at rank {rank}", "" if self.child.returncode == 0 else " ".join(wrong) or f"exit code {self.child.returncode}"))

    def end(self):
        self.over.set()
        child = self.child
        if child and child.poll() is None:
            child.terminate()
        self.thread.join(10)
        return self.found
