# hosts: 2
# What must not grow: matching with the length of the queues, memory with idle connections, processor time with waiting. docs/measurements/scale.md has the numbers.
. "$(dirname "$0")/lab.sh"

value() { # KEY PATTERN: of the first line that has both
  grep -E "$2" "$out" | sed -nE "s/.* $1=([0-9.]+).*/\1/p" | head -n 1
}
at_most() { # VALUE LIMIT
  [ -n "$1" ] && awk -v a="$1" -v b="$2" 'BEGIN { exit !(a <= b) }'
}

if [ "$controller" = sigio ]; then
  # credit for all 10,000: without it MPI_Send waits for the receiver (a message is charged 256 bytes and its block)
  job 300 2 env LITE_CREDITS=16M "$programs/scale" matching
  for kind in posted unexpected; do
    # not of 10: a go-ahead's trip of 12 to 18 us is divided by few there, and hides what matching costs. 10,000 nodes do not fit into the second-level cache, beside
    # other work least of all (0.5 us per message); a search through the queue would look at 5,000 of them each time, which is 5 us and more
    few=$(value us_per_message "kind=$kind depth=1000 ")
    many=$(value us_per_message "kind=$kind depth=10000 ")
    [ "$code" = 0 ] && at_most "$many" "$(awk -v a="${few:-0}" 'BEGIN { print 5 * a + 1 }')"
    result $? "10,000 $kind: $many us per message, at most 5 x the $few us of 1,000 and 1 us" "$out"
  done

  job 300 24 env MPIR_CVAR_NOLOCAL=1 "$programs/scale" connections
  bytes=$(value heap_bytes_per_connection connections)
  [ "$code" = 0 ] && at_most "$bytes" 4096
  result $? "an idle connection costs $bytes bytes of memory, at most 4096" "$out"
fi

# each alone on its node, and two on each
for ranks in 2 4; do
  job 60 "$ranks" "$programs/scale" idle 4
  percent=$(value cpu_percent "idle ranks=$ranks")
  [ "$code" = 0 ] && at_most "$percent" 2
  result $? "$ranks ranks, waiting for 4 s: $percent % of a core, at most 2" "$out"
  late=$(value late_ms "idle ranks=$ranks")
  at_most "$late" 200
  result $? "$ranks ranks notice their message after $late ms" "$out"
done

# naps must not slow down a long message, which comes through shared memory in pieces
job 60 4 "$programs/scale" pieces
at_once=$(value at_once_ms pieces)
after=$(value after_a_wait_ms pieces)
[ "$code" = 0 ] && at_most "$after" "$(awk -v a="${at_once:-0}" 'BEGIN { print 2 * a + 20 }')"
result $? "32 MB in shared memory after a long wait: $after ms, beside $at_once ms" "$out"
plan
