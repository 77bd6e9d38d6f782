"""Runs the programs of every pattern by turns and reads their samples."""
import os

from ..common import output_of, say
from ..installations import environment_of, niced, settings_of
from ..running import Progress, Started
from ..sizes import burst_of, size_text
from ..turns import rotated
from .netpipe import is_spinning_netpipe, netpipe_of, parse_netpipe
from .patterns import APPLICATIONS, CALLS, NETPIPE_SIZES, PATTERNS, sizes_of
from .variants import is_lite, reason_not

NETPIPE_QUICK_COUNT = "30"    # round trips per trial, in place of a quarter of a second of them
GIVE_UP_AFTER = 2
CROSSED_AT_LEAST = 0.97
PORT_BASE = 21000


class Runner:
    def __init__(self, place, options, variants, patterns, rate):
        self.place, self.options, self.variants, self.patterns, self.rate = place, options, variants, patterns, rate
        self.failures, self.samples, self.libraries, self.settings = [], [], {}, {}
        self.bad = {}
        self.port = PORT_BASE

    def words_and_limit(self, pattern):
        sizes = self.netpipe_sizes() if pattern == "netpipe" else sizes_of(self.options, pattern)
        limit = max(5, int(self.options.timeout) - 2)
        return ["--pattern", PATTERNS[pattern][1] or "pingpong", "--sizes", ",".join(map(str, sizes)), "--seconds", str(self.options.seconds), "--limit", str(limit)]

    def netpipe_sizes(self):
        return [count for count in NETPIPE_SIZES if count <= max(sizes_of(self.options, "netpipe"))]

    def commands(self, variant, pattern, settings):
        """What to start, in order."""
        ranks = PATTERNS[pattern][0]
        nice = self.options.nice
        # programs that do not end themselves, on hosts where nobody else ends them
        limited = ["timeout", "-k", "3", str(max(5, int(self.options.timeout) - 2))]
        self.port += 70
        if self.port > 60000:
            self.port = PORT_BASE
        if variant.get("device") == "ch_p4":
            nice, limited = 0, []    # a process-group file names programs, not commands
        if pattern == "netpipe" and not is_spinning_netpipe(variant, pattern):
            limits = ["-p", "0", "-l", "1", "-u", str(max(sizes_of(self.options, pattern))), "-o", "/dev/null"]
            limits += ["-n", NETPIPE_QUICK_COUNT] if self.options.quick else []
            program = niced(nice, limited + [netpipe_of(variant)[0]] + limits)
            if variant["kind"] == "tcp":
                return [self.place.on(1, program + ["-P", str(self.port)], settings),
                        self.place.on(0, ["sh", "-c", 'sleep 1; exec "$@"', "sh"] + program + ["-P", str(self.port), "-h", self.place.address(1)], settings)]
            return [self.place.mpi_command(variant, ranks, program, settings)]
        if pattern == "overlap":
            words = ["--op", "both", "--compute", "all", "--sizes", ",".join(map(str, sizes_of(self.options, pattern))), "--seconds", str(max(0.4, self.options.seconds * 3))]
            burst = burst_of(self.rate)
            words += ["--drain", str(burst)] if burst else []
            if variant["kind"] == "tcp":
                several = variant.get("sockets", 1)
                address = "+".join(self.place.addresses(1, self.options.networks)) if several > 1 else self.place.address(1)
                words += ["--lowat", "256K", "--sockets", str(several), "--address", address, "--port", str(self.port)]
                return [self.place.on(rank, niced(nice, limited + [variant["overlap_program"]]) + ["--rank", str(rank)] + words, settings) for rank in (1, 0)]
            return [self.place.mpi_command(variant, ranks, niced(nice, limited + [variant["overlap_program"]]) + words, settings)]
        words = self.words_and_limit(pattern)
        if variant["kind"] == "tcp":
            hosts = [rank % len(self.place.hosts) for rank in range(ranks)]
            # ranks that share a core have to give it away
            wait = "yield" if variant["wait"] == "spin" and ranks > 2 else variant["wait"]
            addresses = [self.place.address(host) for host in hosts]
            if "sockets" in variant:
                words += ["--sockets", str(variant["sockets"])]
                addresses = ["+".join(self.place.addresses(host, self.options.networks)) for host in hosts]
            words += ["--hosts", ",".join(addresses), "--port", str(self.port), "--wait", wait, "--sockbuf", self.options.sockbuf]
            return [self.place.on(host, niced(nice, [variant["program"]]) + ["--rank", str(rank)] + words, settings) for rank, host in enumerate(hosts)]
        if pattern in APPLICATIONS:
            source, overlap = APPLICATIONS[pattern]
            program = variant["applications"][source]
            words += ["--overlap", "yes" if overlap else "no"]
        else:
            program = variant["calls_program"] if pattern in CALLS else variant["program"]
        return [self.place.mpi_command(variant, ranks, niced(nice, [program]) + words, settings)]

    def run(self, variant, pattern):
        """One start: a sample per size, or none."""
        settings = settings_of(variant, self.place.interface)
        if pattern == "netpipe" and variant.get("shim"):
            settings["LD_LIBRARY_PATH"] = variant["shim"] + ":" + settings.get("LD_LIBRARY_PATH", "")
        self.settings.setdefault(variant["name"], settings)
        sizes = sizes_of(self.options, pattern)
        marker = b'"per_rank"' if pattern == "overlap" else b'"verified"'
        has_result = None if pattern == "netpipe" else lambda text: text.count(marker) >= len(sizes)
        load = os.getloadavg()[0]
        before = sum(self.place.bytes_sent())
        started = Started(self.place, self.commands(variant, pattern, settings), environment_of(settings), self.options.timeout, has_result)
        crossed = sum(self.place.bytes_sent()) - before
        samples, payload = self.samples_of(variant, pattern, started)
        complete = len(samples) >= (1 if pattern == "netpipe" else len(sizes))
        if complete and started.hung and not is_lite(variant):
            say(f"compare: {variant['name']} did not end after its result, {pattern}: the result is taken")
        elif not complete or started.hung or started.code != 0:
            why = f"no end within {self.options.timeout:g} s" if started.hung else f"exit code {started.code}"
            self.fail(f"{variant['name']}: {pattern} at {self.rate}: {why}", started.error_text)
            return False
        if crossed < CROSSED_AT_LEAST * payload:
            self.fail(f"{variant['name']}: {pattern} at {self.rate}: {crossed} bytes crossed the link, {payload:.0f} were sent: it took another way", "")
            return False
        for sample in samples:
            sample.update(name=variant["name"], pattern=pattern, rate=self.rate, load=load)
            if not sample["verified"]:
                self.fail(f"{variant['name']}: {pattern}, {size_text(sample['bytes'])}: wrong data", "")
        self.samples += samples
        return samples

    def samples_of(self, variant, pattern, started):
        if pattern == "netpipe" and not is_spinning_netpipe(variant, pattern):
            points = parse_netpipe(started.output + started.error_text)
            samples = [{"bytes": count, "us": points[count], "verified": True} for count in NETPIPE_SIZES if count in points]
            if variant["kind"] == "mpi" and samples:    # NetPIPE does not say what it runs on
                self.libraries.setdefault(variant["name"], variant["version"] or variant["device"] or variant["family"])
            # it leaves with status 0 whatever its peer did
            return samples if max(points, default=0) >= max(self.netpipe_sizes()) else [], max(points, default=0) * 2.0
        lines = started.json_lines()
        for line in lines:
            if "library" in line:
                self.libraries.setdefault(variant["name"], variant.get("version") or line["library"])
        if pattern == "overlap":
            samples, payload = [], 0.0
            for line in lines:
                if "per_rank" in line:
                    ranks = line["per_rank"]
                    known = [rank["availability"] for rank in ranks if rank["availability"] is not None]
                    samples.append({"bytes": line["bytes"], "availability": min(known, default=None), "verified": line["verified"],
                                    "stolen_pct": max((rank["stolen_pct"] or 0.0 for rank in ranks), default=0.0)})
                    payload += sum(rank["moved_mb"] * rank["iterations"] for rank in ranks) * 1048576.0
            return samples, payload
        points = [line for line in lines if "us" in line]
        if pattern == "netpipe":
            points = [{**point, "us": point["us_min"]} for point in points]
        return [{key: point.get(key) for key in ("bytes", "us", "us_min", "us_max", "unfair", "added_us", "verified")} for point in points], sum(point["payload"] for point in points)

    def fail(self, what, text):
        say(f"compare: {what}")
        for line in [line for line in text.splitlines() if line.strip()][-8:]:
            say(f"    | {line}")
        self.failures.append(what)

    def measure(self):
        plan = []
        for number in range(self.options.rounds):
            for index, pattern in enumerate(self.patterns):
                able = [variant for variant in self.variants if reason_not(variant, pattern) is None]
                plan += [(number, variant, pattern) for variant in rotated(able, number + index)]
        progress = Progress(len(plan))
        for number, variant, pattern in plan:
            key = (variant["name"], pattern)
            if self.bad.get(key, 0) < GIVE_UP_AFTER:
                progress.show(f"rate {self.rate}, round {number + 1} of {self.options.rounds}: {variant['name']} {pattern}")
                samples = self.run(variant, pattern)
                for sample in samples or []:
                    sample["round"] = number
                if not samples:
                    self.bad[key] = self.bad.get(key, 0) + 1
                    if self.bad[key] == GIVE_UP_AFTER:
                        self.fail(f"{variant['name']}: {pattern} failed {GIVE_UP_AFTER} times, no more of it", "")
            progress.done += 1
        progress.end()

    def link(self):
        """What the link is set to, as far as the first host tells."""
        script = ("cat /proc/sys/net/ipv4/tcp_congestion_control; cat /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/tcp_wmem; "
                  f"cat /sys/class/net/{self.place.interface or '*'}/mtu 2>/dev/null | sort -n | head -n 1")
        text = output_of(self.place.on(0, ["sh", "-c", script], {})).split("\n")
        keys = ("congestion_control", "tcp_rmem", "tcp_wmem", "mtu")
        return {key: " ".join(value.split()) for key, value in zip(keys, text)}

    def answer(self):
        self.measure()
        return {"samples": self.samples, "failures": self.failures, "libraries": self.libraries, "settings": self.settings, "link": self.link()}
