# hosts: 4
# controllers: thread sync
# With LITE_CONTROLLER=thread nonblocking collectives and active-message RMA move while all ranks compute; with sync they do not.
. "$(dirname "$0")/lab.sh"

export LITE_STATS=1
job 120 4 "$programs/event_driven" 0.5
[ "$code" = 0 ] && grep -qE '^event_driven: [0-9]+ checks, 0 failed' "$out"
result $? "collectives and accumulate give the right results" "$out"
want=yes
[ "$controller" != sync ] || want=no
for operation in iallreduce ibcast ialltoall ireduce_user accumulate; do
  # a rank may have had its part by luck with sync, but not all of them
  all=$(grep -c "operation=$operation " "$out")
  good=$(grep -c "operation=$operation .*complete_before_wait=yes" "$out")
  [ "$all" -gt 0 ] && if [ "$want" = yes ]; then [ "$good" = "$all" ]; else [ "$good" -lt "$all" ]; fi
  result $? "$operation, $controller: complete on all ranks before MPI_Wait: $want" "$out"
done
if [ "$controller" = thread ]; then
  [ "$(stat_of "$out" 1 host_passes)" -gt 0 ] 2>/dev/null
  result $? "the helper thread ran the host's progress" "$out"
fi
plan
