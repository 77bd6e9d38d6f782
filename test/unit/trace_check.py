#!/usr/bin/env python3
"""Judges the traces of a job (test/unit/trace_job_test.cpp, test/lab/trace.sh): joins them by
scripts/trace-merge and prints "ok SENTENCE" or "not-ok SENTENCE" for each property. The job has two
ranks; what its messages are is in tables below, by tag."""
import argparse
import collections
import glob
import json
import os
import re
import subprocess
import sys
import xml.dom.minidom

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
# tag: (protocol, from, to)
PLAN = {101: ("short", 0, 1), 102: ("eager", 0, 1), 103: ("rendezvous", 0, 1),
        104: ("short", 1, 0), 105: ("short", 0, 1), 106: ("self", 0, 0)}
UNEXPECTED, COMPUTING, SYNCHRONOUS, SELF = 102, 103, 105, 106
ONE_SIDED = ("put", "put by transfer", "get", "get by transfer")
NEXT = {  # the legal changes, as engine.cpp has them
    "connection": {"free": {"connecting", "await hello"},
                   "connecting": {"free", "await challenge"},
                   "await challenge": {"free", "await accept"},
                   "await accept": {"free", "up"}, "await hello": {"free", "await proof"},
                   "await proof": {"free", "up"}, "up": {"free"}},
    "peer": {"idle": {"making", "gone", "lost"}, "making": {"up", "gone", "lost"},
             "up": {"gone", "lost"}, "gone": {"idle"}, "lost": {"idle"}}}
EPS = 0.002    # us: times are written with three digits

failed = 0


def that(good, sentence, *details):
    global failed    # pylint: disable=global-statement
    print(("ok " if good else "not-ok ") + sentence)
    if not good:
        failed += 1
        for detail in details:
            print(f"#   {detail}"[:600])


def load(path):
    with open(path, encoding="utf-8") as text:
        return json.load(text)


def merge(prefix, out, *arguments):
    done = subprocess.run([sys.executable, os.path.join(TOP, "scripts", "trace-merge"), prefix,
                           "-o", out, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print("not-ok scripts/trace-merge joins the files")
        print("#   " + (done.stdout + done.stderr).replace("\n", "\n#   "))
        sys.exit(1)
    return load(out), done.stdout


def check_files(files):
    """Of each rank's own file: order, nesting, states. Returns its events."""
    ranks = {}
    for path in files:
        whole = load(path)
        events = [e for e in whole["traceEvents"] if e["ph"] != "M"]
        ranks[whole["otherData"]["rank"]] = events
        who = f"rank {whole['otherData']['rank']}"
        that(events and whole["otherData"]["overwritten"] == 0
             and whole["otherData"]["events"] >= len(events), f"{who}: nothing is overwritten")
        times = [e["ts"] for e in events]
        that(times == sorted(times), f"{who}: times are monotone")
        depth, wrong = collections.Counter(), []
        for e in events:
            depth[e["tid"]] += {"B": 1, "E": -1}.get(e["ph"], 0)
            if depth[e["tid"]] < 0:
                wrong.append(e)
        that(not wrong and not any(depth.values()), f"{who}: what begins ends", depth, wrong)
        now, wrong, changes = {}, [], 0
        for e in events:
            if e["cat"] != "connection":
                continue
            a = e["args"]
            key = e["name"], a["peer"] if e["name"] == "peer" else a["connection"]
            first = {"connection": "free", "peer": "idle"}[e["name"]]
            if now.get(key, first) != a["from"] or a["to"] not in NEXT[e["name"]][a["from"]]:
                wrong.append(e)
            now[key] = a["to"]
            changes += 1
        that(not wrong and changes >= 4, f"{who}: {changes} changes of state, all legal", *wrong)
    return ranks


def named(events, name, **args):
    return [e for e in events if e["name"] == name
            and all(e["args"].get(key) == value for key, value in args.items())]


def in_order(*parts):
    """The first of each list of events exists, and they follow one another."""
    return all(parts) and all(a[0]["ts"] <= b[0]["ts"] for a, b in zip(parts, parts[1:]))


def check_plan(ranks, controller):
    for tag, (protocol, source, target) in PLAN.items():
        begin, end = (named(ranks[source], f"send {protocol}", tag=tag, peer=target)
                      + [None, None])[:2]
        gets, got = (named(ranks[target], f"receive {protocol}", tag=tag, peer=source)
                     + [None, None])[:2]
        good = (begin and end and gets and got and (begin["ph"], gets["ph"]) == ("b", "b")
                and begin["args"]["sequence"] == gets["args"]["sequence"]
                and begin["args"]["bytes"] == gets["args"]["bytes"] == got["args"]["bytes"])
        that(good, f"tag {tag}: {protocol}, seen at both ends", begin, gets, got)
        found = bool(named(ranks[target], f"unexpected {protocol}", tag=tag))
        that(found == (tag == UNEXPECTED) or tag in (SYNCHRONOUS, SELF),
             f"tag {tag}: {'unexpected' if tag == UNEXPECTED else 'its receive was posted'}")
    send = named(ranks[0], "send rendezvous", tag=COMPUTING)
    receive = named(ranks[1], "receive rendezvous", tag=COMPUTING)
    that(in_order(named(ranks[1], "posted", tag=COMPUTING), receive[:1],
                  named(ranks[1], "CTS sent", peer=0, request=send[0]["args"]["request"]),
                  receive[1:]), "rendezvous: posted, matched, CTS sent, received")
    that(in_order(send[:1], named(ranks[0], "CTS arrived", request=send[0]["args"]["request"]),
                  send[1:]), "rendezvous: sent, CTS arrived, done")
    sync = named(ranks[0], "send short", tag=SYNCHRONOUS)
    that(in_order(sync[:1], named(ranks[0], "ack arrived", request=sync[0]["args"]["request"]),
                  sync[1:]), "synchronous send: sent, ack arrived, done")
    tracks = {"sigio": "signal handler", "thread": "helper", "sync": None}[controller]
    inside = None
    for name in ("signal handler", "helper"):
        slices, stack = [], []
        for e in named(ranks[1], name):
            if e["ph"] == "B":
                stack.append(e)
            elif stack:
                slices.append((e["tid"], stack.pop()["ts"], e["ts"]))
        reads = sum(e["args"]["bytes"] for e in named(ranks[1], "read") for s in slices
                    if e["tid"] == s[0] and s[1] <= e["ts"] <= s[2]
                    and receive[0]["ts"] <= e["ts"] <= receive[1]["ts"])
        if any(r["tid"] == s[0] and s[1] <= r["ts"] <= s[2] for s in slices for r in receive[:1]):
            inside = name
            that(reads > receive[0]["args"]["bytes"] // 2,
                 f"rendezvous: the {name} reads {reads} bytes of it")
    that(inside == tracks, f"rendezvous, received while computing ({controller}): "
         f"matched by {inside or 'the application in a call'}")


def check_rest(ranks, active):
    seen = collections.Counter(e["args"]["protocol"] for events in ranks.values() for e in events
                               if e["name"].startswith("peer's request"))
    wanted = ONE_SIDED + active
    that(all(seen[name] for name in wanted), f"{', '.join(wanted)}: arrived", dict(seen))
    for rank, events in ranks.items():
        kinds = {e["name"] for e in events}
        wanted = {"read", "write", "posted", "credit granted", "credit returned", "ack sent",
                  "ack arrived", "receive dropped"}
        that(wanted <= kinds, f"rank {rank}: reads, writes, credit, acks and a cancelled receive",
             wanted - kinds)


def check_messages(ranks):
    """All at both ends, with as many ends as beginnings."""
    ends = collections.defaultdict(list)
    for rank, events in ranks.items():
        for e in events:
            sequence, cat = e["args"].get("sequence"), e["cat"]
            if cat in ("send", "receive"):
                peer = e["args"]["peer"]
                key = (rank, peer) if cat == "send" else (peer, rank)
                ends[(*key, sequence)].append(cat[0] + e["ph"])
            elif e["name"].startswith("peer's request"):
                ends[(e["args"]["peer"], rank, sequence)].append("p")
    complete = (["rb", "re", "sb", "se"], ["p", "sb", "se"])
    wrong = [(key, what) for key, what in ends.items() if sorted(what) not in complete]
    that(not wrong and len(ends) > 8,
         f"{len(ends)} messages: each begins and ends once at both ends", *wrong)
    numbers = collections.defaultdict(list)
    for source, target, sequence in ends:
        numbers[source, target].append(sequence)
    that(all(sorted(n) == list(range(1, len(n) + 1)) for n in numbers.values()),
         "their numbers have no gap")


def check_arrows(whole, how, count=None):
    error = {r["rank"]: r["clock_error_us"] or 0.0 for r in whole["otherData"]["ranks"]}
    ends = collections.defaultdict(dict)
    for e in whole["traceEvents"]:
        if e["ph"] in "sf":
            ends[e["id"]][e["ph"]] = e
    lone = [key for key, both in ends.items() if len(both) != 2]
    back = [(b["s"], b["f"]) for b in ends.values() if len(b) == 2 and
            b["f"]["ts"] < b["s"]["ts"] - error[b["s"]["pid"]] - error[b["f"]["pid"]] - EPS]
    that(not lone and not back and len(ends) >= len(PLAN) and count in (None, len(ends)),
         f"{how}: {len(ends)} arrows, none goes backwards", lone, *back)
    return len(ends)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prefix", help="of the traces")
    parser.add_argument("controller", choices=("sigio", "thread", "sync"))
    parser.add_argument("--no-self", action="store_true",
                        help="the host keeps messages to oneself from the device")
    parser.add_argument("--active", default="active short", help="protocols of active messages")
    options = parser.parse_args()
    if options.no_self:
        del PLAN[SELF]
    files = sorted(path for path in glob.glob(options.prefix + ".*.json")
                   if re.search(r"\.\d+\.json$", path))
    that(len(files) == 2, "one file per rank", files)
    ranks = check_files(files)
    check_plan(ranks, options.controller)
    check_rest(ranks, tuple(options.active.split(",")))
    check_messages(ranks)
    picture = options.prefix + ".svg"
    whole, _ = merge(options.prefix, options.prefix + ".job.json", "--svg", picture,
                     "--tags", "101:104")
    count = check_arrows(whole, "clocks shared")
    estimated, _ = merge(options.prefix, options.prefix + ".estimated.json", "--estimate-all")
    check_arrows(estimated, "clocks estimated", count)
    about = estimated["otherData"]["ranks"][1]
    that(about["clock_error_us"] is not None
         and abs(about["clock_offset_us"]) <= about["clock_error_us"] + EPS,
         "a clock's offset that is known to be 0 is estimated within what is said of it", about)
    with open(picture, encoding="utf-8") as text:
        drawn = text.read()
    xml.dom.minidom.parseString(drawn)
    that(all(re.search(rf"tag {tag}, rank", drawn) for tag in (101, 102, 103, 104)),
         "the picture has the messages")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
