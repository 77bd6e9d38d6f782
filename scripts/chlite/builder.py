"""Compiles benchmark programs (test/bench), each once per compiler."""
import os
import shlex
import shutil
import subprocess
import sys

from .common import BENCH, die, say


def compile_program(compiler, sources, program, optional=False, flags=("-std=gnu11",)):
    """Sources of test/bench, or by their path. False: `optional`, and it does not compile (what it needs is newer than this MPI)."""
    command = [compiler, "-O2", *flags] + [os.path.join(BENCH, source) for source in sources] + ["-o", program, "-lm"]
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
