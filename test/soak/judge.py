"""Whether a soak was well, from its samples: no sockets, no clock, no files.

A sample is what a rank said of itself between two rounds (sample.h): a dict with rank, t (seconds
since the start), rss, heap, kept (bytes), descriptors, threads, counters, levels and so on. The first
quarter of the time is the warm-up. What is in the second is what the job needs; the last has to be
no more than that, but for the bounds below."""
import statistics
from collections.abc import Callable
from dataclasses import dataclass

QUARTER_LEAST = 3  # samples of a rank, to judge by
WARM_ROUNDS = 60  # in fewer, the pools are not full
STALL_S = 60  # seconds in which no rank came to another step
KB, MB = 1 << 10, 1 << 20


@dataclass
class Bound:
    """How much more the last quarter may have than the second: the greater of the two. What is
    compared is the quarters' medians, or their least values."""

    absolute: float
    share: float = 0.0
    compared: Callable = statistics.median

    def of(self, before):
        return max(self.absolute, self.share * before)


# Memory: pools grow to the most that was ever needed at once, which comes by chance and ever more
# seldom (4 ranks, 6 minutes: 11 to 25 MB in the first 60 rounds, 2 MB at most in the next 27); a leak
# goes on. Descriptors and threads return to the same count; a stranger or a child has one meanwhile.
# "used" is the resident memory but for what malloc keeps: its arenas, one for each thread, each grow
# to the longest message that once passed through it, at some time or other (22 MB in one step).
BOUNDS = {"rss": Bound(32 * MB, 0.1), "used": Bound(4 * MB, 0.03), "heap": Bound(2 * MB, 0.03),
          "descriptors": Bound(0, compared=min), "threads": Bound(0, compared=min)}
WHAT = {"rss": "resident memory", "used": "resident memory in use", "heap": "heap in use", "descriptors": "descriptors", "threads": "threads"}
# Of the device's levels, those that are 0 when the program has nothing open; the barrier's own
# messages may be there.
LEVELS = ("posted_receives", "unexpected_messages", "requests_pending", "active_messages_unsent")
LEVEL_MOST = 16


@dataclass
class Row:
    """A question, and the answer: why not is empty if it is well."""

    name: str
    why: str
    text: str = ""  # what was found


def slope(points):
    """By Theil and Sen: the median of the slopes of all pairs, which single outliers do not move."""
    slopes = [(y2 - y1) / (x2 - x1) for i, (x1, y1) in enumerate(points) for x2, y2 in points[i + 1:] if x2 > x1]
    return statistics.median(slopes) if slopes else 0.0


def thinned(points, most=200):
    """For the slope, whose time goes with the square."""
    step = -(-len(points) // most)
    return points[::step]


def growth(points, bound):
    """(second quarter, last quarter, slope per hour, why not) of [(t, value)], by the time between
    the first and the last. None where there are too few points."""
    if not points:
        return None
    begin, span = points[0][0], points[-1][0] - points[0][0]
    quarters = [[], [], [], []]
    for t, value in points:
        quarters[min(3, int(4 * (t - begin) / span)) if span > 0 else 0].append(value)
    if min(len(quarters[1]), len(quarters[3])) < QUARTER_LEAST:
        return None
    before, after = bound.compared(quarters[1]), bound.compared(quarters[3])
    warm = thinned([(t, value) for t, value in points if t - begin >= span / 4])
    per_second = slope(warm)
    allowed = bound.of(before)
    why = ""
    if after - before > allowed:
        why = f"{after - before:.9g} more in the last quarter, and {allowed:.9g} are allowed"
    elif per_second * 0.75 * span > allowed:
        why = f"a slope of {per_second * 3600:.9g} an hour, that is {per_second * 0.75 * span:.9g} since the warm-up, and {allowed:.9g} are allowed"
    return before, after, per_second * 3600, why


def by_rank(samples):
    found = {}
    for sample in sorted(samples, key=lambda sample: sample["t"]):
        found.setdefault(sample["rank"], []).append(sample)
    return dict(sorted(found.items()))


def value_of(sample, metric):
    """-1: the C library does not tell."""
    if metric == "used":
        return sample["rss"] - sample["kept"] if sample["kept"] >= 0 else -1
    return sample[metric]


def figures(samples):
    """{(rank, metric): growth()} of what there are values of; None where there are too few."""
    found = {}
    for rank, mine in by_rank(samples).items():
        for metric, bound in BOUNDS.items():
            points = [(sample["t"], value) for sample in mine if (value := value_of(sample, metric)) >= 0]
            if points:
                found[rank, metric] = growth(points, bound)
    return found


def fallen(mine):
    """Names of the counters that got less from one sample to a later one."""
    return sorted({name for one, other in zip(mine, mine[1:]) for name, value in one["counters"].items() if other["counters"].get(name, -1) < value})


def warm_up_rounds(samples):
    """How many rounds the first quarter of the time had."""
    last = max((sample["t"] for sample in samples), default=0)
    return max((sample["round"] + 1 for sample in samples if sample["t"] <= last / 4), default=0)


def growth_rows(samples, ranks):
    found, rows, warm = figures(samples), [], warm_up_rounds(samples)
    hint = f" (with {warm} rounds in the first quarter, which may not be all of the warm-up: --hours)" if warm < WARM_ROUNDS else ""
    for metric, what in WHAT.items():
        for rank in range(ranks):
            name = f"rank {rank}: no growth: {what}"
            if (rank, metric) not in found:
                if metric not in ("used", "heap"):  # which an old C library does not tell
                    rows.append(Row(name, "no sample"))
            elif found[rank, metric] is None:
                rows.append(Row(name, f"too few samples: a quarter of the time needs {QUARTER_LEAST} (--hours, --sample)"))
            else:
                before, after, hourly, why = found[rank, metric]
                rows.append(Row(name, why and why + hint, f"{before:.0f}, {after:.0f} in the last quarter, slope {hourly:.0f} an hour"))
    return rows


def counter_rows(samples, ranks):
    rows, mine = [], by_rank(samples)
    for rank in range(ranks):
        here = mine.get(rank, [])
        less = fallen(here)
        why = "" if here and here[-1]["counters"] else "no counters: was MPICH configured with --enable-mpit-pvars?"
        rows.append(Row(f"rank {rank}: counters only grow", f"these got less: {', '.join(less)}" if less else why))
        open_ones = [f"{name} {statistics.median(values):.0f}" for name in LEVELS
                     if (values := [sample["levels"].get(name, 0) for sample in here]) and statistics.median(values) > LEVEL_MOST]
        rows.append(Row(f"rank {rank}: nothing stays open", ", ".join(open_ones) if here else "no sample"))
    return rows


def verdict(samples, watched, ranks, seconds):
    """The rows. `watched` is what watch.py saw: code, stall (""), quiet (the longest time in which
    nothing moved), stopped (""), text (the job's output), strangers [(kind, why)]."""
    rounds = max((sample["round"] for sample in samples), default=-1) + 1
    last = max((sample["t"] for sample in samples), default=0)
    wrong = next((line for line in watched["text"].splitlines() if "soak: wrong: " in line), "")
    rows = [Row("all data is right", wrong.partition("soak: wrong: ")[2])]
    if watched["stopped"]:
        rows.append(Row(f"{seconds / 3600:g} hours", f"stopped by {watched['stopped']} after {last:.0f} s"))
    else:
        ended = watched["code"] == 0 and "soak: " in watched["text"] and " checks, 0 failed" in watched["text"]
        rows.append(Row("the job ends with status 0", "" if ended else f"status {watched['code']}", f"{rounds} rounds"))
    rows.append(Row("rounds go on", watched["stall"] or ("" if rounds > 0 else "no round was done"), f"nothing moved for {watched['quiet']:.0f} s at most"))
    rows += growth_rows(samples, ranks) + counter_rows(samples, ranks)
    bad = [f"{kind}: {why}" for kind, why in watched["strangers"] if why]
    if watched["strangers"]:
        rows.append(Row("strangers are turned away", "; ".join(bad[:3]), f"{len(watched['strangers'])} strangers"))
    return rows
