"""The picture (--svg)."""
import collections
import html
import re

from ..common import die
from .events import slices_of

COLOURS = {"short": "#4e79a7", "eager": "#59a14f", "rendezvous": "#e15759", "self": "#9c755f",
           "message": "#59a14f"}
OTHER, SLEEP, YIELD, HANDLER, HELPER = "#b07aa1", "#d9d9d9", "#efefef", "#f28e2b", "#edc948"
UNMATCHED = "#9ad18b"    # the part of a receive before the receive was posted
LEFT, WIDTH, ROW, GAP, TOP = 190, 1100, 20, 26, 56


def bytes_text(count):
    for unit, scale in (("MB", 1 << 20), ("KB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count} B"


def tick_step(span):
    step = 1.0
    while span / step > 12:
        for factor in (2, 2.5, 2):    # 1, 2, 5, 10
            step *= factor
            if span / step <= 12:
                break
    return step


def rows_of(rank, messages):
    """[(label, [(begin, end, colour, text, title)])] of a rank, top to bottom."""
    rows, tracks = [], collections.defaultdict(list)
    names = {event["tid"]: event["args"]["name"] for event in rank.names if "tid" in event}
    stacks = collections.defaultdict(list)
    for event in rank.events:
        track, name = event["tid"], event["name"]
        if event["ph"] == "B":
            stacks[track].append(event)
        elif event["ph"] == "E" and stacks[track]:
            begin = stacks[track].pop()["ts"]
            colour = {"sleep": SLEEP, "signal handler": HANDLER, "helper": HELPER}.get(name, OTHER)
            tracks[track].append((begin, event["ts"], colour, name, name))
        elif event["ph"] == "X":
            tracks[track].append((event["ts"], event["ts"] + event["dur"], YIELD, name, name))
    for track in sorted(names):
        label = re.sub(r" \d+$| in .*", "", names[track])
        rows.append(("calls" if label == "thread" else label, tracks[track]))
    sends, receives = slices_of(rank.number, messages)
    for kind, slices in (("sends", sends), ("receives", receives)):
        for lane in sorted({s.lane for s in slices}):
            boxes = []
            for s in slices:
                if s.lane != lane:
                    continue
                m = s.message
                text = f"{m.protocol} {bytes_text(m.bytes)}"
                title = f"{kind[:-1]} {text}, tag {m.tag}, rank {m.source} to {m.target}"
                boxes.append((s.begin, s.end, COLOURS.get(m.protocol, OTHER), text, title))
                if kind == "receives" and m.unexpected and m.matched is not None:
                    boxes.append((s.begin, m.matched, UNMATCHED, "", title + ", unexpected"))
            rows.append((kind if lane == 0 else "", boxes))
    return rows


def answers(ranks, begin, end):
    """CTS arrows: [(time, from, time, to)]."""
    left, arrows = collections.defaultdict(list), []
    for rank in ranks:
        for event in rank.events:
            if event["name"] == "CTS sent":
                left[rank.number, event["args"]["peer"], event["args"]["request"]].append(event)
    for rank in ranks:
        for event in rank.events:
            if event["name"] == "CTS arrived":
                source = event["args"]["peer"]
                sent = left[source, rank.number, event["args"]["request"]]
                if sent and begin <= event["ts"] <= end:
                    arrows.append((sent.pop(0)["ts"], source, event["ts"], rank.number))
    return arrows


def window_of(options, ranks, messages):
    last = max((event["ts"] for rank in ranks for event in rank.events), default=0.0)
    begin, end = 0.0, last
    if options.tags:
        low, high = options.tags
        inside = [t for m in messages.values() if low <= m.tag <= high
                  and not m.protocol.startswith("active")
                  for t in (m.sent, m.send_end, m.arrived, m.receive_end) if t is not None]
        if not inside:
            die(f"--tags {low}:{high}: no message has such a tag")
        margin = (max(inside) - min(inside)) * 0.03
        begin, end = min(inside) - margin, max(inside) + margin
    begin = options.begin if options.begin is not None else begin
    end = options.end if options.end is not None else end
    if end <= begin:
        die("the picture's end is before its beginning")
    return begin, end


class Picture:
    def __init__(self, begin, end):
        self.begin, self.end, self.parts = begin, end, []

    def x(self, ts):
        share = (min(max(ts, self.begin), self.end) - self.begin) / (self.end - self.begin)
        return LEFT + share * (WIDTH - LEFT - 20)

    def text(self, x, y, text, extra=""):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" {extra}>{html.escape(text)}</text>')

    def box(self, y, begin, end, colour, label, title):
        if end < self.begin or begin > self.end:
            return
        left = self.x(begin)
        width = max(self.x(end) - left, 1.5)
        self.parts.append(f'<rect x="{left:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 4}" '
                          f'fill="{colour}"><title>{html.escape(title)}, '
                          f'{end - begin:.1f} us</title></rect>')
        if label and width > 6.2 * len(label):
            dark = colour in (SLEEP, YIELD, HELPER, HANDLER)
            self.text(left + 4, y + 12, label, f'fill="{"#333" if dark else "#fff"}"')

    def arrow(self, x1, y1, x2, y2, style):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
                          f'{style} marker-end="url(#head)"/>')

    def axis(self, bottom):
        step = tick_step(self.end - self.begin)
        tick = 0
        while tick * step <= self.end - self.begin:
            x = self.x(self.begin + tick * step)
            self.parts.append(f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{bottom}" '
                              'stroke="#e4e4e4"/>')
            self.text(x, TOP - 14, f"{tick * step:g}", 'text-anchor="middle"')
            tick += 1
        self.text(LEFT - 8, TOP - 14, "us", 'text-anchor="end"')

    def legend(self):
        x = LEFT
        for colour, name in ([(COLOURS[n], n) for n in ("short", "eager", "rendezvous")]
                             + [(HANDLER, "signal handler"), (HELPER, "helper thread"),
                                (SLEEP, "asleep"), (YIELD, "yields"),
                                (UNMATCHED, "unexpected")]):
            self.parts.append(f'<rect x="{x}" y="10" width="12" height="12" fill="{colour}" '
                              'stroke="#bbb" stroke-width="0.5"/>')
            self.text(x + 17, 20, name)
            x += 34 + 7 * len(name)
        self.text(x, 20, "arrows: message, dashed: CTS")


def draw(options, ranks, messages):
    begin, end = window_of(options, ranks, messages)
    picture, places, layout, y = Picture(begin, end), {}, [], TOP
    for rank in ranks:
        rows = [(label, [b for b in boxes if b[1] >= begin and b[0] <= end])
                for label, boxes in rows_of(rank, messages)]
        rows = [(label, boxes) for label, boxes in rows if boxes or label == "calls"]
        layout.append((rank, y, rows))
        for label, _ in rows:
            places.setdefault((rank.number, label or "more"), y)
            y += ROW
        y += GAP
    picture.axis(y - GAP + 4)
    for rank, top, rows in layout:
        picture.text(8, top + 12, f"rank {rank.number}", 'font-weight="bold"')
        for line, (label, boxes) in enumerate(rows):
            row = top + line * ROW
            picture.text(LEFT - 8, row + 12, label, 'text-anchor="end"')
            for first, last, colour, name, title in boxes:
                picture.box(row, first, last, colour, name, title)
    for m in messages.values():
        if m.known() and m.source != m.target and begin <= m.sent <= end:
            picture.arrow(picture.x(m.sent), places[m.source, "sends"] + ROW / 2,
                          picture.x(m.arrived), places.get((m.target, "receives"), TOP) + ROW / 2,
                          'stroke="#222" stroke-width="0.9"')
    for left, source, came, target in answers(ranks, begin, end):
        if (source, "receives") in places and (target, "sends") in places:
            picture.arrow(picture.x(left), places[source, "receives"] + ROW / 2, picture.x(came),
                          places[target, "sends"] + ROW / 2,
                          'stroke="#222" stroke-width="0.9" stroke-dasharray="4 3"')
    picture.legend()
    height = y - GAP + 14
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="11">\n'
            '<!-- made by scripts/trace-merge -->\n'
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 1L7 4L0 7z" fill="#222"/></marker></defs>\n'
            f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>\n'
            + "\n".join(picture.parts) + "\n</svg>\n")
