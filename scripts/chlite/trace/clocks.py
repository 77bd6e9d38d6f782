"""Aligns the ranks' clocks by the messages between them."""
import collections

DRIFT_MAX = 500e-6    # of one clock against another: beyond what NTP corrects


class Bounds:
    """What the messages between two clocks say of the offset: that which is added to the second
    one's times to have them in the first one's. Of each part of the trace only the closest are
    kept."""

    PARTS = 256

    def __init__(self):
        self.lower, self.upper = [], []    # (time of the second clock, offset)

    def add(self, message, first_sends):
        if first_sends:
            self.lower.append((message.arrived, message.sent - message.arrived))
        else:
            self.upper.append((message.sent, message.arrived - message.sent))

    @classmethod
    def thin(cls, points, best, begin, end):
        kept = {}
        for time, offset in points:
            part = int((time - begin) / (end - begin + 1) * cls.PARTS)
            if part not in kept or best(offset, kept[part][1]) == offset:
                kept[part] = (time, offset)
        return list(kept.values())

    def fit(self):
        """(offset at `time`, drift, time, error); error None: bounded from one side or none."""
        if not self.lower or not self.upper:
            offset = max(o for _, o in self.lower) if self.lower else min(o for _, o in self.upper)
            return offset, 0.0, 0.0, None
        times = [time for time, _ in self.lower + self.upper]
        begin, end = min(times), max(times)
        lower = self.thin(self.lower, max, begin, end)
        upper = self.thin(self.upper, min, begin, end)
        middle = (begin + end) / 2

        def between(drift):
            return (max(o - drift * (t - middle) for t, o in lower),
                    min(o - drift * (t - middle) for t, o in upper))

        def room(drift):
            low, high = between(drift)
            return high - low
        drift = 0.0
        if room(0.0) < 0:    # no constant offset does: one clock is faster; room() is concave
            low, high = -DRIFT_MAX, DRIFT_MAX
            for _ in range(80):
                third = (high - low) / 3
                if room(low + third) < room(high - third):
                    low += third
                else:
                    high -= third
            drift = (low + high) / 2
        low, high = between(drift)
        return (low + high) / 2, drift, middle, abs(high - low) / 2


class Clock:
    """How times of one clock become those of the job: those of the clock of the lowest rank."""

    def __init__(self, offset=0.0, drift=0.0, time=0.0, error=0.0, source="the reference"):
        self.offset, self.drift, self.time = offset, drift, time
        self.error, self.source = error, source

    def convert(self, ts):
        return ts + self.offset + self.drift * (ts - self.time)


def align(ranks, messages, share=True):
    """By rank number. `share`: ranks on one kernel have one clock."""
    name_of = {rank.number: rank.clock if share else str(rank.number) for rank in ranks}
    pairs, counts = {}, collections.Counter()
    for message in messages.values():
        if not message.known() or name_of[message.source] == name_of[message.target]:
            continue
        ends = name_of[message.source], name_of[message.target]
        counts[ends] += 1
        for first, second in (ends, ends[::-1]):
            bounds = pairs.setdefault((first, second), Bounds())
            bounds.add(message, first == ends[0])
    first = name_of[ranks[0].number]
    clocks = {first: Clock()}
    fits = {pair: bounds.fit() for pair, bounds in pairs.items()}
    while True:    # the one that is best known from those that are known
        reach = [((fit[3] is None, (fit[3] or 0) + (clocks[a].error or 0)), a, b, fit)
                 for (a, b), fit in fits.items() if a in clocks and b not in clocks]
        if not reach:
            break
        _, a, b, (offset, drift, time, error) = min(reach, key=lambda entry: entry[:3])
        base = clocks[a]
        unknown = error is None or base.error is None
        both = f"{counts[a, b]} and {counts[b, a]} messages"
        clocks[b] = Clock(base.convert(time + offset) - time, drift, time,
                          None if unknown else error + base.error,
                          both if error is not None else f"{both}: one way only")
    walls = {name_of[rank.number]: rank.info["start_wall_us"] - rank.info["start_us"]
             for rank in reversed(ranks)}
    for name, wall in walls.items():
        if name not in clocks:
            clocks[name] = Clock(wall - walls[first], error=None,
                                 source="the hosts' wall clocks, for want of messages")
    return {rank.number: clocks[name_of[rank.number]] for rank in ranks}


def convert_all(ranks, messages, clocks):
    """All times in us from the first event of the job."""
    start = min((clocks[rank.number].convert(event["ts"])
                 for rank in ranks for event in rank.events[:1]), default=0.0)

    def convert(number, ts):
        return None if ts is None else round(clocks[number].convert(ts) - start, 3)
    for rank in ranks:
        for event in rank.events:
            event["ts"] = convert(rank.number, event["ts"])
    for m in messages.values():
        m.sent, m.send_end = convert(m.source, m.sent), convert(m.source, m.send_end)
        m.arrived, m.matched = convert(m.target, m.arrived), convert(m.target, m.matched)
        m.receive_end = convert(m.target, m.receive_end)
