"""Conditions on the results (--check)."""
import re

from ..common import die, say
from ..sizes import size_of, size_text
from .report import number


def parse_check(text):
    match = re.fullmatch(r"\s*([A-Za-z0-9_-]+)(?:\.(\w+))?@([0-9KMGkmg,]+)\s*(>=|<=)\s*(?:(-?[0-9.]+)|([A-Za-z0-9_-]+?)(?:\s*-\s+([0-9.]+))?)\s*", text)
    if not match:
        die(f"--check '{text}': want NAME[.METRIC]@SIZES>=VALUE or <=, for example 'sigio@1M,4M>=94' or 'sigio@4M>=tcp-256K - 2'")
    name, metric, sizes, relation, value, other, less = match.groups()
    return name, metric or "availability", [size_of(size) for size in sizes.split(",")], relation, value, other, float(less or 0)


def worst_value(point, metric, relation):
    values = [rank.get(metric) for rank in point["per_rank"]]
    values = [value for value in values if value is not None]
    if not values:
        return None
    return min(values) if relation == ">=" else max(values)


def judge(options, points):
    """Prints a line per condition and point to stderr; the number that did not hold. A condition that nothing was measured for does not hold."""
    broken = 0
    for text in options.check:
        name, metric, sizes, relation, value, other, less = parse_check(text)
        for size in sizes:
            mine = [point for point in points if point["name"] == name and point["bytes"] == size]
            if not mine:
                say(f"check failed: {text}: nothing was measured for {name} at {size_text(size)}")
                broken += 1
            for point in mine:
                limit = float(value) if value is not None else None
                if other is not None:
                    beside = [peer for peer in points if peer["name"] == other and
                              all(peer[field] == point[field] for field in ("rate", "op", "datatype", "compute", "bytes"))]
                    if beside:
                        limit = worst_value(beside[0], metric, relation)
                        limit = None if limit is None else limit - less
                got = worst_value(point, metric, relation)
                holds = got is not None and limit is not None and (got >= limit if relation == ">=" else got <= limit)
                where = f"{point['rate']}, {point['op']}, {point['datatype']}, compute {point['compute']}"
                say(f"check {'holds' if holds else 'failed'}: {name} {metric} at {size_text(size)} ({where}): {number(got, '%.4g')} {relation} {number(limit, '%.4g')}")
                broken += not holds
    return broken
