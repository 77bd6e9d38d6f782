"""The picture."""
import os

from ..common import BENCH, die
from ..drawing import drawing_library
from ..sizes import size_text
from .summary import worst_rank

ENTRY = os.path.join(BENCH, "overlap")


def plot(path, result, points):
    if not path.endswith((".png", ".svg")):
        die(f"--plot {path}: want a name that ends in .png or .svg")
    try:
        pyplot = drawing_library(result, ENTRY, ["--only-plot", "--plot", path])
    except LookupError as error:
        die(f"--plot: {error}")
    if pyplot is None:
        return
    panels = []
    for point in points:
        head = (point["rate"], point["op"], point["datatype"], point["compute"])
        if head not in panels:
            panels.append(head)
    if not panels:
        die("nothing to plot")
    columns = min(3, len(panels))
    rows = (len(panels) + columns - 1) // columns
    low_end = min([rank["availability_low"] for rank in map(worst_rank, points) if rank["availability"] is not None], default=0.0)
    shown = {}
    figure, axes = pyplot.subplots(rows, columns, figsize=(6.2 * columns, 4.2 * rows), squeeze=False, sharey=True)
    names = result["about"]["names"]
    for index, head in enumerate(panels):
        axis = axes[index // columns][index % columns]
        for color, name in enumerate(names):
            line = [point for point in points if (point["rate"], point["op"], point["datatype"], point["compute"]) == head and point["name"] == name]
            line = [(point, worst_rank(point)) for point in line]
            line = [(point["bytes"], rank) for point, rank in line if rank["availability"] is not None]
            if not line:
                continue
            middles = [rank["availability"] for _, rank in line]
            low = [max(0.0, rank["availability"] - rank["availability_low"]) for _, rank in line]
            high = [max(0.0, rank["availability_high"] - rank["availability"]) for _, rank in line]
            shown[name] = axis.errorbar([count for count, _ in line], middles, yerr=[low, high], marker="o", markersize=4, capsize=2, label=name, color=f"C{color % 10}")
        rate, op, datatype, compute = head
        burst = result["about"]["burst"][rate]
        if burst and result["about"]["drain"][rate] < burst:
            axis.axvspan(axis.get_xlim()[0], burst, color="0.92", zorder=0)
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter(lambda value, _: size_text(int(round(value))))
        axis.set_ylim(max(-100.0, min(-5.0, low_end - 5.0)), 105)
        axis.grid(True, alpha=0.3)
        axis.set_title(f"{op}, {datatype}, compute: {compute}, rate {rate}")
        axis.set_xlabel("bytes")
        if index % columns == 0:
            axis.set_ylabel("availability of the processor, %")
    for index in range(len(panels), rows * columns):
        axes[index // columns][index % columns].set_visible(False)
    if shown:
        axes[0][0].legend([shown[name] for name in names if name in shown], [name for name in names if name in shown], fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
