# hosts: 2
# controllers: sigio
# The host's library of the standard ABI (5.0 with --enable-mpi-abi): it carries the device, and programs compiled against mpi_abi.h run over it, two ranks on each host. Skipped on the other hosts.
. "$(dirname "$0")/lab.sh"

if [ ! -x "$LAB_PREFIX/bin/mpicc_abi" ]; then
  result 0 "programs of the standard ABI # SKIP the host has none (MPICH 5 with --enable-mpi-abi has)"
  plan
  exit 0
fi
sources=$(dirname "$0")/../mpi
export LITE_STATS=1
for program in "mixed 50 mixed" "messages 20 0 1000 100000 2000000" "one_sided 0.05" "accumulate 4 100" "reductions"; do
  name=${program%% *}
  "$LAB_PREFIX/bin/mpicc_abi" -O2 -std=gnu11 "$sources/$name.c" -o "$LAB_DIR/$name" -lm -lpthread >"$out" 2>&1
  result $? "$name compiles against the standard ABI" "$out"
  # shellcheck disable=SC2086  # its arguments
  job 120 4 "$LAB_DIR/"$program
  ! hung && [ "$code" = 0 ] && grep -q 'lite-stats rank=3 ' "$out" && ldd "$LAB_DIR/$name" | grep libmpi_abi >/dev/null
  result $? "$name runs over the device" "$out"
done
plan
