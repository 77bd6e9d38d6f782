"""Joins the traces of a job's ranks (LITE_TRACE) into one file for a timeline viewer (Perfetto,
chrome://tracing), with their clocks aligned and an arrow from each send to its receive; or draws
them (--svg).

Ranks whose kernel is the same have the same clock. The clocks of others are aligned by the messages
between them: none arrives before it was sent, so messages both ways bound the offset from both
sides. What is said as "+-" is half of what lies between the bounds.
"""
import argparse
import json
import re

from ..common import die
from .clocks import align, convert_all
from .events import joined, report
from .messages import find_messages
from .picture import draw
from .ranks import load


def tag_range(text):
    match = re.fullmatch(r"(\d+):(\d+)", text)
    if not match or int(match.group(1)) > int(match.group(2)):
        raise argparse.ArgumentTypeError("LOW:HIGH is expected")
    return int(match.group(1)), int(match.group(2))


def write(path, text):
    try:
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
    except OSError as error:
        die(f"{path}: {error.strerror}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Open the result in https://ui.perfetto.dev or chrome://tracing.")
    parser.add_argument("traces", nargs="+", metavar="PREFIX|FILE",
                        help="what LITE_TRACE was set to (./lite-trace for 1), or the ranks' files")
    parser.add_argument("-o", "--output", metavar="FILE", help="the joined trace, JSON")
    parser.add_argument("--svg", metavar="FILE", help="a picture")
    parser.add_argument("--tags", type=tag_range, metavar="LOW:HIGH",
                        help="of the time in which messages with these tags are under way")
    parser.add_argument("--from", dest="begin", type=float, metavar="US", help="from this time on")
    parser.add_argument("--to", dest="end", type=float, metavar="US", help="until then")
    parser.add_argument("--estimate-all", action="store_true",
                        help="align every rank by messages, those on one host too")
    options = parser.parse_args()
    ranks = load(options.traces)
    messages = find_messages(ranks)
    clocks = align(ranks, messages, share=not options.estimate_all)
    convert_all(ranks, messages, clocks)
    if options.output:
        lines = joined(ranks, messages, clocks)
        events = lines.pop("traceEvents")
        write(options.output, json.dumps(lines)[:-1] + ',"traceEvents":[\n'
              + ",\n".join(json.dumps(event) for event in events) + "\n]}\n")
    if options.svg:
        write(options.svg, draw(options, ranks, messages))
    report(ranks, messages, clocks)
