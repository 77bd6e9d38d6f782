# hosts: 2
# A 64 MiB rendezvous between two computing ranks is complete before MPI_Wait with sigio and thread, and with sync is not.
. "$(dirname "$0")/lab.sh"

export LITE_STATS=1
job 120 2 "$programs/overlap"
passed overlap
result $? "64 MiB both ways arrive whole" "$out"
want=yes
[ "$controller" != sync ] || want=no
for pattern in named any_source late_receiver; do
  for rank in 0 1; do
    grep -q "^overlap pattern=$pattern rank=$rank complete_before_wait=$want " "$out"
    result $? "rank $rank, pattern $pattern, $controller: complete before MPI_Wait: $want" "$out"
  done
done
if [ "$controller" != sync ]; then
  grep -q "^overlap pattern=first_send rank=0 complete_before_wait=yes " "$out"
  result $? "the first message to a peer arrives while its sender computes" "$out"
fi
# the program is only a proof if the message took the road it is about
[ "$(stat_of "$out" 0 rndv_msgs)" -ge 3 ] 2>/dev/null
result $? "the messages went by rendezvous" "$out"
if [ "$controller" = sigio ]; then
  [ "$(stat_of "$out" 0 signals)" -gt 0 ] 2>/dev/null
  result $? "signals moved them" "$out"
fi
plan
