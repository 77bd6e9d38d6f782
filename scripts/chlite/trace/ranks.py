"""Reads the ranks' files."""
import collections
import glob
import json
import os
import re

from ..common import die, say

FORMAT = "lite-trace 1"


class Rank:
    """One rank's file."""

    def __init__(self, path):
        try:
            with open(path, encoding="utf-8") as text:
                whole = json.load(text)
            self.info = whole["otherData"]
            if self.info["format"] != FORMAT:
                die(f"{path}: its format is {self.info['format']}, not {FORMAT}")
            events = whole["traceEvents"]
            self.number, self.size = self.info["rank"], self.info["size"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            die(f"{path}: not the trace of a rank ({error or type(error).__name__})")
        self.names = [event for event in events if event["ph"] == "M"]
        self.events = [event for event in events if event["ph"] != "M"]
        self.clock = self.info["clock"]


def files_of(names):
    """A name is a file, or the prefix that LITE_TRACE was set to."""
    found = []
    for name in names:
        if os.path.isfile(name):
            found.append(name)
            continue
        ranks = [path for path in glob.glob(glob.escape(name) + ".*.json")
                 if re.search(r"\.\d+\.json$", path)
                 and path.count(".") == name.count(".") + 2]
        if not ranks:
            die(f"{name}: no such file, and no {name}.RANK.json")
        found += ranks
    return found


def load(names):
    ranks = sorted((Rank(path) for path in files_of(names)), key=lambda rank: rank.number)
    numbers = [rank.number for rank in ranks]
    twice = [number for number, count in collections.Counter(numbers).items() if count > 1]
    if twice:
        die(f"more than one file is of rank {twice[0]}")
    if len({rank.size for rank in ranks}) != 1:
        die("the files are not of one job: " + ", ".join(
            f"rank {rank.number} of {rank.size}" for rank in ranks))
    missing = sorted(set(range(ranks[0].size)) - set(numbers))
    if missing:
        say(f"trace-merge: {len(missing)} of {ranks[0].size} ranks are missing, the first is {missing[0]}")
    return ranks
