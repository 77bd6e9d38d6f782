# hosts: 2
# LITE_TRACE: a job with messages of each protocol leaves files that hold what happened, in order, and
# that can be joined and drawn. What is asked of them: test/unit/trace_check.py.
. "$(dirname "$0")/lab.sh"
top=$(dirname "$0")/../..

longest=20
[ "$controller" != sync ] || longest=0.05  # nothing comes while it computes
job 90 2 env LITE_TRACE="$LAB_DIR/run" "$programs/trace" "$longest" others
passed trace
result $? "a job with messages of each protocol, traced" "$out"
python3 "$top/test/unit/trace_check.py" --no-self "$LAB_DIR/run" "$controller" >"$LAB_DIR/judged" 2>&1
mapfile -t judged <"$LAB_DIR/judged"
for line in "${judged[@]}"; do
  case $line in
    "ok "*) result 0 "${line#ok }" ;;
    "not-ok "*) result 1 "${line#not-ok }" "$LAB_DIR/judged" ;;
  esac
done
grep -q '^ok the picture' "$LAB_DIR/judged"
result $? "all of it was judged" "$LAB_DIR/judged"

# Without MPI_Finalize. (After MPI_Abort the launcher may end the rank in the middle of its file.)
job 60 2 env LITE_TRACE="$LAB_DIR/end" "$programs/trace" -1
python3 -c 'import json, sys; sys.exit(not json.load(open(sys.argv[1]))["traceEvents"])' \
  "$LAB_DIR/end.0.json" 2>>"$out" && [ "$code" != 0 ]
result $? "a rank that ends without MPI_Finalize writes its trace" "$out"
plan
