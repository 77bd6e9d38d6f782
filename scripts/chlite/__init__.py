"""What the Python programs under scripts/ and test/bench share; the programs are thin entry points.

common          where the project's files are, messages, output of a command
sizes           64K and back; what a shaped link lets through at once
turns           variants by turns in rounds, medians, ratios of the same round
installations   MPI installations: what a user names, what is found out, what is set
program_bench   benchmarks of one program, variants by turns
builder         benchmark programs, each compiled once per compiler
places          test hosts or a cluster: starting there, counting what crossed the link
running         programs to an end in any case, in a net-lab of their own; their JSON lines
drawing         matplotlib, where there is one
test_log        the sums of make check (scripts/check)
compare/        scripts/compare
overlap/        test/bench/overlap
trace/          scripts/trace-merge

Only Python's own library is needed. A module has one job and no state.
"""
