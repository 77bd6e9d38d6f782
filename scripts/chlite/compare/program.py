"""From the command line to the result."""
import json
import os
import subprocess

from ..common import die, say
from ..running import answer_orders, end_by_exit
from .measure import inside, measure_all
from .options import arguments
from .plots import draw
from .report import table
from .summary import summarize


def main():
    options = arguments()
    end_by_exit()
    if options.inside:
        answer_orders(options.inside, inside)
        return 0
    if options.source:
        try:
            with open(options.source, encoding="utf-8") as text:
                result = json.load(text)
            result = {key: result[key] for key in ("about", "samples", "failures")}
        except (OSError, ValueError, KeyError, TypeError) as error:
            die(f"--from {options.source}: no result of scripts/compare: {error}")
    else:
        # it may take an hour
        try:
            os.makedirs(options.out, exist_ok=True)
        except OSError as error:
            die(f"--out {options.out}: {error}")
        if not os.access(options.out, os.W_OK):
            die(f"--out {options.out}: cannot be written to")
        try:
            result = measure_all(options)
        except KeyboardInterrupt:
            say("compare: interrupted")
            return 130
        except subprocess.SubprocessError as error:
            die(str(error))
    points = summarize(result)
    try:
        os.makedirs(options.out, exist_ok=True)
        if options.only_plots:
            try:
                draw(result, points, options.out)
            except LookupError as error:
                die(str(error))
            return 0
        whole = {**result, "points": points}
        lines = table(result, points)
        print(json.dumps(whole) if options.json else "\n".join(lines), flush=True)
        if not options.source:
            with open(os.path.join(options.out, "compare.json"), "w", encoding="utf-8") as text:
                json.dump(whole, text)
        with open(os.path.join(options.out, "compare.txt"), "w", encoding="utf-8") as text:
            text.write("\n".join(lines) + "\n")
        if not options.no_plots:
            try:
                for path in draw(result, points, options.out):
                    say(f"compare: drawn: {path}")
            except LookupError as error:
                say(f"compare: no plots: {error}")
    except OSError as error:
        die(f"--out {options.out}: {error}")
    return 1 if result["failures"] or not points else 0
