# hosts: 2
# Matched probes, with two ranks on each of two hosts: a storm of messages that are all received by MPI_Improbe and MPI_Mrecv, beside busy processes; and eight threads in each rank
# that wait by MPI_Improbe in a loop. These are not slower by much than the same exchange by MPI_Sendrecv, nor than with Debian's mpich, where that is installed.
. "$(dirname "$0")/lab.sh"

seconds() { # FILE WAY
  sed -nE "s/^matched by=$2 seconds=([0-9.]+)\$/\1/p" "$1"
}

busy=()
trap 'kill "${busy[@]}" 2>/dev/null || true' EXIT
for _ in 1 2; do
  timeout $((600 + 600 * ${MATCHED_RUNS:-0})) sh -c 'while :; do :; done' &
  busy+=($!)
done
for round in 1 2 3 4 5; do
  job 60 2 "$programs/matched" storm 500
  [ "$code" = 0 ]
  result $? "storm of 500 messages each way, beside two busy processes, round $round" "$out"
done
# MATCHED_RUNS=200: as often as that in a row, for who looks for a stand-still that comes once in a
# while. Each has 300 s: where others want the cores a run may be slow, a stand-still has no end.
if [ "${MATCHED_RUNS:-0}" -gt 0 ]; then
  longest=0 bad=0
  for ((run = 1; run <= MATCHED_RUNS; run++)); do
    for pattern in "2 storm 300" "4 threads 4 40"; do
      began=$SECONDS
      # shellcheck disable=SC2086  # ranks and arguments
      job 300 ${pattern%% *} "$programs/matched" ${pattern#* }
      [ $((SECONDS - began)) -le "$longest" ] || longest=$((SECONDS - began))
      [ "$code" = 0 ] && continue
      bad=$((bad + 1))
      cp "$out" "$LAB_DIR/bad"
    done
  done
  [ "$bad" = 0 ]
  result $? "both patterns $MATCHED_RUNS times beside two busy processes ($bad bad, the longest took $longest s)" \
    "$LAB_DIR/bad"
fi
job 120 4 "$programs/matched" storm 100
[ "$code" = 0 ]
result $? "storm of 300 messages from each of four ranks, beside two busy processes" "$out"
kill "${busy[@]}" 2>/dev/null || true
wait "${busy[@]}" 2>/dev/null || true
busy=()

for count in 2 4; do
  job 60 $count "$programs/unlike"
  passed unlike
  result $? "$count ranks that describe the same data in unlike ways" "$out"
done

job 240 4 "$programs/matched" threads 8 60
[ "$code" = 0 ]
result $? "eight threads in each of four ranks" "$out"
ours=$(seconds "$out" improbe) neighbour=$(seconds "$out" sendrecv)
# 0.3 s: what a loaded machine may take from either
awk -v o="${ours:-9999}" -v n="${neighbour:-0}" 'BEGIN { exit !(o <= 3 * n + 0.3) }'
result $? "by MPI_Improbe in a loop ${ours:-?} s, at most 3 x the ${neighbour:-?} s by MPI_Sendrecv, and a little" "$out"

if command -v mpicc.mpich >/dev/null && command -v mpiexec.mpich >/dev/null &&
  mpicc.mpich -O2 -w "$(dirname "$0")/../mpi/matched.c" -o "$LAB_DIR/matched_debian" -lpthread >"$out" 2>&1; then
  LAB_PREFIX=/usr job 400 4 "$LAB_DIR/matched_debian" threads 8 60
  debian=$(seconds "$out" improbe)
  awk -v o="${ours:-9999}" -v d="${debian:-0}" 'BEGIN { exit !(o <= 3 * d) }'
  result $? "the same with Debian's mpich: ${debian:-?} s" "$out"
else
  echo "# Debian's mpich is not here: no comparison"
fi
plan
