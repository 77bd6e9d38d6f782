"""What every script here needs: where the project's files are, messages, output of a command."""
import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
SCRIPTS = os.path.join(TOP, "scripts")
BENCH = os.path.join(TOP, "test", "bench")
NET_LAB = os.path.join(SCRIPTS, "net-lab")


def say(text):
    print(text, file=sys.stderr, flush=True)


def die(text, code=2):
    say(f"{os.path.basename(sys.argv[0])}: {text}")
    sys.exit(code)


def output_of(command, **more):
    try:
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, stdin=subprocess.DEVNULL, timeout=60, **more)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return result.stdout + result.stderr
