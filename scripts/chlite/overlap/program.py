"""From the command line to the result."""
import json

from ..common import die, say
from ..running import answer_orders, end_by_exit
from .checks import judge
from .measure import inside, measure_all
from .options import arguments
from .plots import plot
from .report import show, write_csv
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
        except (OSError, ValueError) as error:
            die(f"--from {options.source}: {error}")
    else:
        try:
            result = measure_all(options)
        except KeyboardInterrupt:
            say("overlap: interrupted")
            return 130
    points = summarize(result)
    if options.only_plot:
        plot(options.plot, result, points)
        return 0
    whole = {**result, "points": points}
    if options.save:
        with open(options.save, "w", encoding="utf-8") as text:
            json.dump(whole, text)
    if options.json:
        print(json.dumps(whole))
    else:
        show(result, points)
    if options.csv:
        write_csv(options.csv, points)
    if options.plot:
        plot(options.plot, result, points)
    broken = judge(options, points)
    wrong = sum(not point["verified"] for point in points)
    for what in result["failures"]:
        say(f"overlap: failed: {what}")
    if wrong:
        say(f"overlap: wrong data in {wrong} points")
    return 1 if broken or wrong or result["failures"] else 0
