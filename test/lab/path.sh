# hosts: 2
# controllers: sigio sync
# What is done between a message's arrival and the answer, counted by single instructions (test/mpi/path.c): the same in every run, whatever else the machine does.
. "$(dirname "$0")/lab.sh"

# gcc 12 at -O2 has 1263 for 8 bytes; what would make that a tenth more, as the loss of one of the short ways does, is to be noticed. MPICH 5 has 78 more of its own
# (docs/hosts.md).
most=1390
if "$LAB_PREFIX/bin/mpichversion" | grep -qE '^MPICH Version: *5'; then most=$((most + 78)); fi
export LITE_SPIN_US=forever
job 120 2 "$programs/path" 8
if [ "$code" = 0 ] && grep -q 'for x86-64$' "$out"; then
  result 0 "instructions from arrival to answer # SKIP stepping is for x86-64"
else
  number() { sed -nE "s/^path .* $1=([0-9]+).*/\1/p" "$out"; }
  [ "$code" = 0 ] && [ "$(number instructions)" -le "$most" ]
  result $? "8 bytes: $(number instructions) instructions from the arrival to the answer, at most $most" "$out"
  [ "$code" = 0 ] && [ "$(number calls)" = 0 ] && [ "$(number allocations)" = 0 ]
  result $? "8 bytes: no system call between the read and the send, and no allocation" "$out"
fi
plan
