# hosts: 3
# at once: yes
# Ranks that compute for longer than any time limit before anybody has talked to them, called by one rank and by 16 at a time, also with a
# crowd of silent strangers on every listener: the job runs to its end. And they let callers in while they compute. FIRST_CONTACT_SECONDS=120 is the
# same with the limits as they are by default, and 16 callers beside the strangers, too.
. "$(dirname "$0")/lab.sh"

seconds=${FIRST_CONTACT_SECONDS:-6}
if [ -z "${FIRST_CONTACT_SECONDS-}" ]; then export LITE_CONNECT_TIMEOUT=2s LITE_KEEPALIVE=1:1; fi
export MPIR_CVAR_NOLOCAL=1

runs() { # RANKS WHO WHAT
  job $((${seconds%.*} + 60)) "$1" "$programs/first_contact" "$2" "$3" "$seconds"
  passed first_contact
}
runs 2 one idle
result $? "a rank that computes for $seconds s is called, and nothing is outstanding there" "$out"
runs 17 one idle
result $? "16 ranks call one that computes, and nothing is outstanding there" "$out"
runs 2 one eager
result $? "an eager message to a rank that computes with nothing outstanding, first word to it, leaves at once" "$out"
runs 9 one eager
result $? "8 such messages leave at once" "$out"
runs 9 others eager
result $? "such messages to 8 ranks leave at once" "$out"
runs 17 one posted
result $? "16 ranks call one that computes with its receives posted" "$out"
runs 17 others posted
result $? "one rank calls 16 that compute with their receives posted" "$out"

# ---- strangers ----
# longer than a stranger's time (Handshaker::kHandshakeNs)
long=$((${seconds%.*} > 12 ? ${seconds%.*} : 12))
ranks=7
[ -z "${FIRST_CONTACT_SECONDS-}" ] || ranks=17
meet=$LAB_DIR/meet
crowd() { # SECONDS
  wait_for "$meet.ready" 30 || return 1
  local host ns address port pids=() listeners=0 bad=0
  for host in 0 1 2; do
    ns=LAB_NS_$host address=LAB_ADDR_$host
    for port in $(ip netns exec "${!ns}" ss -ltnH | awk -v address="${!address}:" 'index($4, address) == 1 { sub(/.*:/, "", $4); print $4 }'); do
      "$LAB_ENTER" 2 python3 "$(dirname "$0")/stranger.py" crowd "${!address}" "$port" "$1" &
      pids+=($!)
      listeners=$((listeners + 1))
    done
  done
  sleep 2
  : >"$meet.go"
  for pid in "${pids[@]}"; do wait "$pid" || bad=1; done
  echo "$listeners listeners"
  [ "$bad" = 0 ] && [ "$listeners" -ge "$ranks" ]
}
for what in posted idle eager; do
  rm -f "$meet".*
  crowd $((long + 4)) >"$LAB_DIR/crowd" 2>&1 &
  helper=$!
  job $((long + 90)) "$ranks" "$programs/first_contact" one "$what" "$long" "$meet"
  helper_code=0
  wait "$helper" || helper_code=$?
  cat "$LAB_DIR/crowd" >>"$out"
  passed first_contact
  result $? "with 200 silent strangers on each listener as well ($what)" "$out"
  result "$helper_code" "the strangers were there" "$out"
done
plan
