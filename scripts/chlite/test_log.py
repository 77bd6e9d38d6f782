"""Counts the tests in the output of make check: every check of a Check program (its summary line
"NN%: Checks: X, Failures: Y, Errors: Z"), and a test that prints no such line as one. A program
that failed in another way (crash, sanitizer) counts as one failure more."""
import glob
import os
import re
import sys

SUMMARY = re.compile(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)", re.M)
VERDICT = re.compile(r"^(PASS|FAIL|ERROR|XPASS): (\S+)", re.M)
TELLING = re.compile(r":[FE]:|rror:|FAILED|runtime error|assert|wrong at line")
LINES_SHOWN = 12


def read(path):
    with open(path, encoding="utf-8", errors="replace") as text:
        return text.read()


def count(good, text):
    """(passed, failed) of one test program with its exit code and its output."""
    checks = bad = 0
    for match in SUMMARY.finditer(text):
        total, failures, errors = map(int, match.groups())
        checks += total
        bad += failures + errors
    passed, failed = checks - bad, bad
    if checks == 0 or (not good and bad == 0):
        # nothing to sum, or more went wrong than the sums tell
        passed, failed = (passed + 1, failed) if good else (passed, failed + 1)
    return passed, failed


def why(text):
    """The lines that tell what went wrong, or else the last ones."""
    lines = text.splitlines()
    telling = [line for line in lines if TELLING.search(line)]
    return telling[:LINES_SHOWN] or lines[-LINES_SHOWN:]


def programs(build, log):
    """(name, whether its exit code was good, output) of each test program."""
    results = sorted(glob.glob(f"{build}/**/*.trs", recursive=True))
    for path in results:    # Automake's parallel harness keeps a log per test
        good = not re.search(r"^:test-result: (FAIL|ERROR|XPASS)", read(path), re.M)
        yield os.path.relpath(path[:-4], build), good, read(path[:-4] + ".log")
    if not results:    # the serial harness prints a test's output, then its verdict
        everything, begin = read(log), 0
        for match in VERDICT.finditer(everything):
            yield match.group(2), match.group(1) == "PASS", everything[begin:match.start()]
            begin = match.end()


def main(build, log):
    """Prints "PASSED FAILED", and what failed to stderr."""
    passed = failed = 0
    for name, good, text in programs(build, log):
        here_passed, here_failed = count(good, text)
        passed, failed = passed + here_passed, failed + here_failed
        if here_failed or not good:
            print(f"      failed: {name}", file=sys.stderr)
            for line in why(text):
                print(f"    | {line}", file=sys.stderr)
    print(passed, failed)


if __name__ == "__main__":
    main(*sys.argv[1:])
