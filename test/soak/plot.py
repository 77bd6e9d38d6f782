#!/usr/bin/env python3
"""Draws a soak: memory, descriptors and messages per second of each rank over time, as SVG.
test/soak/plot.py --from RESULT FILE draws what `test/soak/run --json` has printed."""
import json
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(os.path.dirname(HERE)), "scripts")]

import judge  # noqa: E402
from chlite.common import die, output_of  # noqa: E402
from chlite.drawing import drawing_library  # noqa: E402


def library_is_there():
    """Of this interpreter or of Debian's: asked before the hours, not after them."""
    return any(output_of([python, "-c", "import matplotlib; print('there is one')"]).strip() == "there is one" for python in (sys.executable, "/usr/bin/python3"))


def rates(mine):
    """[(t, messages per second)] between a sample and the next."""
    return [(one["t"], (other["sent"] - one["sent"]) / (other["t"] - one["t"])) for one, other in zip(mine, mine[1:]) if other["t"] > one["t"]]


def unit_of(seconds):
    return (3600, "hours") if seconds > 5400 else (60, "minutes") if seconds > 180 else (1, "seconds")


PANELS = (("resident memory, MB", lambda mine: [(s["t"], s["rss"] / judge.MB) for s in mine]),
          ("resident memory but for what malloc keeps, MB", lambda mine: [(s["t"], judge.value_of(s, "used") / judge.MB) for s in mine if s["kept"] >= 0]),
          ("open descriptors", lambda mine: [(s["t"], s["descriptors"]) for s in mine]),
          ("messages per second through the device", rates))


def draw(result, path):
    pyplot = drawing_library(result, __file__, [path])
    if pyplot is None:
        return
    ranks = judge.by_rank(result["samples"])
    scale, unit = unit_of(result["totals"]["seconds"])
    figure, axes = pyplot.subplots(2, 2, figsize=(11, 7), squeeze=False)
    for axis, (title, values) in zip([axis for row in axes for axis in row], PANELS):
        highest = 0
        for rank, mine in ranks.items():
            points = values(mine)
            axis.plot([t / scale for t, _ in points], [value for _, value in points], linewidth=1, color=f"C{rank % 10}", label=f"rank {rank}")
            highest = max([highest] + [value for _, value in points])
        # from 0, or a bit of noise would look like growth
        axis.set_ylim(0, 1.15 * highest or 1)
        axis.set_title(title)
        axis.set_xlabel(unit)
        axis.grid(True, alpha=0.25)
    if ranks:
        axes[0][0].legend(fontsize=8, loc="lower right")
    about, sums = result["about"], result["totals"]
    figure.suptitle(f"{about['ranks']} ranks on {about['hosts']} hosts, {about['mpi']}, {about['date']}: {sums['rounds']} rounds, {sums['bytes'] / 1e9:.1f} GB checked")
    figure.tight_layout()
    pyplot.rcParams["svg.fonttype"] = "none"
    figure.savefig(path, format="svg", metadata={"Date": None})
    pyplot.close(figure)


def main(words):
    if len(words) != 3 or words[0] != "--from":
        die("want --from RESULT FILE")
    with open(words[1], encoding="utf-8") as text:
        result = json.loads(text.read().rpartition("}")[0] + "}")  # the closing line may be behind it
    try:
        draw(result, words[2])
    except LookupError as error:
        die(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
