"""The pictures."""
import math
import os

from ..common import SCRIPTS
from ..drawing import drawing_library
from ..sizes import burst_of, size_text
from .patterns import APPLICATIONS

ENTRY = os.path.join(SCRIPTS, "compare")

# pattern, metric, title, scale of the ordinate
PLOTTED = (("pingpong", "us", "half round trip, us", "log"), ("pingpong", "gbps", "ping-pong, Gb/s", "log"), ("stream", "gbps", "streaming, Gb/s", "log"),
           ("bidirectional", "gbps", "bidirectional, Gb/s", "log"), ("overlap", "availability", "availability of the processor, %", "linear"),
           ("netpipe", "gbps", "NetPIPE, Gb/s", "linear"))


def draw(result, points, directory):
    """One picture per rate, as SVG and PNG; returns their names."""
    pyplot = drawing_library(result, ENTRY, ["--only-plots", "--out", directory])
    about = result["about"]
    names = [name for name in about["names"] if any(point["name"] == name for point in points)]
    colors = {name: f"C{index % 10}" for index, name in enumerate(names)}
    made = []
    for rate in about["rates"]:
        stem = os.path.join(directory, f"compare-{rate}")
        made += [f"{stem}.svg", f"{stem}.png"]
        if pyplot is None:
            continue
        mine = [point for point in points if point["rate"] == rate]
        bars = [pattern for pattern in ("rate", "many_to_one", "ring", "pairs", "ring8") if any(point["pattern"] == pattern for point in mine)]
        panels = [panel for panel in PLOTTED if any(point["pattern"] == panel[0] for point in mine)]
        count = len(panels) + (1 if bars else 0)
        if count == 0 and not any(point["pattern"] in APPLICATIONS for point in mine):
            continue
        if count == 0:    # applications are compared by themselves
            figure = draw_applications(pyplot, [point for point in mine if point["pattern"] in APPLICATIONS], names, colors)
            save(pyplot, figure, stem, f"rate {rate}, {about['rounds']} rounds, {about['date']}")
            continue
        columns = min(3, count)
        rows = (count + columns - 1) // columns
        figure, axes = pyplot.subplots(rows, columns, figsize=(6.2 * columns, 4.4 * rows), squeeze=False)
        flat = [axis for row in axes for axis in row]
        for axis in flat[count:]:
            axis.set_visible(False)
        for axis, (pattern, metric, label, scale) in zip(flat, panels):
            axis.set_yscale(scale)
            draw_curves(axis, [point for point in mine if point["pattern"] == pattern], metric, names, colors)
            axis.set_title(label)
            draw_marks(axis, about, rate if pattern in ("pingpong", "netpipe") else "none")
            handles, labels = axis.get_legend_handles_labels()
            if handles:
                axis.legend(handles, labels, fontsize=7)
        if bars:
            draw_bars(flat[count - 1], mine, bars, names, colors)
        save(pyplot, figure, stem, f"rate {rate}, {about['rounds']} rounds, {about['date']}")
    return [path for path in made if os.path.exists(path)]


def save(pyplot, figure, stem, title):
    figure.suptitle(title)
    figure.tight_layout()
    pyplot.rcParams["svg.fonttype"] = "none"    # text as text: a fifth of the size
    figure.savefig(f"{stem}.svg", metadata={"Date": None})
    figure.savefig(f"{stem}.png", dpi=110)
    pyplot.close(figure)


def draw_applications(pyplot, points, names, colors):
    """Time to solution as a share of the first installation's, a row for each program and size."""
    rows = list(dict.fromkeys((point["pattern"], point["bytes"]) for point in points))
    figure, axis = pyplot.subplots(figsize=(7.5, 1.5 + 0.36 * len(rows)))
    height = 0.8 / max(1, len(names))
    for index, row in enumerate(rows):
        times = {point["name"]: point["us"] for point in points if (point["pattern"], point["bytes"]) == row and point.get("us") and point["us"]["median"]}
        first = times.get(names[0])
        if first is None:
            continue
        for place, name in enumerate(names):
            if name in times:
                low, middle, high = (times[name][which] / first["median"] for which in ("low", "median", "high"))
                axis.barh(index + (place - (len(names) - 1) / 2) * height, middle, height, color=colors[name], label=name if index == 0 else None,
                          xerr=[[middle - low], [high - middle]], error_kw={"linewidth": 0.6})
    axis.set_yticks(range(len(rows)))
    axis.set_yticklabels([f"{pattern} {size_text(size)}" for pattern, size in rows], fontsize=7)
    axis.invert_yaxis()
    axis.axvline(1.0, color="0.3", linewidth=0.8)
    axis.set_xlim(left=0.5)
    axis.set_xlabel(f"time to solution, {names[0]} = 1")
    axis.grid(True, axis="x", alpha=0.25)
    axis.legend(fontsize=7, loc="lower right")
    return figure


def draw_curves(axis, points, metric, names, colors):
    for name in names:
        line = [(point["bytes"], point[metric]) for point in points if point["name"] == name and point.get(metric) and point[metric]["median"] is not None]
        if line:
            middles = [value["median"] for _, value in line]
            spread = [[value["median"] - value["low"] for _, value in line], [value["high"] - value["median"] for _, value in line]]
            axis.errorbar([count for count, _ in line], middles, yerr=spread, marker="o", markersize=3, capsize=2, linewidth=1.2, label=name, color=colors[name])
    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_formatter(lambda value, _: size_text(int(round(value))))
    axis.set_xlabel("bytes")
    axis.grid(True, which="both", alpha=0.25)


def draw_marks(axis, about, rate):
    """The device's cutoffs; and what a shaper lets through at once."""
    seen = {}
    for name in about["names"]:
        for cutoff, count in about["variants"][name]["cutoffs"].items():
            seen.setdefault((cutoff, count), name)
    for cutoff, count in seen:
        axis.axvline(count, color="0.5", linestyle="--", linewidth=0.8)
        axis.annotate(cutoff, (count, 0.02), xycoords=("data", "axes fraction"), rotation=90, fontsize=6, color="0.4", ha="right", va="bottom")
    burst = burst_of(rate) if about["where"].startswith("test hosts") else 0
    if burst:
        axis.axvspan(axis.get_xlim()[0], burst, color="0.93", zorder=0)


def draw_bars(axis, points, patterns, names, colors):
    width = 0.8 / max(1, len(names))
    labels = []
    for index, pattern in enumerate(patterns):
        smallest = min(point["bytes"] for point in points if point["pattern"] == pattern)
        labels.append(f"{pattern}\n{size_text(smallest)}")
        for place, name in enumerate(names):
            value = next((point.get("messages") for point in points if (point["pattern"], point["name"], point["bytes"]) == (pattern, name, smallest)), None)
            if value and value["median"]:
                axis.bar(index + (place - (len(names) - 1) / 2) * width, value["median"], width, color=colors[name])
    axis.set_yscale("log")
    axis.set_ylim(bottom=10 ** math.floor(math.log10(max(1.0, axis.dataLim.y1 / 1000))))
    axis.set_xticks(range(len(patterns)))
    axis.set_xticklabels(labels)
    axis.set_title("messages per second")
    axis.grid(True, axis="y", alpha=0.25)
