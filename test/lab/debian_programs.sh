# hosts: 2
# controllers: sigio
# Programs and libraries of Debian's packages, unmodified, with four ranks on two hosts: their results are those of one rank. What is not installed is skipped, and its package named.
. "$(dirname "$0")/lab.sh"

stand_in_for_debians
export LITE_STATS=1
skip() { # NAME WHY
  result 0 "$1 # SKIP $2"
}
# The job before was over the device: rank 3 says so.
over_the_device() { [ "$(stat_of "$out" 3 short_msgs)" -gt 0 ]; }

# ---- ScaLAPACK's testers: they check residuals by themselves ----

tests=$(dirname "$(ls /usr/lib/*/scalapack/mpich-tests/xdlu 2>/dev/null || echo none/none)")
if ! configured fortran; then
  skip ScaLAPACK "the installation was configured with --disable-fortran"
elif [ "$tests" = none ]; then
  skip ScaLAPACK "not here (apt-get install scalapack-mpi-test)"
else
  cd "$tests" || exit 1 # their input is there
  for tester in xdlu xdqr xzllt xdbrd; do
    job 120 4 "./$tester"
    passed=$(grep -oE '[0-9]+ tests completed and passed residual checks' "$out" | grep -oE '^[0-9]+' | head -n 1)
    [ "$code" = 0 ] && [ "${passed:-0}" -gt 0 ] && grep -qE ' 0 tests completed and failed residual checks' "$out" && over_the_device
    result $? "ScaLAPACK's $tester: ${passed:-no} tests passed, none failed" "$out"
  done
  cd / || exit 1
fi

# ---- NWChem: the energy of a molecule ----

program=$(command -v nwchem.mpich || true)
energies() { # FILE
  sed -nE 's/^ *Total (SCF|MP2) energy *=? +(-[0-9.]+).*/\1 \2/p' "$1"
}
if ! configured fortran; then
  skip NWChem "the installation was configured with --disable-fortran"
elif [ -z "$program" ]; then
  skip NWChem "not here (apt-get install nwchem-mpich)"
else
  for ranks in 1 4; do
    mkdir -p "$LAB_DIR/water-$ranks"
    cat >"$LAB_DIR/water-$ranks/water.nw" <<INPUT
start water
scratch_dir $LAB_DIR/water-$ranks
permanent_dir $LAB_DIR/water-$ranks
geometry units angstrom
  O 0.0  0.000 0.000
  H 0.0  0.757 0.587
  H 0.0 -0.757 0.587
end
basis
  * library 6-31g**
end
scf
  thresh 1e-8
end
task scf gradient
task mp2 energy
INPUT
    job 200 "$ranks" "$program" "$LAB_DIR/water-$ranks/water.nw"
    energies "$out" >"$LAB_DIR/energies-$ranks"
    [ "$code" = 0 ] && [ "$(wc -l <"$LAB_DIR/energies-$ranks")" -ge 2 ]
    result $? "NWChem: a molecule of water on $ranks ranks" "$out"
  done
  over_the_device && paste "$LAB_DIR/energies-1" "$LAB_DIR/energies-4" >"$out" &&
    awk 'NF != 4 || $1 != $3 || ($2 - $4) ^ 2 > 1e-14 { exit 1 }' "$out"
  result $? "and the energies of one rank: $(tr '\n' ' ' <"$LAB_DIR/energies-1")" "$out"
fi

# ---- HDF5: a file that all write ----

here=$(cd "$(dirname "$0")" && pwd)
library=$(ls -d /usr/lib/*/hdf5/mpich 2>/dev/null || true)
if ! configured romio; then
  skip HDF5 "the installation was configured with --disable-romio"
elif [ -z "$library" ]; then
  skip HDF5 "not here (apt-get install libhdf5-mpich-dev)"
else
  "$LAB_PREFIX/bin/mpicc" -I/usr/include/hdf5/mpich "$here/../mpi/debian/hdf5_file.c" -o "$LAB_DIR/hdf5_file" -L"$library" -lhdf5 >"$out" 2>&1
  result $? "a program with Debian's HDF5 is compiled" "$out"
  sums=
  for ranks in 1 4; do
    job 60 "$ranks" "$LAB_DIR/hdf5_file" "$LAB_DIR/table-$ranks.h5"
    [ "$code" = 0 ] && grep -q '^hdf5_file: 0 wrong, ' "$out"
    result $? "HDF5: a table that $ranks ranks write and read" "$out"
    sums="$sums$(sed -n 's/^hdf5_file: 0 wrong, //p' "$out" | sort -u)"$'\n'
  done
  over_the_device && [ "$(sort -u <<<"$sums" | grep -c .)" = 1 ]
  result $? "and the sum of one rank" "$out"
fi
plan
