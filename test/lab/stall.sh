# hosts: 2
# at once: yes
# LITE_STALL: a rank that waits in one MPI call, with nothing sent or received, says for what, with each controller; one that waits while something moves does not.
. "$(dirname "$0")/lab.sh"

stall() { # CASE SECONDS
  job 60 2 env LITE_STALL=2s "$programs/stall" "$1" "$2"
}
ended() { [ "$code" = 0 ] && grep -qE '^stall: [0-9]+ checks, 0 failed' "$out"; }
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
ended && [ "$(told 0)" -ge 1 ]
result $? "a rank in MPI_Ssend tells of one that computes for three seconds, and goes on then" "$out"
says 0 "waits in MPI_Ssend for rank 1 to receive, tag 11 in halo: " "it names rank, tag and communicator"
says 0 "  send to rank 1, tag 11 in halo, 4 bytes, begun " "and its send"
says 0 ": synchronous, sent, waits to be received there" "and that the message is there"
stall probe 3
ended
result $? "a rank in MPI_Probe goes on behind its report" "$out"
says 0 "waits in MPI_Probe for rank 1, tag 13 in halo: " "a rank in MPI_Probe says what it looks for"
stall collective 3
ended
result $? "a rank in MPI_Allreduce goes on behind its report" "$out"
says 0 "waits in MPI_Allreduce for rank 1, tag " "a rank in MPI_Allreduce says for whom"
says 0 "in a collective of halo" "and in which communicator"

for what in slow test; do
  stall $what 6
  ended && ! grep -q 'waits in MPI' "$out"
  case $what in
    slow) result $? "a wait in which a message comes ten times a second is not told of" "$out" ;;
    test) result $? "a loop of MPI_Test is not told of" "$out" ;;
  esac
done
job 60 2 "$programs/stall" send 3
ended && ! grep -q 'waits in MPI' "$out"
result $? "without LITE_STALL nobody tells" "$out"
plan
