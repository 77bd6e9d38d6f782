# hosts: 2
# Two ranks on each of two hosts: shared memory inside, the device between. Receives from anybody get every message once and in order, whichever way it comes.
. "$(dirname "$0")/lab.sh"

export LITE_STATS=1
job 240 4 "$programs/mixed" 100 mixed
passed mixed
result $? "wildcard storms, cancels, probes, windows over both, reductions in place" "$out"

# Since 4.2 the host looks at the network only when nothing has moved in shared memory.
job 60 4 "$programs/hot_neighbour" 3
passed hot_neighbour
result $? "a neighbour that sends without end keeps no message from another host out" "$out"

# Ranks next to each other on a host, as most launchers place them: MPI_Init of 4.2 and 4.3 waits in shared memory without polling, for
# a rank that may wait for a message of its own first allgather (half of the jobs hung).
start_next_to_each_other() { # HOSTS
  code=0
  timeout -k 10 20 "$LAB_ENTER" 0 "$LAB_PREFIX/bin/mpiexec" -launcher ssh -launcher-exec "$LAB_DIR/launch" -hosts "$1" -n 4 \
    "$programs/messages" 0 >"$out" 2>&1 </dev/null || code=$?
}
for hosts in h0:3,h1:1 h0:2,h1:2; do
  starts=0
  for ((i = 0; i < 8; i++)); do
    start_next_to_each_other "$hosts"
    if [ "$code" != 0 ]; then break; fi
    starts=$((starts + 1))
  done
  [ "$starts" = 8 ]
  result $? "four ranks start on $hosts, $starts times of 8" "$out"
  if hung; then end_leftovers; fi
done

# A reduction in shared memory waits for flags that the neighbours set, and no socket tells of one. With busy cores each of the many
# waits began with the sleeps of the one before, and a reduction took a second. MPICH's other algorithm sends messages.
reduce_ms() { # ALGORITHM
  code=0
  MPIR_CVAR_REDUCE_POSIX_INTRA_ALGORITHM=$1 timeout -k 10 60 "$LAB_ENTER" 0 "$LAB_PREFIX/bin/mpiexec" -hosts h0 -n 4 "$programs/scale" flags 10 \
    >"$out" 2>&1 </dev/null || code=$?
  sed -nE 's/^flags reduce_ms=//p' "$out"
}
busy=()
for ((i = 0; i < 2; i++)); do
  "$LAB_ENTER" 0 sh -c 'while :; do :; done' &
  busy+=($!)
done
messages=$(reduce_ms mpir)
flags=$(reduce_ms release_gather)
kill "${busy[@]}"
[ -n "$messages" ] && [ -n "$flags" ] && awk -v a="$flags" -v b="$messages" 'BEGIN { exit !(a <= 6 * b || a <= 400) }'
result $? "four ranks on busy cores reduce 800 KB in shared memory in $flags ms, at most 400 or 6 x the $messages ms by messages" "$out"
plan
