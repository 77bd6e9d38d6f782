# hosts: 2
# MPI_T shows knobs and counters, exact around known traffic.
. "$(dirname "$0")/lab.sh"

job 60 2 env LITE_EAGER_MAX=64K "$programs/tools" 64K
[ "$code" = 0 ] && grep -qE '^tools: [0-9]+ checks, 0 failed' "$out"
result $? "control and performance variables around short, eager, rendezvous, put and get" "$out"
plan
