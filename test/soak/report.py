"""The results of a soak for people (Markdown) and for programs (JSON)."""
import json

import judge

SAMPLE_KEYS = ("rank", "t", "round", "messages", "bytes", "rss", "rss_peak", "heap", "kept", "descriptors", "threads", "sent", "slowest", "slowest_step")


def device_messages(counters):
    """Messages that a rank has sent through the device, of all protocols."""
    return sum(value for name, value in counters.items() if name.endswith("_msgs") and name != "served_msgs")


def totals(samples):
    last = [mine[-1] for mine in judge.by_rank(samples).values()]
    return {"seconds": max((s["t"] for s in last), default=0), "rounds": max((s["round"] + 1 for s in last), default=0),
            "messages": sum(s["messages"] for s in last), "bytes": sum(s["bytes"] for s in last), "checks": sum(s["checks"] for s in last),
            "device_messages": sum(device_messages(s["counters"]) for s in last), "device_bytes": sum(s["counters"].get("bytes_out", 0) for s in last),
            "spawned": max((s["spawned"] for s in last), default=0), "connected": max((s["connected"] for s in last), default=0),
            "interruptions": sum(s["interruptions"] for s in last), "samples": len(samples)}


def result_of(samples, watched, rows, about):
    found = [{key: {**sample, "sent": device_messages(sample["counters"])}[key] for key in SAMPLE_KEYS} for sample in samples]
    return {"passed": sum(not row.why for row in rows), "failed": sum(bool(row.why) for row in rows), "about": about, "totals": totals(samples),
            "rows": [{"row": row.name, "why": row.why, "found": row.text} for row in rows], "strangers": watched["strangers"],
            "quiet": watched["quiet"], "waits": watched["waits"], "notes": notes_of(watched["text"]), "samples": found}


def notes_of(text):
    """What the program left out, and why."""
    return [line.partition("soak: ")[2] for line in text.splitlines() if "soak: left out: " in line]


def as_json(result):
    return json.dumps(result, indent=1)


def megabytes(count):
    return f"{count / judge.MB:.1f}"


def whole(count):
    return f"{count:.0f}"


def clock(seconds):
    return f"{int(seconds) // 3600}:{int(seconds) // 60 % 60:02d}:{int(seconds) % 60:02d}"


def markdown(result, samples):
    sums, about = result["totals"], result["about"]
    lines = [f"{about['date']}, {about['cores']} cores, {about['mpi']}; {about['ranks']} ranks on {about['hosts']} hosts. `{about['command']}`", "",
             f"{clock(sums['seconds'])}, {sums['rounds']} rounds. Checked: {sums['messages']} messages with {sums['bytes'] / 1e9:.1f} GB. Through the "
             f"device: {sums['device_messages']} messages, {sums['device_bytes'] / 1e9:.1f} GB. {sums['spawned']} processes spawned, {sums['connected']} "
             f"connections of halves by a port, {sums['interruptions']} interruptions by a timer, {len(result['strangers'])} strangers.", ""]
    lines += [f"{note[:1].upper() + note[1:]}." for note in result["notes"]] + ([""] if result["notes"] else [])
    lines += ["| rank | what | second quarter | last quarter | slope per hour | allowed more |", "|---|---|---|---|---|---|"]
    for (rank, metric), found in judge.figures(samples).items():
        memory = metric in ("rss", "used", "heap")
        text = megabytes if memory else whole
        unit = ", MB" if memory else ""
        cells = ["too few samples", "", "", ""] if found is None else [text(found[0]), text(found[1]), text(found[2]), text(judge.BOUNDS[metric].of(found[0]))]
        lines.append(f"| {rank} | {judge.WHAT[metric]}{unit} | " + " | ".join(cells) + " |")
    failed = [row for row in result["rows"] if row["why"]]
    lines += ["", f"{result['passed']} passed, {result['failed']} failed" + (":" if failed else ".")]
    lines += ([""] if failed else []) + [f"- **{row['row']}**: {row['why']}" for row in failed]
    return "\n".join(lines) + "\n"
