"""Runs the job in the lab and watches it: progress for people, strangers, a stall. What it has seen
is in a file all the time, so that a soak that is stopped has results."""
import json
import os
import signal
import subprocess
import time

import judge
import strangers
from chlite.common import output_of, say
from chlite.places import LabPlace
from chlite.running import clock_text

START_WITHIN_S = 120
TELL_EVERY_S = 60
STRANGER_EVERY_S = 15
OUTPUT_MOST = 20000  # bytes of the job's output that are kept, from its end


def samples_of(file, ranks):
    """What the ranks have left; a line that is being written is none."""
    found = []
    for rank in range(ranks):
        try:
            with open(f"{file}.samples.{rank}", encoding="utf-8") as text:
                found += [json.loads(line) for line in text if line.endswith("}\n")]
        except OSError:
            pass
    return found


def places_of(file, ranks):
    """Where each rank is: "ROUND STEP"."""
    places = []
    for rank in range(ranks):
        try:
            with open(f"{file}.at.{rank}", encoding="utf-8") as text:
                places.append(text.read().strip())
        except OSError:
            places.append("")
    return places


class Watch:
    def __init__(self, orders):
        self.orders, self.file, self.ranks = orders, orders["file"], orders["ranks"]
        self.begin = self.moved = time.monotonic()
        self.seen = {"code": None, "stall": "", "quiet": 0.0, "stopped": "", "text": "", "strangers": [], "waits": ""}
        self.places, self.told = [], self.begin

    def look(self):
        """Whether to go on."""
        now, places = time.monotonic(), places_of(self.file, self.ranks)
        if places != self.places:
            self.places, self.moved = places, now
        quiet = now - self.moved
        self.seen["quiet"] = max(self.seen["quiet"], quiet)
        limit = judge.STALL_S if any(places) else START_WITHIN_S
        if quiet > limit:
            where = "; ".join(f"rank {rank}: {place or 'not started'}" for rank, place in enumerate(places))
            self.seen["stall"] = f"nothing moved for {quiet:.0f} s (round, step): {where}"
            return False
        return True

    def tell(self):
        now = time.monotonic()
        if now - self.told < TELL_EVERY_S:
            return
        self.told = now
        samples = samples_of(self.file, self.ranks)
        latest = {sample["rank"]: sample for sample in samples}
        memory = ", ".join(f"{latest[rank]['rss'] / judge.MB:.1f}" for rank in sorted(latest))
        place = self.places[0].split(maxsplit=1) if self.places and self.places[0] else ["0"]
        say(f"      round {place[0]}, {clock_text(now - self.begin)} of {clock_text(self.orders['seconds'])}; "
            f"resident MB: {memory or 'no sample yet'}; strangers: {len(self.seen['strangers'])}")

    def keep(self):
        path = f"{self.file}.watched"
        with open(path + ".new", "w", encoding="utf-8") as text:
            json.dump(self.seen, text)
        os.replace(path + ".new", path)

    def ask(self, prefix):
        """What the ranks say that they wait for, where they stand still."""
        for host in range(self.orders["hosts"]):
            self.seen["waits"] += output_of(["ip", "netns", "exec", os.environ[f"LAB_NS_{host}"], os.path.join(prefix, "bin", "lite-info"), "--job"])


def pid_of(file, rank):
    try:
        with open(f"{file}.samples.{rank}", encoding="utf-8") as text:
            return json.loads(text.readline())["pid"]
    except (OSError, ValueError):
        return None


def run_job(orders, environment):
    """Inside of the lab: to the end of the job, of the stall, or of this process's patience."""
    watch = Watch(orders)
    file, prefix = orders["file"], orders["prefix"]
    command = ["env", "--ignore-signal=PIPE", os.environ["LAB_MPIEXEC"], prefix, "-n", str(orders["ranks"]), orders["program"],
               f"{orders['seconds']:.0f}", str(orders["seed"]), file, f"{orders['sample']:g}"]
    visitors = None
    with open(f"{file}.output", "w", encoding="utf-8") as output:
        job = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        visitors = strangers.Strangers(orders, STRANGER_EVERY_S, lambda rank: pid_of(file, rank)) if orders["strangers"] else None
        while job.poll() is None:
            time.sleep(0.5)
            if not watch.look():
                watch.ask(prefix)
                break
            watch.seen["strangers"] = list(visitors.found) if visitors else []
            watch.tell()
            watch.keep()
        watch.seen["code"] = job.poll()
    finally:
        # who is told to end may not have the time for the rest
        watch.seen["text"] = last_of(f"{file}.output")
        watch.keep()
        if visitors:
            watch.seen["strangers"] = visitors.end()
        end_job(job, orders["hosts"])
        watch.seen["text"] = last_of(f"{file}.output")
        watch.keep()


def end_job(job, hosts):
    if job.poll() is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(job.pid, number)
            job.wait(timeout=2)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass
    LabPlace(hosts).end_leftovers()


def last_of(path):
    with open(path, "rb") as text:
        text.seek(0, os.SEEK_END)
        text.seek(max(0, text.tell() - OUTPUT_MOST))
        return text.read().decode(errors="replace")
