"""Reckons medians, spreads and ratios from the samples."""
import math

from ..sizes import burst_of
from ..turns import middle
from .patterns import MPI_TIMES, PATTERNS, main_metric

RAW = "tcp-spin"


def metrics_of(sample):
    """What a sample says, by name; all but us, added and unfair: more is better."""
    pattern, count = sample["pattern"], sample["bytes"]
    if pattern == "overlap":
        return {"availability": sample["availability"]}
    us = sample["us"]
    if not us or us <= 0:
        return {}
    if pattern in MPI_TIMES:
        return {"us": us, "added": sample.get("added_us")}
    if pattern in ("pingpong", "netpipe"):
        return {"us": us, "gbps": 8e-3 * count / us}
    if pattern == "stream":
        return {"gbps": 8e-3 * count / us}
    if pattern == "bidirectional":
        return {"gbps": 16e-3 * count / us}
    result = {"messages": 1e6 / us}
    if pattern == "many_to_one":
        result["unfair"] = sample["unfair"]
    return result


def speed(pattern, mine, other):
    """How many times as fast as the other, by the pattern's metric; None where there is no ratio."""
    if mine is None or other is None or mine <= 0 or other <= 0 or pattern == "overlap":
        return None
    return other / mine if main_metric(pattern) == "us" else mine / other


def on_the_line(points):
    """{bytes: speed} -> {bytes: this speed by the line through its neighbours', in logarithms}. What is below 1 is a dip."""
    sizes = sorted(points)
    found = {}
    for low, here, high in zip(sizes, sizes[1:], sizes[2:]):
        if min(points[low], points[here], points[high]) > 0:
            part = math.log(here / low) / math.log(high / low)
            found[here] = points[here] / math.exp((1 - part) * math.log(points[low]) + part * math.log(points[high]))
    return found


def by_round(samples, metric):
    """{round: value}"""
    return {sample["round"]: metrics_of(sample).get(metric) for sample in samples}


def least_ahead(pattern, by_name, metric, name, peers):
    """The peer against which `name` is least ahead, and how many times as fast it is: the median of the ratios of the same round, as what the machine did
    meanwhile is in both. (None, None) where no round has both."""
    mine = by_round(by_name[name], metric)
    ratios = {}
    for peer in peers:
        theirs = by_round(by_name[peer], metric)
        ratio = middle([speed(pattern, value, theirs.get(number)) for number, value in mine.items()])
        if ratio is not None:
            ratios[peer] = ratio
    best = min(ratios, key=ratios.get, default=None)
    return best, ratios.get(best)


def summarize(result):
    """One entry per pattern, size and installation: medians over the rounds, with their spread, and ratios of the same round."""
    about = result["about"]
    groups = {}
    for sample in result["samples"]:
        groups.setdefault((sample["rate"], sample["pattern"], sample["bytes"]), {}).setdefault(sample["name"], []).append(sample)
    points = []
    for (rate, pattern, count), by_name in groups.items():
        key = main_metric(pattern)
        peers = [name for name in by_name if about["variants"][name]["kind"] == "mpi" and "lite" not in about["variants"][name]["device"]]
        raw = RAW if RAW in by_name else ("tcp-block" if "tcp-block" in by_name else None)
        raw_of = by_round(by_name[raw], key) if raw else {}
        for name, samples in by_name.items():
            values = {}
            for sample in samples:
                for metric, value in metrics_of(sample).items():
                    values.setdefault(metric, []).append(value)
            point = {"rate": rate, "pattern": pattern, "bytes": count, "name": name, "rounds": len(samples), "verified": all(sample["verified"] for sample in samples),
                     # what streams soon uses a burst up; what waits for an answer lets it fill again
                     "below_burst": pattern in ("pingpong", "netpipe") and about["where"].startswith("test hosts") and count <= burst_of(rate)}
            for metric, all_values in values.items():
                known = [value for value in all_values if value is not None]
                point[metric] = {"median": middle(known), "low": min(known, default=None), "high": max(known, default=None)}
            # what the machine did in a round is in both
            point["speed_of_raw"] = middle([speed(pattern, metrics_of(sample).get(key), raw_of.get(sample["round"])) for sample in samples]) if raw and name != raw else None
            point["raw"] = raw
            lite = "lite" in about["variants"][name]["device"]
            beside = peers if lite else []
            point["best_peer"], point["speed_of_best_peer"] = least_ahead(pattern, by_name, key, name, beside)
            point["added_of_best_peer"] = least_ahead(pattern, by_name, "added", name, beside)[1]
            points.append(point)
    for rate in about["rates"]:
        for pattern in ("pingpong", "stream", "bidirectional", "netpipe"):
            for name in about["names"]:
                mine = {point["bytes"]: point for point in points if (point["rate"], point["pattern"], point["name"]) == (rate, pattern, name)}
                speeds = {count: point["gbps"]["median"] for count, point in mine.items() if point.get("gbps") and point["gbps"]["median"]}
                for count, value in on_the_line(speeds).items():
                    mine[count]["line"] = value
    order = list(PATTERNS)
    points.sort(key=lambda point: (about["rates"].index(point["rate"]), order.index(point["pattern"]), point["bytes"], about["names"].index(point["name"])))
    return points
