"""MPI installations: what a user names, what is found out about them, what is set for their programs."""
import os
import re

from .common import die, output_of

# the caller's own settings would be in one run and not in the next
DROPPED_ENVIRONMENT = ("LITE_", "MPIR_", "MPICH_", "UCX_", "FI_", "OMPI_", "PMIX_", "PRTE_", "P4_")
PACKAGES = {"mpich": " (apt-get install mpich libmpich-dev)", "openmpi": " (apt-get install openmpi-bin libopenmpi-dev)"}


def parse_installation(spec):
    """NAME=PREFIX[:FLAVOR][,VAR=VALUE…]"""
    try:
        return read_installation(spec)
    except ValueError as error:
        die(str(error))
        return {}


def read_installation(spec):
    """The same; ValueError for what is none."""
    name, equal, rest = spec.partition("=")
    if not equal or not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise ValueError(f"{spec}: want NAME=PREFIX[:FLAVOR][,VAR=VALUE…], NAME of letters, digits, _ and -")
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
            raise ValueError(f"{spec}: '{pair}' is no VAR=VALUE")
    if not prefix:
        raise ValueError(f"{spec}: no directory")
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
