# hosts: 2
# lab: --rate 1gbit
# Computing while 4 MB cross a link of 1 Gb/s hides the transfer with sigio and thread, and with sync, the control, does not (test/bench/overlap).
# By the shortest iterations, which a busy machine leaves alone. Floors for a machine that has other things to do; what it is on one that has not: docs/measurements/overlap.md.
. "$(dirname "$0")/lab.sh"

# The best of three: a busy machine spoils a run, it does not make overlap where there is none.
held() { # SENTENCE OP COMPUTE CONDITION
  local kept=1
  for _ in 1 2 3; do
    timeout -k 10 200 "$(dirname "$0")/../bench/overlap" --in-lab --rate 1gbit --mpi "$controller=$LAB_PREFIX,LITE_CONTROLLER=$controller" \
      --ops "$2" --compute "$3" --sizes 4M --rounds 1 --seconds 1 --nice -15 --check "$controller$4" >"$out" 2>&1
    kept=$?
    echo "# $(grep '^check' "$out")"
    [ "$kept" != 0 ] || break
    [ "$kept" != 124 ] || end_leftovers
  done
  result "$kept" "$1" "$out"
}
if [ "$controller" = sync ]; then
  held "with sync at most 50 % of the processor is left for the computation" both all '.availability_minima@4M<=50'
  held "with sync a sender waits for a receiver that computes" irecv 0 '.wait_ratio@4M>=1.5'
else
  held "at least 70 % of the processor is left for the computation" both all '.availability_minima@4M>=70'
  held "a sender in MPI_Send is done when the wire is, though the receiver computes" irecv 0 '.wait_ratio@4M<=1.3'
  held "a receiver in MPI_Recv is done when the wire is, though the sender computes" isend 0 '.wait_ratio@4M<=1.3'
fi
plan
