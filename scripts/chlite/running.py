"""Runs programs that belong together to an end in any case, in a net-lab of their own where that is wanted."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .common import NET_LAB, die

PROGRESS_PERIOD_S = 30


class Started:
    """Programs that belong together: their output, and an end in any case."""
    def __init__(self, place, commands, environment, timeout_s, has_result=None, grace_s=10, on_hang=None):
        """has_result: a function of the output so far. Some MPIs do not return from MPI_Finalize now and then: their numbers are good.
        on_hang: called before what hangs is ended."""
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
                    if self.hung and on_hang:
                        on_hang()
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
        def broken(line):
            self.error_text += f"\nbroken output: {line[:200]}"
        return json_objects(self.output, broken)


def json_objects(text, broken=None):
    """Of a program's output, the lines that are objects. One that only begins like an object is for
    broken(line); without that it is a ValueError."""
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                found.append(json.loads(line))
            except ValueError:
                if broken is None:
                    raise
                broken(line)
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


def in_lab(script, orders, hosts, rate, **settings):
    """As in_labs, in one."""
    return in_labs(1, script, orders, hosts, rate, **settings)[0]


def in_labs(count, script, orders, hosts, rate, pin="auto", mtu=None, direct=False, control=False, more=()):
    """Runs `script --inside ORDERS` in net-labs of their own, all at a time, and returns a list of what each left (see answer_orders). `more`: options of net-lab."""
    options = ["--hosts", str(hosts), "--rate", rate] + {"auto": [], "yes": ["--pin"], "no": ["--no-pin"]}[pin]
    options += (["--mtu", str(mtu)] if mtu else []) + (["--direct"] if direct else []) + (["--control"] if control else []) + list(more)
    with tempfile.TemporaryDirectory(prefix="lite-orders-") as directory:
        results, labs = [os.path.join(directory, f"results{i}.json") for i in range(count)], []
        try:
            for i, result in enumerate(results):
                path = os.path.join(directory, f"orders{i}.json")
                with open(path, "w", encoding="utf-8") as text:
                    json.dump({**orders, "results": result}, text)
                labs.append(subprocess.Popen([NET_LAB, *options, "exec", sys.executable, os.path.realpath(script), "--inside", path]))
            codes = [lab.wait() for lab in labs]
        except BaseException:
            for lab in labs:
                lab.terminate()
            for lab in labs:
                lab.wait()
            raise
        for code, result in zip(codes, results):
            if code != 0 or not os.path.exists(result):
                die(f"the lab of {hosts} hosts for rate {rate} failed with exit code {code}")
        return [json.loads(Path(result).read_text(encoding="utf-8")) for result in results]


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
