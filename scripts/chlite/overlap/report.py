"""Tables for people, lines for other programs."""
import csv

from ..sizes import size_text
from .summary import worst_rank


def number(value, form="%.1f"):
    return "-" if value is None else form % value


def show(result, points):
    about = result["about"]
    print(f"{about['kernel']}, {about['cores']} cores, {about['hosts']} hosts (pin {about['pin']}), {about['date']}, "
          f"computation = {about['factor']:g} x communication, {about['rounds']} rounds"
          + (f", load {about['load'][0]:.1f} to {about['load'][1]:.1f} when each run began" if about.get("load") else ""))
    for name in about["names"]:
        environment = " ".join(f"{variable}={value}" for variable, value in about["environment"].get(name, {}).items())
        print(f"  {name}: {about['libraries'].get(name) or 'no result'} {environment}".rstrip())
    last = None
    for point in points:
        head = (point["rate"], point["op"], point["datatype"], point["compute"])
        if head != last:
            last = head
            burst, drain = about["burst"][point["rate"]], about["drain"][point["rate"]]
            print(f"\n{point['op']}, {point['datatype']}, compute: {point['compute']}; " +
                  ("link not shaped" if burst == 0 else f"link shaped to {point['rate']}, burst {size_text(burst)}" +
                   (", drained before each iteration" if drain >= burst else "")))
            if burst and drain < burst:
                print(f"  sizes up to {size_text(burst)} are below the burst: the shaper lets them through at the speed of the machine; of larger ones the first "
                      f"{size_text(burst)}")
            waiting = point["compute"] != "all"
            print(f"  {'bytes':>6} {'mpi':<14} {'base us':>9} {'avail %':>8} {'spread':>13} {'by rank':>11} {'best %':>7} {'slow %':>7} {'cpu %':>6} {'cpu/MB':>7} "
                  f"{'sig/MB':>7} {'vol/MB':>7} {'inv/MB':>7} {'helper %':>8} {'left us':>8}" + (f" {'waiting':>8}" if waiting else ""))
        rank = worst_rank(point)
        by_rank = "/".join(number(one["availability"], "%.0f") for one in point["per_rank"])
        ratio = max((one["wait_ratio"] for one in point["per_rank"] if one["wait_ratio"] is not None), default=None)
        mark = "" if point["verified"] else "  WRONG DATA"
        stolen = max((one["stolen_pct"] or 0.0 for one in point["per_rank"]), default=0.0)
        if stolen > about["max_stolen"]:
            mark += f"  disturbed: others took {stolen:.0f} % of a core"
        if point["below_burst"] and about["drain"][point["rate"]] < about["burst"][point["rate"]]:
            mark += "  not shaped"
        print(f"  {size_text(point['bytes']):>6} {point['name']:<14} {number(rank['operation_us'], '%.0f'):>9} {number(rank['availability']):>8} "
              f"{number(rank['availability_low'], '%.0f') + '..' + number(rank['availability_high'], '%.0f'):>13} {by_rank:>11} "
              f"{number(rank['availability_best_base']):>7} {number(rank['slowdown_pct']):>7} {number(rank['cpu_moving_pct']):>6} {number(rank['cpu_moving_us_per_mb'], '%.0f'):>7} "
              f"{number(rank['signals_per_mb']):>7} {number(rank['switches_voluntary_per_mb']):>7} {number(rank['switches_involuntary_per_mb']):>7} "
              f"{number(rank['helper_cpu_pct']):>8} {number(rank['wait_us'], '%.0f'):>8}" + (f" {number(ratio, '%.3f'):>8}" if waiting else "") + mark)


def write_csv(path, points):
    fields = []
    for point in points:
        for rank in point["per_rank"]:
            fields += [field for field in rank if field not in fields and field not in ("rank", "host")]
    with open(path, "w", newline="", encoding="utf-8") as text:
        out = csv.writer(text)
        out.writerow(["rate", "op", "datatype", "compute", "bytes", "name", "rounds", "verified", "below_burst", "rank", "host"] + fields)
        for point in points:
            for index, rank in enumerate(point["per_rank"]):
                out.writerow([point["rate"], point["op"], point["datatype"], point["compute"], point["bytes"], point["name"], point["rounds"],
                              int(point["verified"]), int(point["below_burst"]), index, rank["host"]] +
                             ["" if rank.get(field) is None else f"{rank[field]:.6g}" for field in fields])
