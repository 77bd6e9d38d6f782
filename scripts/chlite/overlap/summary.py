"""Reckons medians over the rounds, per point, installation and rank."""
from ..turns import middle
from .options import OPS


def summarize(result):
    """One entry per point and installation: per rank the median of every number over the rounds, and the spread of availability."""
    groups = {}
    for sample in result["samples"]:
        key = (sample["rate"], sample["op"], sample["datatype"], sample["compute"], sample["bytes"], sample["name"])
        groups.setdefault(key, []).append(sample)
    points = []
    for (rate, op, datatype, compute, count, name), samples in groups.items():
        ranks = []
        for index in range(samples[0]["ranks"]):
            rounds = [sample["per_rank"][index] for sample in samples]
            entry = {field: middle([one.get(field) for one in rounds]) for field in rounds[0] if field not in ("host",)}
            entry["host"] = rounds[0]["host"]
            values = [one["availability"] for one in rounds if one["availability"] is not None]
            entry["availability_low"] = min(values) if values else None
            entry["availability_high"] = max(values) if values else None
            ranks.append(entry)
        burst = result["about"]["burst"][rate]
        points.append({"rate": rate, "op": op, "datatype": datatype, "compute": compute, "bytes": count, "name": name, "rounds": len(samples),
                       "verified": all(sample["verified"] for sample in samples), "below_burst": count <= burst, "per_rank": ranks})
    # a base that is long because the library is slow flatters it: the same against the shortest base of all
    for point in points:
        shortest = min(peer["per_rank"][0]["operation_us"] for peer in points
                       if all(peer[field] == point[field] for field in ("rate", "op", "datatype", "compute", "bytes")))
        for rank in point["per_rank"]:
            rank["availability_best_base"] = None if rank["availability"] is None else 100.0 * (1.0 - (rank["iteration_us"] - rank["work_us"]) / shortest)
    names = result["about"]["names"]
    rates = result["about"]["rates"]
    points.sort(key=lambda point: (rates.index(point["rate"]), OPS.index(point["op"]), point["datatype"], point["compute"], point["bytes"],
                                   names.index(point["name"])))
    return points


def worst_rank(point):
    """The rank with the least availability; the first when none computes."""
    ranks = [rank for rank in point["per_rank"] if rank["availability"] is not None]
    return min(ranks, key=lambda rank: rank["availability"]) if ranks else point["per_rank"][0]
