# hosts: 3
# Strangers on the listeners, before the ranks connect and while they talk: garbage, port scans, slow writers, idle crowds, forged and replayed
# handshakes. They are dropped with a log line and the job goes on.
. "$(dirname "$0")/lab.sh"

meet=$LAB_DIR/meet
kinds="garbage scan slow crowd forged replay"
# The listener of rank I, which runs alone on host I, is the one on that host's own address: ranks inherit others from mpiexec.
port_of() { # I
  local ns=LAB_NS_$1 address=LAB_ADDR_$1
  ip netns exec "${!ns}" ss -ltnH | awk -v address="${!address}:" 'index($4, address) == 1 { sub(/.*:/, "", $4); print $4 }'
}
(
  wait_for "$meet.ready" 20 || exit 1
  strangers=()
  for target in 0 1; do
    address=LAB_ADDR_$target
    port=$(port_of "$target")
    [ -n "$port" ] || { echo "no listener of rank $target"; exit 1; }
    for kind in $kinds; do
      # host 2 is the stranger: it runs a rank too, but these bytes are not the rank's
      "$LAB_ENTER" 2 python3 "$(dirname "$0")/stranger.py" "$kind" "${!address}" "$port" 6 &
      strangers+=($!)
    done
  done
  sleep 1.5
  : >"$meet.go"
  bad=0
  for pid in "${strangers[@]}"; do wait "$pid" || bad=1; done
  : >"$meet.stop"
  exit "$bad"
) >"$LAB_DIR/strangers" 2>&1 &
helper=$!
export LITE_STATS=1
job 90 3 "$programs/steady" 3 "$meet"
helper_code=0
wait "$helper" || helper_code=$?
cat "$LAB_DIR/strangers" >>"$out"
result "$helper_code" "the strangers got through to the listeners and were all turned away" "$out"
[ "$code" = 0 ] && grep -qE '^steady: [0-9]+ checks, 0 failed' "$out"
result $? "the job goes on, all its data right" "$out"
grep -v '^lite-stats' "$out" | grep -F 10.77.0.3 | grep -E 'dropped|had proved' >/dev/null
result $? "a log line tells of the strangers and their address" "$out"
lines=$(grep -v '^lite-stats' "$out" | grep -cF 10.77.0.3 || true)
[ "$lines" -gt 0 ] && [ "$lines" -le 60 ]
result $? "strangers cannot flood the log ($lines lines)" "$out"
[ "$(stat_of "$out" 0 connections)" -le 4 ] 2>/dev/null
result $? "no stranger counts as a connection" "$out"
plan
