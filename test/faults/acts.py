"""What is done to the lab: to the network of a host, to a process, to a port. Each act is a function
of a Scene; `mend` takes all of it back."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from chlite.common import TOP, output_of
from table import NETWORKS

STRANGER = os.path.join(TOP, "test", "lab", "stranger.py")
RECORDED = os.path.join(TOP, "test", "faults", "recorded.py")


class Failed(Exception):
    """The act could not be done: the row says nothing of the device."""


class Scene:
    """The hosts of the net-lab that this process was started in, and the job's last rank."""

    def __init__(self, hosts, ranks, file):
        self.hosts, self.ranks, self.file = hosts, ranks, file
        self.host = (ranks - 1) % hosts  # of the last rank
        self.helpers = []  # processes that `mend` ends

    def inside(self, host, *words):
        done = subprocess.run(["ip", "netns", "exec", os.environ[f"LAB_NS_{host}"], *words],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"{' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def port(self, host, *words, network=0):
        """The host's port of the network's switch."""
        port = f"q{network}-{host}" if network else os.environ[f"LAB_PORT_{host}"]
        done = subprocess.run(["ip", "-n", os.environ["LAB_SWITCH"], "link", "set", port, *words],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"ip link set {' '.join(words)}: {done.stderr.strip()}")

    def filter(self, *words):
        """A rule for what the last rank's host receives by eth0, of both families."""
        for program in ("iptables", "ip6tables"):
            self.inside(self.host, program, "-A", "INPUT", "-i", "eth0", *words)

    def unfilter(self, host):
        for program in ("iptables", "ip6tables"):
            self.inside(host, program, "-F", "INPUT")

    def pid(self, rank):
        with open(f"{self.file}.pid.{rank}", encoding="utf-8") as text:
            return int(text.read())

    def anybody_left(self, program):
        """Whether a rank is there, on any host."""
        for host in range(self.hosts):
            for pid in output_of(["ip", "netns", "pids", os.environ[f"LAB_NS_{host}"]]).split():
                try:
                    if os.readlink(f"/proc/{pid}/exe") == program:
                        return True
                except OSError:
                    pass
        return False

    def listener(self, host):
        """The port that the rank on the host listens at (as test/lab/strangers.sh finds it)."""
        address = os.environ[f"LAB_ADDR_{host}"]
        for line in self.inside(host, "ss", "-ltnH").splitlines():
            fields = line.split()
            if len(fields) > 3 and fields[3].startswith(address + ":"):
                return address, fields[3].rsplit(":", 1)[1]
        raise Failed(f"no listener on {address}")


def cut(scene):
    scene.port(scene.host, "down")


def cut_second(scene):
    scene.port(scene.host, "down", network=1)


def silence_second(scene):
    scene.port(scene.host, "nomaster", network=1)


def cut_others(scene):
    """Both hosts of the second of two jobs."""
    for host in (2, 3):
        scene.port(host, "down")


def cut_3s(scene):
    scene.port(scene.host, "down")
    time.sleep(3)
    scene.port(scene.host, "up")


def silence(scene):
    scene.port(scene.host, "nomaster")


def address_gone(scene):
    scene.inside(scene.host, "ip", "addr", "flush", "dev", "eth0")


def drop(scene):
    scene.filter("-p", "tcp", "-j", "DROP")


def drop_5s(scene):
    drop(scene)
    time.sleep(5)
    scene.unfilter(scene.host)


def reset(scene):
    scene.filter("-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset")


def drop_new(scene):
    for host in range(scene.hosts):
        for program in ("iptables", "ip6tables"):
            scene.inside(host, program, "-A", "INPUT", "-i", "eth0", "-p", "tcp", "--syn", "-j", "DROP")


def reject_new(scene):
    for host in range(scene.hosts):
        for program in ("iptables", "ip6tables"):
            scene.inside(host, program, "-A", "INPUT", "-i", "eth0", "-p", "tcp", "--syn", "-j", "REJECT")


def reset_new(scene):
    for host in range(scene.hosts):
        for program in ("iptables", "ip6tables"):
            scene.inside(host, program, "-A", "INPUT", "-i", "eth0", "-p", "tcp", "--syn", "-j", "REJECT", "--reject-with", "tcp-reset")


def black_hole(scene):
    scene.filter("-m", "length", "--length", "600:65535", "-j", "DROP")


def loss(scene):
    scene.filter("-p", "tcp", "-m", "statistic", "--mode", "random", "--probability", "0.05", "-j", "DROP")


def slow(scene):
    scene.inside(scene.host, "tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", "10mbit", "burst", "32kb", "latency", "50ms")


def small_mtu(scene):
    scene.inside(scene.host, "ip", "link", "set", "eth0", "mtu", "576")


def stop_8s(scene):
    pid = scene.pid(scene.ranks - 1)
    os.kill(pid, signal.SIGSTOP)
    time.sleep(8)
    os.kill(pid, signal.SIGCONT)


def ipv6_only(scene):
    """No host has an IPv4 address that leads to the others."""
    for host in range(scene.hosts):
        scene.inside(host, "ip", "-4", "addr", "flush", "dev", "eth0")


def drop_ipv4(scene):
    for host in range(scene.hosts):
        scene.inside(host, "iptables", "-A", "INPUT", "-i", "eth0", "-j", "DROP")


def record(scene):
    """What the ranks say to each other in their handshakes, as the switch sees it."""
    helper = subprocess.Popen(["ip", "netns", "exec", os.environ["LAB_SWITCH"], sys.executable, RECORDED, "record", f"{scene.file}.recorded"],
                              stdin=subprocess.DEVNULL)
    scene.helpers.append(helper)
    end = time.monotonic() + 10
    while not os.path.exists(f"{scene.file}.recorded"):
        if helper.poll() is not None or time.monotonic() > end:
            raise Failed("nothing is recorded")
        time.sleep(0.02)


def replay(scene):
    """Said again from a host where no rank runs, to the ranks to whom it was said."""
    done = subprocess.run([os.environ["LAB_ENTER"], str(scene.hosts - 1), sys.executable, RECORDED, "replay", f"{scene.file}.recorded"],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{done.stdout}{done.stderr}")


def stranger(scene, kind):
    """From a host where no rank runs, to the first rank: until it is content."""
    address, port = scene.listener(0)
    done = subprocess.run([os.environ["LAB_ENTER"], str(scene.hosts - 1), sys.executable, STRANGER, kind, address, port, "4"],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"the stranger was not content: {done.stdout}{done.stderr}")


FIREWALL = (drop, drop_5s, drop_ipv4, reset, drop_new, reject_new, reset_new, black_hole, loss)


def needs_firewall(fault):
    return act_of(fault.act) in FIREWALL


def act_of(name):
    """The act of that name; None for none."""
    if not name:
        return None
    if name.startswith("stranger_"):
        return lambda scene: stranger(scene, name.removeprefix("stranger_"))
    return globals()[name]


def state_of(host):
    """What `mend` has to bring back."""
    namespace = os.environ[f"LAB_NS_{host}"]
    addresses = re.findall(r"inet6? (\S+) .*scope global", output_of(["ip", "-n", namespace, "addr", "show", "dev", "eth0"]))
    mtu = re.search(r"mtu (\d+)", output_of(["ip", "-n", namespace, "link", "show", "dev", "eth0"]))
    return addresses, mtu.group(1)


def mend(scene, states):
    for helper in scene.helpers:
        helper.kill()
        helper.wait()
    for host, (addresses, mtu) in enumerate(states):
        if shutil.which("iptables"):
            scene.unfilter(host)
        subprocess.run(["ip", "netns", "exec", os.environ[f"LAB_NS_{host}"], "tc", "qdisc", "del", "dev", "eth0", "root"], capture_output=True, check=False)
        if state_of(host)[1] != mtu:
            scene.inside(host, "ip", "link", "set", "eth0", "mtu", mtu)
        for network in range(NETWORKS):
            scene.port(host, "master", f"br{network}", network=network)
            scene.port(host, "up", network=network)
        for address in addresses:
            if address not in state_of(host)[0]:
                more = ["nodad"] if ":" in address else []
                scene.inside(host, "ip", "addr", "add", address, "dev", "eth0", *more)
