# hosts: 2
# MPI_T shows knobs and counters, exact around known traffic.
. "$(dirname "$0")/lab.sh"
top=$(dirname "$0")/../..

job 60 2 env LITE_EAGER_MAX=64K "$programs/tools" 64K
passed tools
result $? "control and performance variables around short, eager, rendezvous, put and get" "$out"

# the installation's own lite-info, of the source that the tests come with
got=$("$LAB_PREFIX/bin/lite-info" --version 2>&1)
echo "$got" >"$out"
[ "$got" = "ch_lite $(sed -nE 's/^AC_INIT\(\[ch_lite\], \[([^]]*)\]\)$/\1/p' "$top/configure.ac"), wire version $(sed -nE 's/.* kWireVersion = ([0-9]+);$/\1/p' "$top/src/mplite/net/frame.h")" ]
result $? "lite-info is installed with MPICH and tells its version: $got" "$out"
"$LAB_PREFIX/bin/mpichversion" >"$out" 2>&1
grep -q "^MPICH Custom Information:.*$got\$" "$out"
result $? "mpichversion names the same" "$out"
grep -qaF "$got" "$LAB_PREFIX"/lib/libmpi.*
result $? "so does the library itself" "$out"
for page in man1/lite-info.1 man7/ch_lite.7; do
  grep -qF "\"${got%%,*}\"" "$LAB_PREFIX/share/man/$page" >"$out" 2>&1
  result $? "the page $page is installed with it" "$out"
done
LITE_CREDITS=8M "$LAB_PREFIX/bin/lite-info" --json >"$out" 2>&1 && python3 -c '
import json, sys
knobs = {knob["name"]: knob["value"] for knob in json.load(open(sys.argv[1]))["knobs"]}
sys.exit(0 if knobs["LITE_CREDITS"] == "8M" and knobs["LITE_CONTROLLER"] == sys.argv[2] else 1)' "$out" "$controller"
result $? "it tells the values in force" "$out"
plan
