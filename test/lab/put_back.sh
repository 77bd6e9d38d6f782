# hosts: 2
# lab: --networks 2 --rate 200mbit --control
# A network is cut in the middle of verified traffic and put back twelve seconds later: the job goes on when the silence has been noticed (five to six
# seconds), every byte is right, and ten seconds after the network is back it is used again. Once that of a lane, and once that of the first connection (LITE_RESUME).
. "$(dirname "$0")/lab.sh"
export LITE_STATS=1 LITE_LANES=2 LITE_KEEPALIVE=1:1
CUT=3 BACK=15 USED=25 END=30 # seconds from the start of the job

bytes() { ip -n "$LAB_SWITCH" -s link show dev "$LAB_PORT_0" | awk '/[RT]X:/ { getline; sum += $1 } END { print sum }'; }

cut_and_put_back() { # WHAT VARIABLE=VALUE…
  local what=$1 before after
  shift
  {
    sleep $CUT
    ip -n "$LAB_SWITCH" link set "$LAB_PORT_0" down
    sleep $((BACK - CUT))
    ip -n "$LAB_SWITCH" link set "$LAB_PORT_0" up
    sleep $((USED - BACK))
    bytes
    sleep 2
    bytes
  } >"$LAB_DIR/bytes" &
  job 90 2 env "$@" "$programs/resume" $END 1000000
  wait
  passed resume
  result $? "$what is cut and put back: every byte is right" "$out"
  awk '/^rounds/ { exit !($4 + 0 < 8) }' <<<"$(sed -n 's/, the longest/ longest/p' "$out")" && [ "$(stat_of "$out" 0 resume_gaps)" = 0 ]
  result $? "$what is cut: the job goes on within eight seconds" "$out"
  { read -r before; read -r after; } <"$LAB_DIR/bytes"
  [ $((after - before)) -gt 1000000 ]
  result $? "$what is put back: used again ten seconds later" "$LAB_DIR/bytes"
  echo "# $(sed -n 's/^rounds/rounds/p' "$out"); $((after - before)) bytes in two seconds over the network that was put back"
}

cut_and_put_back "the network of a lane" LITE_IFACE=eth1,eth0
cut_and_put_back "the network of the first connection" LITE_IFACE=eth0,eth1 LITE_RESUME=on
plan
