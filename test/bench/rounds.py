"""Runs benchmark programs of several MPI installations and of plain TCP by turns, on test hosts (scripts/net-lab) or on a cluster, and collects the JSON
that they print. Shared by scripts/compare and by overlap and blocking beside this file."""
import json
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
NET_LAB = os.path.join(TOP, "scripts", "net-lab")
BURSTS = {"1gbit": 128 << 10, "none": 0}    # of scripts/net-lab; any other rate: OTHER_BURST
OTHER_BURST = 1280 << 10
PROGRESS_PERIOD_S = 30
# the caller's own settings would be in one run and not in the next
DROPPED_ENVIRONMENT = ("LITE_", "MPIR_", "MPICH_", "UCX_", "FI_", "OMPI_", "PMIX_", "PRTE_", "P4_")
PACKAGES = {"mpich": " (apt-get install mpich libmpich-dev)", "openmpi": " (apt-get install openmpi-bin libopenmpi-dev)"}


def say(text):
    print(text, file=sys.stderr, flush=True)


def die(text):
    say(f"{os.path.basename(sys.argv[0])}: {text}")
    sys.exit(2)


def output_of(command, **more):
    try:
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, stdin=subprocess.DEVNULL, timeout=60, **more)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return result.stdout + result.stderr


# -- sizes
def size_of(text):
    match = re.fullmatch(r"(\d+)([KMG]?)", text.strip().upper())
    if not match or int(match.group(1)) == 0:
        die(f"'{text}' is no size: want for example 64K, 4M or 1000")
    return int(match.group(1)) << {"": 0, "K": 10, "M": 20, "G": 30}[match.group(2)]


def size_text(count):
    for shift, unit in ((20, "M"), (10, "K")):
        if count >= 1 << shift and count % (1 << shift) == 0:
            return f"{count >> shift}{unit}"
    return str(count)


def burst_of(rate):
    return BURSTS.get(rate, OTHER_BURST)


# -- statistics
def middle(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


# -- installations
def parse_installation(spec):
    """NAME=PREFIX[:FLAVOR][,VAR=VALUE…]"""
    name, equal, rest = spec.partition("=")
    if not equal or not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        die(f"{spec}: want NAME=PREFIX[:FLAVOR][,VAR=VALUE…], NAME of letters, digits, _ and -")
    prefix, *pairs = rest.split(",")
    prefix, _, flavor = prefix.partition(":")
    environment = {}
    last = None
    for pair in pairs:
        variable, equal, value = pair.partition("=")
        if equal:
            environment[variable] = value
            last = variable
        elif last:    # a value with commas
            environment[last] += "," + pair
        else:
            die(f"{spec}: '{pair}' is no VAR=VALUE")
    if not prefix:
        die(f"{spec}: no directory")
    return {"name": name, "kind": "mpi", "prefix": os.path.realpath(os.path.expanduser(prefix)), "flavor": flavor, "environment": environment}


def check_names(variants):
    names = [variant["name"] for variant in variants]
    for name in names:
        if names.count(name) > 1:
            die(f"two are called {name}: give each a name of its own")


def wrapper(variant, tool):
    directory, flavor = os.path.join(variant["prefix"], "bin"), variant["flavor"]
    endings = [f".{flavor}"] if flavor else ["", ".mpich", ".openmpi"]
    for ending in endings:
        path = os.path.join(directory, tool + ending)
        if os.access(path, os.X_OK):
            return path
    die(f"no {tool}{endings[0]} in {directory}: is {variant['name']} installed there?{PACKAGES.get(flavor, '')}")
    return ""


def identify(variant):
    """Finds out what the installation is: its compiler, how it starts programs (family), its device."""
    variant["compiler"] = wrapper(variant, "mpicc")
    bin_directory = os.path.join(variant["prefix"], "bin")
    variant["device"], variant["version"] = "", ""
    mpichversion = output_of([os.path.join(bin_directory, "mpichversion")]) if os.access(os.path.join(bin_directory, "mpichversion"), os.X_OK) else ""
    # MPICH 1's mpirun is a family of shell scripts
    if any(os.path.exists(os.path.join(bin_directory, name)) for name in ("mpirun.args", "mpirun.ch_p4", "mpirun.ch_lite")):
        identify_mpich1(variant, bin_directory, mpichversion)
        return
    variant["family"] = "openmpi" if "Open MPI" in output_of([variant["compiler"], "--showme:version"]) else "mpich"
    variant["mpiexec"] = wrapper(variant, "mpiexec")
    if variant["family"] == "mpich":
        found = re.search(r"^MPICH Device:\s*(\S+)", mpichversion, re.M)
        variant["device"] = found.group(1) if found else ""


def identify_mpich1(variant, bin_directory, mpichversion):
    """Of its devices, those that can be started on hosts of one's own: ch_p4 by a process-group file, ch_lite by lite-mprun and a machine file."""
    starters = {"ch_p4": "mpirun.ch_p4", "ch_lite": "lite-mprun"}
    found = re.search(r"^MPICH Device:\s*(\S+)", mpichversion, re.M)
    there = [device for device, starter in starters.items() if os.path.exists(os.path.join(bin_directory, starter))]
    device = found.group(1) if found else (there or [""])[-1]
    if device not in there:
        die(f"{variant['name']}: the MPICH 1 in {variant['prefix']} is {device or 'of a device that is not known'}: want ch_p4 with its mpirun.ch_p4, or ch_lite with "
            "its lite-mprun; no other device can be started on chosen hosts here")
    variant.update(family="mpich1", device=device, mpiexec=os.path.join(bin_directory, starters[device]))
    found = re.search(r"^MPICH Version:\s*(\S+)", mpichversion, re.M)
    form = re.search(r"ch_lite:-+form=(\w+)", mpichversion)
    variant["version"] = f"MPICH {found.group(1) if found else '1'}, {device}" + (f" {form.group(1) if form else 'nonblocking'}" if device == "ch_lite" else "")


def compile_program(compiler, sources, program, optional=False, flags=("-std=gnu11",)):
    """Sources beside this file, or by their path. False: `optional`, and it does not compile (what it needs is newer than this MPI)."""
    command = [compiler, "-O2", *flags] + [os.path.join(HERE, source) for source in sources] + ["-o", program, "-lm"]
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if result.returncode == 0:
        return True
    if optional:
        return False
    say(result.stderr[-2000:])
    die(f"{shlex.join(command)} failed")
    return False


class Builder:
    """Compiles each program once per compiler."""
    def __init__(self, directory):
        self.directory, self.made = directory, {}

    def build(self, variant, source, optional=False):
        """The program, or None when it is optional and does not compile."""
        return self.build_of(variant, [source], optional)

    def build_of(self, variant, sources, optional=False, **more):
        compiler = variant["compiler"] if variant["kind"] == "mpi" else shutil.which("gcc") or shutil.which("cc") or die("no C compiler: apt-get install gcc")
        key = (compiler, *sources)
        if key not in self.made:
            name = os.path.splitext(os.path.basename(sources[-1]))[0]
            program = os.path.join(self.directory, f"{name}-{len(self.made)}")
            say(f"{os.path.basename(sys.argv[0])}: compiling {name} with {compiler}")
            self.made[key] = program if compile_program(compiler, sources, program, optional, **more) else None
        return self.made[key]


def settings_of(variant, interface):
    """What is set for this installation: ours, so that it uses the network that is measured, then the user's."""
    settings = {}
    if variant["kind"] == "mpi":
        library = os.path.join(variant["prefix"], "lib")
        # an installation that was copied has its old place in the programs
        if not variant["flavor"] and variant["prefix"] != "/usr" and variant.get("family") != "mpich1" and os.path.isdir(library):
            settings["LD_LIBRARY_PATH"] = library + (":" + os.environ["LD_LIBRARY_PATH"] if os.environ.get("LD_LIBRARY_PATH") else "")
        if "ucx" in variant["device"]:
            settings.update(UCX_TLS="tcp,self", UCX_LOG_LEVEL="error")
            if interface:
                settings["UCX_NET_DEVICES"] = interface
        elif "ofi" in variant["device"] and interface:
            settings["FI_TCP_IFACE"] = interface
        elif variant["device"] == "ch_lite" and interface:
            settings["LITE_IFACE"] = interface
        settings.update(variant["environment"])
    return settings


def environment_of(settings):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(DROPPED_ENVIRONMENT)}
    environment.update(settings)
    return environment


def niced(nice, words):
    if nice == 0:
        return words
    # where the kernel groups processes by session, nice counts inside of a session only, and the session has a value of its own
    return ["sh", "-c", f'echo {nice} 2>/dev/null >/proc/self/autogroup; exec nice -n {nice} "$@"', "sh"] + words


# -- where ranks run
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

    def bytes_sent(self):
        """Of each host, by its interface."""
        return [sent_bytes(output_of(["ip", "netns", "exec", os.environ[f"LAB_NS_{i}"], "cat", "/proc/net/dev"]), self.interface) for i in range(len(self.hosts))]

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
        return self.ssh[0] if self.ssh != ["ssh"] else ""

    def remote_shell(self):
        return self.ssh

    def start(self, _index):
        return []

    def on(self, index, words, settings):
        pairs = [f"{name}={value}" for name, value in settings.items()]
        return self.ssh + [self.hosts[index], shlex.join((["env"] + pairs if pairs else []) + words)]

    def address(self, index):
        return self.hosts[index]

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


# -- running
class Started:
    """Programs that belong together: their output, and an end in any case."""
    def __init__(self, place, commands, environment, timeout_s, has_result=None, grace_s=10):
        """has_result: a function of the output so far. Some MPIs do not return from MPI_Finalize now and then: their numbers are good."""
        self.place, self.children = place, []
        self.printed, self.errors = tempfile.TemporaryFile(mode="w+", errors="replace"), tempfile.TemporaryFile(mode="w+", errors="replace")
        self.hung = False
        try:
            for command in commands:
                self.children.append(subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=self.printed, stderr=self.errors,
                                                      start_new_session=True))
            deadline = time.monotonic() + timeout_s
            result_at = None
            while any(child.poll() is None for child in self.children):
                time.sleep(0.02)
                now = time.monotonic()
                if has_result and result_at is None and has_result(os.pread(self.printed.fileno(), 1 << 16, 0)):
                    result_at = now
                failed = any(child.poll() not in (None, 0) for child in self.children)
                # when one rank of plain TCP has failed, the others wait for it in vain
                if failed:
                    deadline = min(deadline, now + 3)
                if now > deadline or (result_at is not None and now > result_at + grace_s):
                    self.hung = not failed
                    break
        finally:
            self.end()
        self.code = next((child.returncode for child in self.children if child.returncode != 0), 0)
        self.output, self.error_text = self.text(self.printed), self.text(self.errors)

    @staticmethod
    def text(file):
        file.seek(0)
        content = file.read()
        file.close()
        return content

    def end(self):
        alive = [child for child in self.children if child.poll() is None]
        for number in (signal.SIGTERM, signal.SIGKILL):
            for child in self.children:
                if child.poll() is None:
                    try:
                        os.killpg(child.pid, number)
                        child.wait(timeout=3)
                    except (ProcessLookupError, subprocess.TimeoutExpired):
                        pass
        if alive:
            self.place.end_leftovers()

    def json_lines(self):
        found = []
        for line in self.output.splitlines():
            if line.startswith("{"):
                try:
                    found.append(json.loads(line))
                except ValueError:
                    self.error_text += f"\nbroken output: {line[:200]}"
        return found


class Progress:
    """A live line for people, a plain line every PROGRESS_PERIOD_S for logs."""
    def __init__(self, total):
        self.total, self.done, self.begin, self.shown = total, 0, time.monotonic(), None
        self.live = sys.stderr.isatty()

    def show(self, text):
        now = time.monotonic()
        if not self.live and self.shown is not None and now - self.shown < PROGRESS_PERIOD_S:
            return
        self.shown = now
        elapsed = now - self.begin
        rest = f", about {clock_text(elapsed / self.done * (self.total - self.done))} left" if self.done >= 3 else ""
        line = f"      {self.done}/{self.total}, {clock_text(elapsed)}{rest}: {text}"
        print(("\r\033[K" if self.live else "") + line, end="" if self.live else "\n", file=sys.stderr, flush=True)

    def end(self):
        if self.live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def clock_text(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def rotated(items, by):
    """Every round begins with another one, so that nobody is always first."""
    if not items:
        return []
    first = by % len(items)
    return items[first:] + items[:first]


def in_lab(script, orders, hosts, rate, pin="auto", mtu=None, direct=False):
    """Runs `script --inside ORDERS` in a net-lab of its own and returns what that left (see answer_orders)."""
    with tempfile.TemporaryDirectory(prefix="lite-orders-") as directory:
        path, results = os.path.join(directory, "orders.json"), os.path.join(directory, "results.json")
        with open(path, "w", encoding="utf-8") as text:
            json.dump({**orders, "results": results}, text)
        command = [NET_LAB, "--hosts", str(hosts), "--rate", rate] + {"auto": [], "yes": ["--pin"], "no": ["--no-pin"]}[pin]
        command += (["--mtu", str(mtu)] if mtu else []) + (["--direct"] if direct else []) + ["exec", sys.executable, os.path.realpath(script), "--inside", path]
        lab = subprocess.Popen(command)
        try:
            code = lab.wait()
        except BaseException:
            lab.terminate()
            lab.wait()
            raise
        if code != 0 or not os.path.exists(results):
            die(f"the lab of {hosts} hosts for rate {rate} failed with exit code {code}")
        with open(results, encoding="utf-8") as text:
            return json.load(text)


def end_by_exit():
    """A process that is told to end (SIGTERM) takes its test hosts and scratch directories with it; a lab ends its command so."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def answer_orders(path, work):
    """The part that runs in a lab: orders in a file, what work(orders) returns to another."""
    with open(path, encoding="utf-8") as text:
        orders = json.load(text)
    answer = work(orders)
    with open(orders["results"], "w", encoding="utf-8") as text:
        json.dump(answer, text)


# -- drawing
def drawing_library(result, script, arguments):
    """pyplot; or None when Debian's interpreter, whose matplotlib it is, has done the work instead: `script --from RESULT ARGUMENTS`."""
    try:
        import matplotlib
    except ImportError:
        debian = "/usr/bin/python3"
        if os.path.realpath(sys.executable) == os.path.realpath(debian) or "import matplotlib" in output_of([debian, "-c", "import matplotlib"]):
            raise LookupError("drawing needs matplotlib: apt-get install python3-matplotlib") from None
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as text:
            json.dump(result, text)
            text.flush()
            if subprocess.run([debian, os.path.realpath(script), "--from", text.name] + arguments, check=False).returncode != 0:
                raise LookupError("drawing failed") from None
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot
    return pyplot
