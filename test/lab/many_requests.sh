# hosts: 2
# Calls with hundreds of thousands of requests: one that may not block never sleeps, one that waits never sleeps while something is there that it has not looked at, and a wait that
# lasts still sleeps. Beside Debian's mpich, where that is installed.
. "$(dirname "$0")/lab.sh"

count=200000
rounds=3
calls() { # FILE: "CALL:REQUESTS SECONDS" of each line
  sed -nE 's/^many_requests call=(\S+) requests=([0-9]+) seconds=(-?[0-9.]+)$/\1:\2 \3/p' "$1"
}

debian=
if command -v mpicc.mpich >/dev/null && command -v mpiexec.mpich >/dev/null &&
  mpicc.mpich -O2 -w "$(dirname "$0")/../mpi/many_requests.c" -o "$LAB_DIR/many_debian" >"$out" 2>&1; then
  LAB_PREFIX=/usr job 300 2 "$LAB_DIR/many_debian" $count $rounds
  if [ "$code" = 0 ]; then
    debian=$LAB_DIR/debian
    calls "$out" >"$debian"
  fi
fi
[ -n "$debian" ] || echo "# Debian's mpich is not here, or does not run: no comparison"

job 300 2 "$programs/many_requests" $count $rounds
[ "$code" = 0 ]
result $? "$count requests, and a million null ones, in every call that takes an array" "$out"
ours=$LAB_DIR/ours
calls "$out" >"$ours"
[ "$(wc -l <"$ours")" = 21 ]
result $? "each of the 21 calls was timed" "$out"
while read -r call seconds; do
  # 0.1 s: what a loaded machine may take from a call in each of the rounds
  limit=2
  reference=$([ -z "$debian" ] || awk -v c="$call" '$1 == c { print $2 }' "$debian")
  beside=
  if [ -n "$reference" ]; then
    limit=$(awk -v r="$reference" 'BEGIN { print 3 * (r > 0 ? r : 0) + 0.1 }')
    beside=" (3 x the $reference s of Debian's mpich, and a little)"
  fi
  awk -v s="$seconds" -v l="$limit" 'BEGIN { exit !(s <= l) }'
  result $? "MPI_$call: $seconds s, at most $limit$beside" "$out"
done <"$ours"

# a message 3 s later, to two requests and to one among a million null ones
job 120 2 "$programs/many_requests" late 3
[ "$code" = 0 ]
result $? "messages that come late end every kind of wait" "$out"
while read -r call requests percent late look; do
  # MPI_Waitsome of a million: setting out takes two looks at all requests, the end one or two more. A
  # look costs what 125,000 polls cost on this machine (a system call each), so it is measured just
  # before.
  limit=3
  [ "$requests" -lt 1000 ] || limit=15
  [ "$requests" -lt 1000 ] || [ "$call" != Waitsome ] || limit=$(awk -v l="$look" 'BEGIN { print 3 + 5 * l }')
  awk -v p="$percent" -v l="$limit" 'BEGIN { exit !(p <= l) }'
  result $? "MPI_$call of $requests waits for 3 s with $percent % of a core, at most $limit; a look at all takes $look %" "$out"
  awk -v l="$late" 'BEGIN { exit !(l <= 1000) }'
  result $? "MPI_$call of $requests notices its message after $late ms" "$out"
done < <(sed -nE 's/^many_requests call=(\S+) requests=([0-9]+) cpu_percent=([0-9.]+) late_ms=([0-9.]+) look_percent=([0-9.]+)$/\1 \2 \3 \4 \5/p' "$out")

job 60 3 "$programs/testall"
passed testall
result $? "MPI_Testall of persistent collectives and partitioned messages" "$out"

# MPI_Test in a loop, more ranks than cores: nobody sleeps
job 120 4 "$programs/many_requests" spin 500
[ "$code" = 0 ]
result $? "MPI_Test in a loop, $(sed -nE 's/.*(messages_per_s=[0-9]+)/\1/p' "$out")" "$out"
plan
