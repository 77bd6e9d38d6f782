# hosts: 2
# A target that computes serves put and get with sigio and thread, and with sync does not; the data of every epoch kind is right.
. "$(dirname "$0")/lab.sh"

export LITE_STATS=1
job 120 2 "$programs/one_sided"
passed one_sided
result $? "put and get of 1 B to 8 MB in every kind of epoch" "$out"
want=yes
[ "$controller" != sync ] || want=no
for epoch in lock lock_all; do
  for bytes in 1 1000 65536 8388608; do
    grep -q "^one_sided epoch=$epoch bytes=$bytes while_computing=$want " "$out"
    result $? "$bytes bytes there and back, $epoch, while the target computes: $want ($controller)" "$out"
  done
done
# the program is only a proof if it went this way
[ "$(stat_of "$out" 1 served_msgs)" -gt 500 ] 2>/dev/null
result $? "the target served puts and gets" "$out"

job 120 4 env LITE_SHORT_MAX=0 "$programs/one_sided" 0.01
passed one_sided
result $? "four ranks, everything by transfer" "$out"

for epoch in fence pscw lock lock_all; do
  job 120 2 "$programs/put_flood" put $epoch 1000000
  passed put_flood
  result $? "a million puts in an epoch ($epoch) take a bounded amount of memory" "$out"
  # With sync nothing is gathered that need not wait, as nobody would let it go; and a target that does nothing else keeps nobody waiting.
  if [ "$controller" != sync ] || [[ $epoch == lock* ]]; then
    [ "$(stat_of "$out" 0 writes)" -lt 400000 ] 2>/dev/null
    result $? "and leave together" "$out"
  fi
  job 120 2 "$programs/put_flood" sum $epoch 1000000
  passed put_flood
  result $? "a million accumulates in an epoch ($epoch) take a bounded amount of memory" "$out"
done

# calls that make no progress, one after the other, keep nobody from a window: 20 to 200 ms once
if [ "$controller" != sync ]; then
  job 60 2 "$programs/short_calls"
  average=$(sed -nE 's/^short_calls: .* average ([0-9]+)\..*/\1/p' "$out")
  [ "$code" = 0 ] && [ "${average:-9}" -lt 5 ]
  result $? "a target in a loop of MPI_Win_sync serves accumulates and puts" "$out"
  job 60 2 "$programs/short_calls" 50 attributes
  average=$(sed -nE 's/^short_calls: .* average ([0-9]+)\..*/\1/p' "$out")
  [ "$code" = 0 ] && [ "${average:-9}" -lt 5 ]
  result $? "and so it does when an object was freed while a receive was open" "$out"
  job 60 2 "$programs/short_calls" 50 attributes multiple
  average=$(sed -nE 's/^short_calls: .* average ([0-9]+)\..*/\1/p' "$out")
  [ "$code" = 0 ] && [ "${average:-9}" -lt 5 ]
  result $? "the same with MPI_THREAD_MULTIPLE" "$out"
fi

# who reads a word without end leaves its target the time to change it
job 60 2 "$programs/spinning_origins" 6
passed spinning_origins
result $? "a target that computes gets on while another rank reads its window without end" "$out"

# posts of a later epoch come early; ranks of one host post through shared memory, then by the device, too
for local in 0 1; do
  job 30 4 env MPIR_CVAR_NOLOCAL=$local "$programs/early_posts"
  [ "$code" = 0 ]
  result $? "a rank that computes between post and start gets a later epoch's post first, NOLOCAL=$local" "$out"
done

# accumulates in every kind of epoch, all data looked at; ranks of one host by shared memory, then by the device, too
for local in 0 1; do
  job 120 4 env MPIR_CVAR_NOLOCAL=$local "$programs/epochs"
  passed epochs
  result $? "accumulates in every kind of epoch are whole and in order, NOLOCAL=$local" "$out"
done
# of ranks of one host by active messages, too
job 120 4 "$programs/epochs" 2 disable_shm_accumulate
passed epochs
result $? "and so they are with the hint disable_shm_accumulate" "$out"
job 120 4 "$programs/epochs" 1 none spawn
passed epochs
result $? "and so they are in a window of two jobs" "$out"
job 60 4 "$programs/fetched"
passed fetched
result $? "pairs are fetched whole, and unsigned numbers accumulated as such, here and on another host" "$out"
job 60 4 "$programs/window_names"
passed window_names
result $? "windows that outlive their communicators are not taken for others" "$out"
plan
