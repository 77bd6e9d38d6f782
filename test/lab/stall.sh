# hosts: 2
# at once: yes
# LITE_STALL: a rank that waits in one MPI call, with nothing sent or received, says for what, with each controller; one that waits while something moves does not.
# lite-info --job: a rank says it when it is asked, without LITE_STALL.
. "$(dirname "$0")/lab.sh"

stall() { # CASE SECONDS
  job 60 2 env LITE_STALL=2s "$programs/stall" "$1" "$2"
}
says() { # RANK TEXT SENTENCE
  grep -E "ch_lite\[rank $1 on [^]]*\]: " "$out" | grep -F -- "$2" >/dev/null
  result $? "$3" "$out"
}
told() { grep -cE "ch_lite\[rank $1 on [^]]*\]: waits in " "$out"; }

# Told after 2, 4 and 8 seconds.
stall recv 9
! hung && [ "$code" != 0 ]
result $? "two ranks in MPI_Recv for each other never end by themselves" "$out"
says 0 "waits in MPI_Recv for rank 1, tag 5 in MPI_COMM_WORLD: " "rank 0 says that it waits in MPI_Recv for rank 1, tag 5"
says 1 "waits in MPI_Recv for rank 0, tag 7 in MPI_COMM_WORLD: " "rank 1 says that it waits in MPI_Recv for rank 0, tag 7"
says 0 "  receive from rank 1, tag 5 in MPI_COMM_WORLD, room for 4 bytes, begun " "and that no message has come for its receive"
says 0 "  connection to rank 1 on host " "and how its connection to rank 1 is"
grep -E "rank 0 on [^]]*\]:   connection to rank 1 .*: connected, 0 bytes to send, round trip [0-9]+ us, .*; credit for [0-9]+ of [0-9]+ bytes" "$out" >/dev/null
result $? "with its round trip and credit" "$out"
[ "$(told 0)" = 3 ]
result $? "three times in nine seconds" "$out"

stall send 3
passed stall && [ "$(told 0)" -ge 1 ]
result $? "a rank in MPI_Ssend tells of one that computes for three seconds, and goes on then" "$out"
says 0 "waits in MPI_Ssend for rank 1 to receive, tag 11 in halo: " "it names rank, tag and communicator"
says 0 "  send to rank 1, tag 11 in halo, 4 bytes, begun " "and its send"
says 0 ": synchronous, sent, waits to be received there" "and that the message is there"
stall probe 3
passed stall
result $? "a rank in MPI_Probe goes on behind its report" "$out"
says 0 "waits in MPI_Probe for rank 1, tag 13 in halo: " "a rank in MPI_Probe says what it looks for"
stall collective 3
passed stall
result $? "a rank in MPI_Allreduce goes on behind its report" "$out"
says 0 "waits in MPI_Allreduce for rank 1, tag " "a rank in MPI_Allreduce says for whom"
says 0 "in a collective of halo" "and in which communicator"

for what in slow test; do
  stall $what 6
  passed stall && ! grep -q 'waits in MPI' "$out"
  case $what in
    slow) result $? "a wait in which a message comes ten times a second is not told of" "$out" ;;
    test) result $? "a loop of MPI_Test is not told of" "$out" ;;
  esac
done
job 60 2 "$programs/stall" send 3
passed stall && ! grep -q 'waits in MPI' "$out"
result $? "without LITE_STALL nobody tells" "$out"

# The ranks of a test host, asked there while the job runs.
asked=$out.asked
begin_job() { # CASE
  timeout -k 10 120 "$LAB_MPIEXEC" "$LAB_PREFIX" -n 2 "$programs/stall" "$1" 60 >"$out" 2>&1 </dev/null &
  mpiexec=$!
}
end_job() {
  end_leftovers
  { wait "$mpiexec"; } 2>/dev/null
}
ask() { # HOST-NUMBER [ARGUMENT…]
  local ns=LAB_NS_$1
  shift
  code=0
  ip netns exec "${!ns}" "$LAB_PREFIX/bin/lite-info" --job "$@" >"$asked" 2>&1 || code=$?
}
# Until the answer is there: a start takes its time.
ask_until() { # PATTERN HOST-NUMBER [ARGUMENT…]
  local pattern=$1
  shift
  for _ in $(seq 40); do
    ask "$@"
    ! { [ "$code" = 0 ] && grep -qE -- "$pattern" "$asked"; } || return 0
    sleep 0.5
  done
  return 1
}
begin_job recv
ask_until "^ch_lite\[rank 0 on [^]]*\]: waits in MPI_Recv for rank 1, tag 5 in MPI_COMM_WORLD: nothing sent or received for [1-9]" 0 &&
  grep -q "]:   connection to rank 1 on host " "$asked" && ! grep -q "rank 1 of 2" "$asked"
result $? "a waiting rank that is asked says for what it waits" "$asked"
ask 1 --json "$mpiexec"
[ "$code" = 0 ] && python3 -c '
import json, sys
(rank,) = json.load(open(sys.argv[1]))["ranks"]
sys.exit(not (rank["rank"] == 1 and rank["size"] == 2 and "waits in MPI_Recv for rank 0, tag 7" in rank["report"][0]))' "$asked"
result $? "and for programs, by the number of mpiexec" "$asked"
end_job
! grep -q 'waits in MPI' "$out"
result $? "the rank itself prints nothing" "$out"
begin_job send
ask_until "^rank 1 of 2 \(process [0-9]+\): no answer: it runs, in no MPI call that waits for the network" 1
result $? "a rank that computes is told as one" "$asked"
end_job
begin_job test
ask_until "^ch_lite\[rank 1 on [^]]*\]: polls in calls that do not wait \(MPI_Test, MPI_Iprobe\) for rank 0, tag 1 in MPI_COMM_WORLD$" 1
result $? "a rank in a loop of MPI_Test says for what" "$asked"
end_job
ask 0
[ "$code" = 1 ] && grep -q "this host has no rank of ch_lite" "$asked"
result $? "behind the end nobody is found" "$asked"
plan
