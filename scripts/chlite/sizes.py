"""Sizes as people write them (64K), and what a shaped link lets through at once."""
import re

from .common import die

BURSTS = {"1gbit": 128 << 10, "none": 0}    # of scripts/net-lab; any other rate: OTHER_BURST
OTHER_BURST = 1280 << 10


def size_of(text):
    match = re.fullmatch(r"(\d+)([KMG]?)", text.strip().upper())
    if not match or int(match.group(1)) == 0:
        die(f"'{text}' is no size: want for example 64K, 4M or 1000")
    return int(match.group(1)) << {"": 0, "K": 10, "M": 20, "G": 30}[match.group(2)]


def size_text(count):
    for shift, unit in ((20, "M"), (10, "K")):
        if count >= 1 << shift and count % (1 << shift) == 0:
            return f"{count >> shift}{unit}"
    return str(count)


def burst_of(rate):
    return BURSTS.get(rate, OTHER_BURST)
