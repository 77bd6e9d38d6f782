# hosts: 2
# controllers: sigio
# scripts/compare measures, prints, draws and judges; on test hosts of its own, and on hosts that it is given; what hangs or goes astray is told, not waited for.
. "$(dirname "$0")/lab.sh"

compare=$(dirname "$0")/../../scripts/compare
got=$LAB_DIR/compare
small=(--quick --patterns "pingpong,rate" --sizes "8,64K" --rounds 2 --seconds 0.03)

run_compare() { # SECONDS ARGUMENT…: exit code in $code, stdout in $out, stderr in $out.err
  local limit=$1
  shift
  code=0
  timeout -k 20 "$limit" "$compare" "$@" --out "$got" >"$out" 2>"$out.err" </dev/null || code=$?
}
judged() { # SENTENCE PYTHON-CONDITION: on the points of $got/compare.json
  python3 - "$got/compare.json" "$2" <<'END' >"$out.judged" 2>&1
import json
import sys
with open(sys.argv[1], encoding="utf-8") as text:
    result = json.load(text)
points = {(p["pattern"], p["bytes"], p["name"]): p for p in result["points"]}
about = result["about"]
if not eval(sys.argv[2]):
    print(json.dumps(result["points"], indent=1))
    sys.exit(1)
END
  result $? "$1" "$out.judged"
}

run_compare 300 "lite=$LAB_PREFIX" "again=$LAB_PREFIX,LITE_EAGER_MAX=16K" "${small[@]}"
[ "$code" = 0 ]
result $? "a quick comparison runs" "$out.err"
judged "every installation has every point, right, in every round" \
  'len(points) == 12 and all(p["verified"] and p["rounds"] == 2 for p in points.values())'
judged "ping-pong has plausible times, with the spread around the median" \
  'all(1 < points["pingpong", 8, n]["us"]["low"] <= points["pingpong", 8, n]["us"]["median"] <= points["pingpong", 8, n]["us"]["high"] for n in about["names"] if n != "tcp-sigio")'
judged "ratios to raw TCP are there, and raw TCP has none" \
  'all((p["speed_of_raw"] is None) == (p["name"] == "tcp-spin") for p in points.values())'
judged "it says what ran, with which settings and cutoffs" \
  '"ch4:lite" in about["variants"]["lite"]["library"] and about["variants"]["again"]["settings"]["LITE_EAGER_MAX"] == "16K" and about["variants"]["again"]["cutoffs"]["EAGER_MAX"] == 16384'
[ "$(grep -cE '^ +(8|64K) (tcp-spin|tcp-block|lite|again) +[0-9]' "$got/compare.txt")" = 12 ]
result $? "the table has a line for each point" "$got/compare.txt"
if grep -q "apt-get install python3-matplotlib" "$out.err"; then
  echo "# matplotlib is not here"
else
  [ -s "$got/compare-none.svg" ] && [ -s "$got/compare-none.png" ]
fi
drawn=$?
[ "$drawn" = 0 ] && ! grep -q Traceback "$out.err"
result $? "it draws, or says which package it needs for that" "$out.err"
timeout 60 "$compare" --from "$got/compare.json" --no-plots --out "$LAB_DIR/again" >"$out" 2>&1 && cmp "$out" "$got/compare.txt" >/dev/null
result $? "a saved result gives the same table" "$out"

# the same on "real" hosts, reached by something like ssh: those of this lab
code=0
timeout -k 20 200 "$LAB_ENTER" 0 "$compare" "lite=$LAB_PREFIX" "${small[@]}" --hosts h0,h1 --ssh "$LAB_DIR/launch" --out "$got" --no-plots >"$out" 2>&1 </dev/null || code=$?
[ "$code" = 0 ]
result $? "it runs on hosts that it is given" "$out"
judged "with all points there too" 'len(points) == 9 and about["where"] == "hosts h0,h1" and all(p["verified"] for p in points.values())'

# installations that do not do what they should
fake=$LAB_DIR/fake
mkdir -p "$fake/bin"
ln -s "$LAB_PREFIX/bin/mpicc" "$fake/bin/mpicc"
printf '#!/bin/sh\nsleep 4321\n' >"$fake/bin/mpiexec"
chmod +x "$fake/bin/mpiexec"
begin=$(date +%s)
run_compare 200 "fake=$fake" "${small[@]}" --no-raw --no-plots --timeout 4
[ "$code" = 1 ] && grep -q "fake: pingpong at none: no end within 4 s" "$out.err" && [ $(($(date +%s) - begin)) -lt 90 ]
result $? "an installation that hangs is given up, and told" "$out.err"
! pgrep -f 'sleep 432[1]' >/dev/null
result $? "and nothing of it stays behind"
cat >"$fake/bin/mpiexec" <<END
#!/bin/bash
exec "$LAB_PREFIX/bin/mpiexec" "\${@/h0,h1/h0}"
END
run_compare 200 "fake=$fake" "${small[@]}" --no-raw --no-plots --timeout 30
[ "$code" = 1 ] && grep -q "it took another way" "$out.err"
result $? "bytes that do not cross the link are noticed" "$out.err"
run_compare 60 "x=/nowhere" "${small[@]}"
[ "$code" = 2 ] && grep -q "no mpicc in /nowhere/bin: is x installed there?" "$out.err"
result $? "an installation that is not there is refused" "$out.err"

mkdir -p "$LAB_DIR/tmp"
TMPDIR=$LAB_DIR/tmp "$compare" "lite=$LAB_PREFIX" "${small[@]}" --rounds 50 --out "$got" >"$out" 2>&1 </dev/null &
victim=$!
hosts_of() { ip netns list | grep -c "^lite-$1-" || true; }
lab=
for ((i = 0; i < 300; i++)); do
  lab=$(pgrep -P "$victim" -f net-lab || true)
  [ -z "$lab" ] || [ "$(hosts_of "$lab")" = 0 ] || break
  sleep 0.1
done
[ -n "$lab" ] && [ "$(hosts_of "$lab")" -gt 0 ]
result $? "a comparison has test hosts of its own" "$out"
sleep 1
kill -TERM "$victim"
wait "$victim"
[ $? = 143 ] && [ "$(hosts_of "$lab")" = 0 ] && [ -z "$(ls -A "$LAB_DIR/tmp")" ]
result $? "one that is ended by a signal takes its hosts and files with it" "$out"
plan
