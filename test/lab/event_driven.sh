# hosts: 4
# controllers: sigio thread sync
# Nonblocking collectives and active-message RMA move while all ranks compute, by the helper thread (thread) or by one that the handler wakes (sigio); with sync they do not.
. "$(dirname "$0")/lab.sh"

export LITE_STATS=1
# What moved before MPI_Wait, or while the target computed. A rank may have had its part by luck where nobody moves it, but not all of them.
moved_are() { # WANT HOW OPERATION…
  local want=$1 how=$2 operation all good
  shift 2
  for operation in "$@"; do
    all=$(grep -c "operation=$operation " "$out")
    good=$(grep -c "operation=$operation .*complete_before_wait=yes" "$out")
    [ "$all" -gt 0 ] && if [ "$want" = yes ]; then [ "$good" = "$all" ]; else [ "$good" -lt "$all" ]; fi
    result $? "$operation, $how: complete on all ranks before MPI_Wait: $want" "$out"
  done
}

job 120 4 "$programs/event_driven" 0.5
passed event_driven
result $? "collectives and accesses give the right results" "$out"
want=yes
[ "$controller" != sync ] || want=no
moved_are $want "$controller" iallreduce ibcast ialltoall accumulate fetch_and_op compare_and_swap dynamic
# What is the application's is not called by a thread that it has not asked for.
moved_are no "$controller" ireduce_user
[ "$(grep -c 'foreign_calls=0$' "$out")" = 4 ]
result $? "the application's operation and callbacks are called in its own thread only" "$out"
if [ "$controller" != sync ]; then
  [ "$(stat_of "$out" 1 host_passes)" -gt 0 ] 2>/dev/null
  result $? "a thread ran the host's progress" "$out"
fi
if [ "$controller" = sigio ]; then
  job 120 4 env LITE_HOST_THREAD=off "$programs/event_driven" 0.3
  passed event_driven && [ "$(stat_of "$out" 1 host_passes)" = 0 ]
  result $? "LITE_HOST_THREAD=off: no such thread, and the right results" "$out"
  moved_are no "LITE_HOST_THREAD=off" iallreduce ialltoall accumulate dynamic
fi
plan
