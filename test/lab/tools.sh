# hosts: 2
# MPI_T shows knobs and counters, exact around known traffic; a tool that ended before MPI_Init does no harm.
. "$(dirname "$0")/lab.sh"

job 60 2 env LITE_EAGER_MAX=64K "$programs/tools" 64K
[ "$code" = 0 ] && grep -qE '^tools: [0-9]+ checks, 0 failed' "$out"
result $? "control and performance variables around short, eager, rendezvous, put and get" "$out"

job 60 2 "$programs/tools_early"
[ "$code" = 0 ] && grep -qE '^tools_early: [0-9]+ checks, 0 failed' "$out"
result $? "a tool that has come and gone before MPI_Init" "$out"
plan
