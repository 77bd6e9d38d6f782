"""The results as a table for people (Markdown), for CI (JUnit) and for programs (JSON)."""
import json
from xml.etree import ElementTree

KEYS = ("row", "what", "expected", "deadline", "who", "outcome", "seconds", "why", "text")


def markdown(results, about):
    """A line for each row, a column for each installation and controller."""
    who = list(dict.fromkeys(result["who"] for result in results))
    lines = [about, "", "| fault | has to | within, s | " + " | ".join(who) + " |", "|---|---|---|" + "---|" * len(who)]
    rows = {}
    for result in results:
        rows.setdefault(result["row"], {})[result["who"]] = result
    for row in rows.values():
        one = next(iter(row.values()))
        cells = [cell(row.get(name)) for name in who]
        lines.append(f"| {one['what']} | {one['expected']} | {one['deadline']:g} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def cell(result):
    if result is None:
        return "-"
    text = f"{result['outcome']}, {result['seconds']:.1f}"
    if result["why"] in ("", result["outcome"]):
        return f"**{text}**" if result["why"] else text
    return f"**{text}: {result['why']}**"


def junit(results):
    suite = ElementTree.Element("testsuite", name="faults", tests=str(len(results)),
                                failures=str(sum(bool(result["why"]) for result in results)))
    for result in results:
        case = ElementTree.SubElement(suite, "testcase", classname=result["who"], name=result["row"], time=f"{result['seconds']:.2f}")
        if result["why"]:
            failure = ElementTree.SubElement(case, "failure", message=result["why"])
            failure.text = "".join(c for c in result["text"] if c in "\t\n" or c >= " ")
    return ElementTree.tostring(suite, encoding="unicode") + "\n"


def as_json(results):
    return json.dumps({"passed": sum(not r["why"] for r in results), "failed": sum(bool(r["why"]) for r in results),
                       "results": [{key: r[key] for key in KEYS if key != "text"} for r in results]}, indent=1)
