# hosts: 2
# The data of accumulates does not use up what unexpected messages may take (LITE_UNEXPECTED_MAX), and no memory for it is an MPI error at once, on both sides; never a hang.
. "$(dirname "$0")/lab.sh"

job 120 2 env LITE_UNEXPECTED_MAX=1M "$programs/accumulate" 32 300
passed accumulate
result $? "accumulates of 32 MB beside 900 unexpected messages with LITE_UNEXPECTED_MAX=1M" "$out"
# the windows of eight ranks are at their least, and together more than the bound
job 120 8 env LITE_UNEXPECTED_MAX=64K LITE_CREDITS=16K "$programs/accumulate" 4 100
passed accumulate
result $? "eight ranks whose windows together are beyond the bound" "$out"

job 60 2 "$programs/trouble" memory "$LAB_DIR/meet-memory"
! hung && grep -q '^error: MPI_Recv' "$out" && grep '^MPIDI_LITE_' "$out" | grep -E 'no memory for the [0-9]{9} bytes of an active message' | grep -E 'rank 0 on host h0 \(10\.77\.0\.1 ' >/dev/null
result $? "no memory for an accumulate is an error of the target's next call, with bytes and sender" "$out"
grep -q '^class: MPI_ERR_NO_MEM' "$out"
result $? "its class is MPI_ERR_NO_MEM" "$out"
grep -qE '^error: MPI_(Accumulate|Win_unlock)' "$out" && grep '^MPIDI_LITE_' "$out" | grep -F 'rank 0 lost rank 1' >/dev/null
result $? "the origin hears that it has lost the target" "$out"
plan
