# hosts: 3
# Strangers on the listeners, before the ranks connect and while they talk: garbage, port scans, slow writers, idle crowds, forged and replayed
# handshakes. They are dropped with a log line and the job goes on. Then one of each kind: the log line gives the reason that is its own.
. "$(dirname "$0")/lab.sh"

kinds="garbage scan slow crowd forged replay"
# The listener of rank I, which runs alone on host I, is the one on that host's own address: ranks inherit others from mpiexec.
port_of() { # I
  local ns=LAB_NS_$1 address=LAB_ADDR_$1
  ip netns exec "${!ns}" ss -ltnH | awk -v address="${!address}:" 'index($4, address) == 1 { sub(/.*:/, "", $4); print $4 }'
}
strangers=()
stranger() { # KIND TARGET SECONDS [CONNECTIONS]: in the background, on host 2, which runs a rank too, but these bytes are not the rank's
  local address=LAB_ADDR_$2 port
  port=$(port_of "$2")
  [ -n "$port" ] || { echo "no listener of rank $2"; exit 1; }
  "$LAB_ENTER" 2 python3 "$(dirname "$0")/stranger.py" "$1" "${!address}" "$port" "${@:3}" &
  strangers+=($!)
}
# A job while `visit` is paid to it; what the strangers say is in $LAB_DIR/strangers, whether all were content in $content.
job_with() { # MEET VISIT
  local meet=$1 visit=$2 helper
  (
    wait_for "$meet.ready" 20 || exit 1
    "$visit" "$meet"
    bad=0
    for pid in "${strangers[@]}"; do wait "$pid" || bad=1; done
    : >"$meet.stop"
    exit "$bad"
  ) >"$LAB_DIR/strangers" 2>&1 &
  helper=$!
  job 90 3 "$programs/steady" 1 "$meet"
  content=0
  wait "$helper" || content=$?
  cp "$out" "$LAB_DIR/log"
  cat "$LAB_DIR/strangers" >>"$out"
}
# in the log of rank 0 or 1
tells() { # PATTERN
  grep -E '^ch_lite\[rank [01]\]: ' "$LAB_DIR/log" | grep -F 10.77.0.3 | grep -E -- "$1" >/dev/null
}

all_at_once() { # MEET
  local target kind
  for target in 0 1; do
    for kind in $kinds; do stranger "$kind" "$target" 6; done
  done
  sleep 1.5
  : >"$1.go"
}
export LITE_STATS=1
job_with "$LAB_DIR/meet" all_at_once
result "$content" "the strangers got through to the listeners and were all turned away, with a right hello not before their proof" "$out"
passed steady
result $? "the job goes on, all its data right" "$out"
tells 'dropped|had proved'
result $? "a log line tells of the strangers and their address" "$out"
lines=$(grep -cF 10.77.0.3 "$LAB_DIR/log" || true)
[ "$lines" -gt 0 ] && [ "$lines" -le 60 ]
result $? "strangers cannot flood the log ($lines lines)" "$out"
[ "$(stat_of "$out" 0 connections)" -le 2 ] 2>/dev/null
result $? "no stranger counts as a connection" "$out"

# One connection of each kind to rank 0, whose log has room for them: eight lines in ten seconds. The crowd, which would fill it, goes to rank 1.
one_of_each() { # MEET
  local kind
  : >"$1.go"
  sleep 0.5
  for kind in garbage scan outdated astray forged replay; do stranger "$kind" 0 10 1; done
  stranger slow 0 12 1
  stranger crowd 1 2
}
job_with "$LAB_DIR/meet-one" one_of_each
result "$content" "one of each kind is turned away" "$out"
while read -r kind reason; do
  port=$(sed -nE "s/^stranger $kind: from port ([0-9]+)\$/\\1/p" "$LAB_DIR/strangers")
  [ -n "$port" ] && tells "10\.77\.0\.3 port $port(:| ).*$reason"
  result $? "$kind: the log says why: $reason" "$out"
done <<'END'
garbage bad magic
scan closed by the other side
outdated another wire version
astray wrong rank
forged bad proof of the job's secret
replay bad proof of the job's secret
slow did not prove in time
END
tells 'too many connections that have not proved'
result $? "crowd: the log says why: too many connections" "$out"
passed steady
result $? "the job goes on, all its data right" "$out"
plan
