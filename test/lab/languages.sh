# hosts: 2
# controllers: sigio
# A user's CMake project finds the installation with nothing but PATH set, in C and C++, and in Fortran where the installation has it; its programs run over the device, MPI-IO too.
. "$(dirname "$0")/lab.sh"

project=$(dirname "$0")/../mpi/cmake
languages="c cxx" fortran=OFF
if configured fortran && command -v gfortran >/dev/null; then fortran=ON languages="$languages f90 f08"; fi
if ! command -v cmake >/dev/null; then
  result 0 "a CMake project # SKIP cmake is missing (apt-get install cmake)"
  plan
  exit 0
elif ! configured cxx; then
  result 0 "a CMake project # SKIP the installation was configured with --disable-cxx (quickstart --small)"
  plan
  exit 0
fi
PATH=$LAB_PREFIX/bin:$PATH cmake -S "$project" -B "$LAB_DIR/build" -DFORTRAN=$fortran >"$out" 2>&1 && grep -qF "$LAB_PREFIX" "$LAB_DIR/build/CMakeCache.txt"
result $? "find_package(MPI) finds it: $languages" "$out"
cmake --build "$LAB_DIR/build" >"$out" 2>&1
result $? "the project builds" "$out"
export LITE_STATS=1
for language in $languages; do
  job 60 4 "$LAB_DIR/build/sum_$language"
  [ "$code" = 0 ] && grep -q 'lite-stats rank=3 ' "$out" && [ "$(stat_of "$out" 0 short_msgs)" != 0 ]
  result $? "sum_$language runs over the device" "$out"
done
if ! configured romio; then
  result 0 "MPI-IO # SKIP the installation was configured with --disable-romio"
else
  job 60 4 "$LAB_DIR/build/file_c" "$LAB_DIR/file"
  [ "$code" = 0 ] && [ "$(stat -c %s "$LAB_DIR/file")" = 1024000 ]
  result $? "a file that four ranks write and read collectively" "$out"
fi
plan
