"""Where ranks run: test hosts (scripts/net-lab) or a cluster; how a program is started there, what crossed the link."""
import os
import re
import shlex
import signal
import subprocess

from .common import die, output_of


class Place:
    """Hosts, one after the other; a rank per host in turn."""
    def __init__(self, hosts, interface):
        self.hosts, self.interface = hosts, interface

    def mpi_command(self, variant, ranks, words, settings):
        host_of = [self.hosts[rank % len(self.hosts)] for rank in range(ranks)]
        count = ["-n", str(ranks)]
        if variant["family"] == "openmpi":
            per_host = [f"{host}:{host_of.count(host)}" for host in self.hosts if host in host_of]
            options = ["--host", ",".join(per_host), "--map-by", "node", "--bind-to", "none"]
            options += ["--allow-run-as-root"] if os.geteuid() == 0 else []
            pairs = [("pml", "ob1"), ("btl", "tcp,self"), ("osc", "^ucx"), ("plm_rsh_no_tree_spawn", "1")]
            if self.launcher():
                pairs.append(("plm_rsh_agent", self.launcher()))
            if self.interface:
                pairs += [("oob_tcp_if_include", self.interface), ("btl_tcp_if_include", self.interface)]
            for name, value in pairs:
                options += ["--mca", name, value]
            for name in settings:
                options += ["-x", name]
            return self.start(0) + [variant["mpiexec"]] + options + count + words
        if variant["device"] == "ch_p4":
            return self.start(0) + self.procgroup(host_of, words, settings)
        if variant["device"] == "ch_lite":
            return self.start(0) + self.lite_mprun(variant, host_of, settings) + words
        options = ["-launcher", "ssh"] + (["-launcher-exec", self.launcher()] if self.launcher() else [])
        return self.start(0) + [variant["mpiexec"]] + options + ["-hosts", ",".join(self.hosts[:ranks]), "-ppn", "1"] + count + words

    def lite_mprun(self, variant, host_of, settings):
        """ch_lite of MPICH 1: a machine file, a remote shell of ours."""
        path = os.path.join(self.directory, "machines")
        with open(path, "w", encoding="utf-8") as text:
            text.write("".join(f"{host}\n" for host in host_of))
        remote = self.script("lite-rsh", f'exec {shlex.join(self.remote_shell())} "$@"\n')
        pairs = [word for name, value in settings.items() for word in ("-x", f"{name}={value}")]
        return ["env", f"LITE_RSH={remote}", variant["mpiexec"], "-n", str(len(host_of)), "-machinefile", path] + pairs + ["--"]

    def procgroup(self, host_of, words, settings):
        """ch_p4: the first rank is started here and reads who the others are; a rank's program is named with its path, its arguments come from the first."""
        path = os.path.join(self.directory, "procgroup")
        with open(path, "w", encoding="utf-8") as text:
            for rank, host in enumerate(host_of):
                text.write(f"{host} {0 if rank == 0 else 1} {words[0]}\n")
        # p4 calls it as rsh: HOST -l USER -n PROGRAM ARGUMENTS…; what is set for the first rank (P4_SOCKBUFSIZE) is set for the others, too
        pairs = shlex.join(["env"] + [shlex.quote(f"{name}={value}") for name, value in settings.items()])
        remote = self.script("rsh", 'host=$1\nshift\nwhile :; do case $1 in -l) shift 2 ;; -n) shift ;; *) break ;; esac; done\n'
                             f'exec {shlex.join(self.remote_shell())} "$host" {pairs} "$@"\n')
        # a build that found no remote shell does not look at the variable: it takes the rsh that is first
        return ["env", f"P4_RSHCOMMAND={remote}", f"PATH={self.directory}:{os.environ.get('PATH', os.defpath)}"] + words + ["-p4pg", path]

    def script(self, name, lines):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as text:
            text.write("#!/bin/sh\n" + lines)
        os.chmod(path, 0o755)
        return path


class LabPlace(Place):
    """The hosts of the net-lab that this process was started in."""
    def __init__(self, hosts):
        super().__init__([f"h{i}" for i in range(hosts)], "eth0")
        self.directory = os.environ["LAB_DIR"]

    def launcher(self):
        return os.path.join(self.directory, "launch")

    def remote_shell(self):
        return [self.launcher()]

    def start(self, index):
        return [os.environ["LAB_ENTER"], str(index)]

    def on(self, index, words, _settings):
        return self.start(index) + words

    def address(self, index):
        return os.environ[f"LAB_ADDR_{index}"]

    def addresses(self, index, networks):
        """Of a host, on each of the networks."""
        return [self.address(index).replace(".0.", f".{network}.", 1) if network else self.address(index) for network in range(networks)]

    def bytes_sent(self):
        """Of each host, by its interfaces eth0, eth1 …, one for each network."""
        tables = [output_of(["ip", "netns", "exec", os.environ[f"LAB_NS_{i}"], "cat", "/proc/net/dev"]) for i in range(len(self.hosts))]
        return [sum(sent_bytes(table, name) for name in re.findall(r"^ *(eth\d+):", table, re.M)) for table in tables]

    def end_leftovers(self):
        # these namespaces are ours, nothing else runs in them
        for i in range(len(self.hosts)):
            for pid in output_of(["ip", "netns", "pids", os.environ[f"LAB_NS_{i}"]]).split():
                try:
                    if int(pid) != os.getpid():
                        os.kill(int(pid), signal.SIGKILL)
                except (ProcessLookupError, ValueError):
                    pass


class ClusterPlace(Place):
    """Real hosts, reached by ssh (or what is called like it). mpiexec is started here."""
    def __init__(self, hosts, ssh, interface, directory):
        super().__init__(hosts, interface)
        self.ssh, self.directory = shlex.split(ssh), directory

    def launcher(self):
        if self.ssh == ["ssh"]:
            return ""
        # mpiexec takes a program's name, no options
        return self.ssh[0] if len(self.ssh) == 1 else self.script("launch", f'exec {shlex.join(self.ssh)} "$@"\n')

    def remote_shell(self):
        return self.ssh

    def start(self, _index):
        return []

    def on(self, index, words, settings):
        pairs = [f"{name}={value}" for name, value in settings.items()]
        return self.ssh + [self.hosts[index], shlex.join((["env"] + pairs if pairs else []) + words)]

    def address(self, index):
        return self.hosts[index]

    def addresses(self, index, _networks):
        return [self.address(index)]

    def bytes_sent(self):
        return [sent_bytes(output_of(self.ssh + [host, "cat /proc/net/dev"]), self.interface) for host in self.hosts]

    def end_leftovers(self):
        pass    # the programs end themselves (--limit)

    def copy(self, programs):
        """The programs under the same name on every host, unless they are there (a shared file system)."""
        for host in self.hosts:
            for program in programs:
                if subprocess.run(self.ssh + [host, f"test -x {shlex.quote(program)}"], stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0:
                    continue
                quoted = shlex.quote(program)
                with open(program, "rb") as content:
                    done = subprocess.run(self.ssh + [host, f"mkdir -p {shlex.quote(os.path.dirname(program))} && cat >{quoted} && chmod 755 {quoted}"],
                                          stdin=content, capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    die(f"cannot copy to host {host}: {done.stderr.strip() or 'ssh failed'}")

    def remove(self):
        for host in self.hosts:
            output_of(self.ssh + [host, f"rm -rf {shlex.quote(self.directory)}"])


def sent_bytes(text, interface):
    """From /proc/net/dev: of one interface, or of all but the loopback."""
    total = 0
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        fields = rest.split()
        if colon and len(fields) >= 9 and (name.strip() == interface if interface else name.strip() != "lo"):
            total += int(fields[8])
    return total
