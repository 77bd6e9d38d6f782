"""What became of a job, by its exit code, its output and the time that it took; and whether that is
what the row of the table wants."""
import re
from dataclasses import dataclass

RIGHT = re.compile(r"^(?:victim|foreign|child): [1-9]\d* checks, 0 failed$", re.M)
WRONG = re.compile(r"^(?:victim|foreign|child): \d+ checks, [1-9]\d* failed$|: (byte \d+ is wrong|sum \d+ is )", re.M)
ERROR = re.compile(r"^error: MPI_\w+: ", re.M)
CRASH = re.compile(r"\(signal (4|7|8|11)\)|Segmentation fault|Assertion")


@dataclass
class End:
    """Of one job: whether it ended by itself, its exit code, what it printed (both streams), and
    the seconds from the fault, or from the order to end, to its end."""

    hung: bool
    code: int
    text: str
    seconds: float
    failed: str = ""  # the act, or the lab
    beside: str = ""  # what the job that died has printed


def names(text, rank, host):
    """Whether an error of MPI, or a message of the device, names the rank and its host."""
    return re.search(rf"\brank {rank}\b.*\b{host}\b", text) is not None


def outcome(end):
    if end.failed:
        return "not done"
    if WRONG.search(end.text):
        return "wrong data"
    if end.hung:
        return "hung"
    if end.code == 0 and RIGHT.search(end.text):
        return "went on"
    if ERROR.search(end.text):
        return "error"
    return "ended"


def verdict(fault, end, host, strict=True):
    """"" if the row is content, else why not. Not strict: nobody has to name a rank."""
    what = outcome(end)
    if what == "hung" and RIGHT.search(end.text):
        return "its work was done, MPI_Finalize did not end"
    if what in ("not done", "wrong data", "hung"):
        return end.failed or what
    if fault.expected == "goes on":
        if what != "went on":
            return f"the job did not go on: {what}, exit code {end.code}"
    elif fault.expected == "told":
        pass  # `says` decides
    elif what == "went on":
        return "the job went on"
    elif fault.expected == "named":
        # MPICH ends the job itself where an exchange inside of a collective fails, and the process
        # manager may lose MPICH's line; the device's own says who
        if what == "ended" and end.code == 0:
            return "the job's exit code is 0"
        rank, host = (fault.ranks - 1, re.escape(host)) if fault.whom == "last" else (r"\d+", r"h\d+")
        if strict and not names(end.text, rank, host):
            return f"nothing names rank {rank} and {host}"
    elif fault.expected == "ends" and end.code == 0:
        return "the job's exit code is 0"
    if strict and fault.says and not re.search(fault.says, end.text, re.M):
        return f"nothing says {fault.says}"
    if strict and fault.fault != "segv" and CRASH.search(end.text):
        return "a rank crashed"
    if end.seconds > fault.deadline:
        return f"{end.seconds:.1f} s, and {fault.deadline:g} are allowed"
    return ""
