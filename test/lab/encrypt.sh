# hosts: 3
# controllers: sigio thread sync
# LITE_ENCRYPT: programs run as without it, what is on the network cannot be read, and what is changed there is told.
. "$(dirname "$0")/lab.sh"

clean() { ! hung && [ "$code" = 0 ] && grep -q ' 0 failed' "$out"; }
for kind in auth on; do
  job 120 3 -env LITE_ENCRYPT $kind "$programs/messages" 20 1000000
  clean
  result $? "messages of all kinds, LITE_ENCRYPT=$kind" "$out"
done
job 120 3 -env LITE_ENCRYPT on "$programs/one_sided"
clean
result $? "one-sided communication" "$out"
# Children take the environment of mpiexec.
LITE_ENCRYPT=on job 150 1 "$programs/dynamic" spawn 3
clean
result $? "processes are spawned, and talk to their parents" "$out"

job 30 1 -env LITE_ENCRYPT on "$programs/messages" 3 1000 : -n 1 -env LITE_ENCRYPT off "$programs/messages" 3 1000
! hung && grep -q 'rank 0 on host h0 has LITE_ENCRYPT=on, and rank 1 on host h1 has LITE_ENCRYPT=off' "$out"
result $? "ranks with another LITE_ENCRYPT are told by rank and host" "$out"
plan
