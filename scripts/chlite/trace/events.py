"""The joined trace: tracks, slices, arrows; and what is said of it."""
import collections

from .ranks import FORMAT

SENDS, RECEIVES, PEERS, CONNECTIONS = 1000, 2000, 3000, 100000    # tracks (tid) that are added


class Lanes:
    """Puts intervals side by side that would overlap on one track."""

    def __init__(self):
        self.ends = []

    def place(self, begin, end):
        for lane, last in enumerate(self.ends):
            if last <= begin:
                self.ends[lane] = end
                return lane
        self.ends.append(end)
        return len(self.ends) - 1


def track_name(pid, tid, name, order):
    common = {"ph": "M", "pid": pid, "tid": tid}
    return [{"name": "thread_name", "args": {"name": name}, **common},
            {"name": "thread_sort_index", "args": {"sort_index": order}, **common}]


class Slice:
    def __init__(self, message, begin, end):
        self.message, self.begin, self.end, self.lane = message, begin, max(begin, end), 0


def slices_of(number, messages):
    """(sends, receives) of a rank, with their lanes."""
    sends, receives = [], []
    for m in messages.values():
        if m.source == number and m.sent is not None:
            sends.append(Slice(m, m.sent, m.send_end if m.send_end is not None else m.sent))
        if m.target == number and m.arrived is not None:
            known = [t for t in (m.receive_end, m.matched, m.arrived) if t is not None]
            receives.append(Slice(m, m.arrived, known[0]))
    for slices in (sends, receives):
        lanes = Lanes()
        for piece in sorted(slices, key=lambda s: (s.begin, s.message.sequence)):
            piece.lane = lanes.place(piece.begin, piece.end)
    return sends, receives


def message_events(number, messages):
    events = []
    sends, receives = slices_of(number, messages)
    for kind, first, slices in (("send", SENDS, sends), ("receive", RECEIVES, receives)):
        for lane in sorted({s.lane for s in slices}):
            name = f"{kind}s {lane + 1}" if lane else f"{kind}s"
            events += track_name(number, first + lane, name, first + lane)
        for s in slices:
            m = s.message
            peer = m.target if kind == "send" else m.source
            place = {"pid": number, "tid": first + s.lane}
            events.append({"name": f"{kind} {m.protocol}", "cat": kind, "ph": "X", "ts": s.begin,
                           "dur": round(s.end - s.begin, 3), **place,
                           "args": {"peer": peer, "tag": m.tag, "bytes": m.bytes,
                                    "sequence": m.sequence, "protocol": m.protocol}})
            if kind == "receive" and m.unexpected:
                until = m.matched if m.matched is not None else s.end
                events.append({"name": "unexpected", "cat": kind, "ph": "X", "ts": s.begin,
                               "dur": round(until - s.begin, 3), **place, "args": {}})
            if m.known():
                flow = {"name": m.protocol, "cat": "message",
                        "id": f"{m.source}.{m.target}.{m.sequence}", **place}
                if kind == "send":
                    events.append({"ph": "s", "ts": m.sent, **flow})
                else:
                    events.append({"ph": "f", "bp": "e", "ts": m.arrived, **flow})
    return events


def state_events(rank, end):
    """A slice for each state of a peer, and of a connection."""
    events, open_slices = [], {}

    def close(track, ts):
        before = open_slices.pop(track, None)
        if before is not None:
            events.append({**before, "dur": round(ts - before["ts"], 3)})
    for event in rank.events:
        if event["cat"] != "connection":
            continue
        arguments = event["args"]
        peer = event["name"] == "peer"
        track = PEERS + arguments["peer"] if peer else CONNECTIONS + arguments["connection"]
        name = f"rank {arguments['peer']}" if peer else f"connection {arguments['connection']}"
        close(track, event["ts"])
        events += track_name(rank.number, track, name, track)
        if arguments["to"] != "free":
            open_slices[track] = {"name": arguments["to"], "cat": "connection", "ph": "X",
                                  "ts": event["ts"], "pid": rank.number, "tid": track,
                                  "args": arguments}
    for track in list(open_slices):
        close(track, end)
    return events


def joined(ranks, messages, clocks):
    end = max((event["ts"] for rank in ranks for event in rank.events), default=0.0)
    events = []
    for rank in ranks:
        events += rank.names
        events.append({"name": "process_sort_index", "ph": "M", "pid": rank.number,
                       "args": {"sort_index": rank.number}})
        events += [event for event in rank.events if event["ph"] not in "be"]
        events += state_events(rank, end)
        events += message_events(rank.number, messages)
    events.sort(key=lambda event: (event["ph"] != "M", event.get("ts", 0), -event.get("dur", 0)))
    about = [{"rank": rank.number, "host": rank.info["host"], "events": rank.info["events"],
              "overwritten": rank.info["overwritten"],
              "clock_offset_us": round(clocks[rank.number].offset, 3),
              "clock_drift_ppm": round(clocks[rank.number].drift * 1e6, 3),
              "clock_error_us": clocks[rank.number].error,
              "clock_source": clocks[rank.number].source} for rank in ranks]
    return {"displayTimeUnit": "ns", "otherData": {"format": f"{FORMAT} of a job", "ranks": about},
            "traceEvents": events}


def report(ranks, messages, clocks):
    for rank in ranks:
        clock, lost = clocks[rank.number], rank.info["overwritten"]
        how = "" if clock.source == "the reference" else (
            f", clock {clock.offset:+.3f} us"
            + (f" and {clock.drift * 1e6:+.1f} ppm" if clock.drift else "")
            + (f" +- {clock.error:.3f} us" if clock.error is not None else ", accuracy unknown")
            + f" ({clock.source})")
        print(f"rank {rank.number} on {rank.info['host']}: {len(rank.events)} events"
              + (f", {lost} older ones overwritten" if lost else "") + how)
    whole = collections.Counter(m.protocol for m in messages.values() if m.known())
    part = sum(not m.known() for m in messages.values())
    text = ", ".join(f"{count} {name}" for name, count in sorted(whole.items())) or "none"
    print(f"messages seen at both ends: {text}" + (f"; at one end only: {part}" if part else ""))
