"""The lines that people read."""
import math

from ..sizes import size_text
from .patterns import NETPIPE_SHOWN, PATTERNS, main_metric

UNITS = {"us": "us", "gbps": "Gb/s", "messages": "messages/s", "availability": "avail %"}


def significant(value, digits=3):
    """12345.6 -> 12,300; 1.2345 -> 1.23"""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, decimals):,.{max(0, decimals)}f}"


def ratio_text(value):
    return "-" if value is None else f"{value:.2f}"


def has_added(point):
    """Whether it was measured what the call adds to a loop of barriers."""
    return bool(point.get("added") and point["added"]["median"] is not None)


def table(result, points):
    """The lines that people read."""
    about = result["about"]
    lines = [f"scripts/compare, {about['date']}, {about['minutes']:g} minutes" + (f", project at {about['project']}" if about["project"] else ""),
             f"  {about['command']}",
             f"  {about['kernel']}, {about['processor']}, {about['cores']} cores" + (f", load {about['load'][0]:.1f} to {about['load'][1]:.1f} when each run began" if about["load"] else ""),
             f"  {about['where']}, pin {about['pin']}; {about['rounds']} rounds by turns, {about['seconds']:g} s per size; raw TCP's sockets: TCP_NODELAY, keepalive"
             f" as the engine's, buffers " + ("autotuned" if about["sockbuf"] == "0" else about["sockbuf"])]
    for rate in about["rates"]:
        link = about["link"].get(rate, {})
        lines.append(f"  link: rate {rate}, " + ", ".join(f"{key} {value}" for key, value in link.items()))
    for name in about["names"]:
        variant = about["variants"][name]
        settings = " ".join(f"{key}={value}" for key, value in variant["settings"].items())
        if variant["library"] or variant["kind"] == "mpi":
            lines.append(f"  {name}: {variant['library'] or 'no result'}{', ' + variant['prefix'] if variant['prefix'] else ''} {settings}".rstrip())
    for what in about["skipped"]:
        lines.append(f"  not run: {what}")
    last = None
    for point in points:
        head = (point["rate"], point["pattern"])
        key = main_metric(point["pattern"])
        if point["pattern"] == "netpipe" and point["bytes"] not in NETPIPE_SHOWN:
            continue
        if head != last:
            last = head
            lines += ["", f"{PATTERNS[point['pattern']][4]}; rate {point['rate']}"]
            lines.append(f"  {'bytes':>6} {'':<14} {UNITS[key]:>10} {'spread':>19} {'of raw':>7} {'of best peer':>22} {'Gb/s':>7} {'line':>5}" +
                         (f" {'unfair':>7}" if point["pattern"] == "many_to_one" else "") + (f" {'added, us':>10} {'of best':>7}" if has_added(point) else ""))
        value = point.get(key) or {"median": None, "low": None, "high": None}
        spread = f"{significant(value['low'])}..{significant(value['high'])}"
        peer = "-" if point["speed_of_best_peer"] is None else f"{point['speed_of_best_peer']:.2f} ({point['best_peer']})"
        gbps = point.get("gbps", {}).get("median")
        line = f"  {size_text(point['bytes']):>6} {point['name']:<14} {significant(value['median']):>10} {spread:>19} {ratio_text(point['speed_of_raw']):>7} {peer:>22}"
        line += f" {significant(gbps):>7} {ratio_text(point.get('line')):>5}"
        if point["pattern"] == "many_to_one":
            line += f" {significant(point['unfair']['median'] if point.get('unfair') else None):>7}"
        if has_added(point):
            line += f" {significant(point['added']['median']):>10} {ratio_text(point['added_of_best_peer']):>7}"
        if not point["verified"]:
            line += "  WRONG DATA"
        if point["below_burst"]:
            line += "  not shaped (below the burst)"
        lines.append(line)
    behind = []
    for point in points:
        if "lite" in about["variants"][point["name"]]["device"]:
            factors = [(point[field], against) for field, against in (("speed_of_raw", "raw TCP"), ("speed_of_best_peer", point["best_peer"]))
                       if point[field] is not None and point[field] < 0.95]
            behind += [(factor, f"  {factor:5.2f} of {against}: {point['name']} {point['pattern']} {size_text(point['bytes'])}, rate {point['rate']}") for factor, against in factors]
    if behind:
        lines += ["", "Where the device is behind by more than 5 % (the twelve largest):"] + [line for _, line in sorted(behind)[:12]]
    for what in result["failures"]:
        lines.append(f"failed: {what}")
    return lines
