# hosts: 2
# controllers: sigio
# The net-lab keeps its promises: hosts apart, exit codes, shaping, nothing left behind. Runs net-labs inside a net-lab.
. "$(dirname "$0")/lab.sh"
net_lab=$(dirname "$0")/../../scripts/net-lab

"$net_lab" --hosts 3 run --prefix "$LAB_PREFIX" -n 3 sh -c 'hostname; cat /proc/sys/net/ipv4/tcp_congestion_control' >"$out" 2>&1
[ "$(sort -u "$out" | tr '\n' ' ')" = "cubic h0 h1 h2 " ]
result $? "each rank is on a host with a name of its own and cubic" "$out"
# shellcheck disable=SC2016
"$net_lab" --hosts 2 exec sh -c '"$LAB_ENTER" 1 python3 -c "
import socket
for host in (\"h0\", \"10.77.0.1\", \"fd77::1\"):
    try:
        socket.create_connection((host, 9), 5)
    except ConnectionRefusedError:
        print(\"reached\", host)
"' >"$out" 2>&1
[ "$(grep -c '^reached' "$out")" = 3 ]
result $? "hosts reach each other by name, IPv4 and IPv6" "$out"
# shellcheck disable=SC2016
"$net_lab" --hosts 2 --direct --mtu 9000 exec sh -c 'echo "port ${LAB_PORT_0-none}"; "$LAB_ENTER" 1 ip link show eth0; "$LAB_ENTER" 1 python3 -c "
import socket
for host in (\"h0\", \"fd77::1\"):
    try:
        socket.create_connection((host, 9), 5)
    except ConnectionRefusedError:
        print(\"reached\", host)
"' >"$out" 2>&1
[ "$(grep -c '^reached' "$out")" = 2 ] && grep -q 'mtu 9000' "$out" && grep -q '^port none' "$out"
result $? "two hosts on one cable, with the MTU that was asked for" "$out"
"$net_lab" --hosts 3 --direct exec true >"$out" 2>&1
[ $? = 2 ] && grep -q "direct is for two hosts" "$out"
result $? "three hosts on one cable are refused" "$out"
"$net_lab" --hosts 1 exec sh -c 'exit 7' >"$out" 2>&1
[ $? = 7 ]
result $? "the exit code is the program's" "$out"

# From host 0 to host 1 over network K: the seconds that COUNT connections of BYTES take, in a lab of these options.
streams() { # K COUNT BYTES OPTION…
  local k=$1 count=$2 bytes=$3
  shift 3
  # shellcheck disable=SC2016
  K=$k COUNT=$count BYTES=$bytes STREAMS=$(dirname "$0")/streams.py "$net_lab" --hosts 2 "$@" exec sh -c '
    "$LAB_ENTER" 1 python3 "$STREAMS" receive "10.77.$K.2" 5001 "$COUNT" &
    "$LAB_ENTER" 0 python3 "$STREAMS" send "10.77.$K.2" 5001 "$COUNT" "$BYTES"
    wait' >>"$out" 2>&1
  awk -v bytes=$((count * bytes)) '/^seconds/ { if ($4 == bytes) seconds = $2 } END { print seconds + 0 }' "$out"
}
within() { # SECONDS LEAST MOST
  awk "BEGIN { exit !($1 > $2 && $1 < $3) }"
}
# 32 MiB take 0.27 s at 1 Gb/s
: >"$out"
within "$(streams 0 1 $((32 << 20)) --rate 1gbit --counters)" 0.24 0.6
result $? "--rate 1gbit shapes to 1 Gb/s" "$out"
grep -qE 'h0 received [0-9]+ bytes, sent 3[34][0-9]{6} bytes' "$out"
result $? "--counters tells the bytes that crossed" "$out"
# 8 MiB: 0.07 s and 0.27 s
: >"$out"
within "$(streams 0 1 $((8 << 20)) --networks 2 --rate 1gbit,250mbit)" 0.05 0.2 &&
  within "$(streams 1 1 $((8 << 20)) --networks 2 --rate 1gbit,250mbit)" 0.24 0.6
result $? "--networks 2: each with its rate" "$out"
if ! command -v nft >/dev/null; then
  result 0 "--flow-rate # SKIP nft is missing (apt-get install nftables)"
elif ! "$net_lab" --hosts 2 --flow-rate 250mbit exec true >"$out" 2>&1 && grep 'in this kernel\|apart here' "$out" >/dev/null; then
  result 0 "--flow-rate # SKIP this kernel has no $(grep -oE 'sch_htb|nft_hash' "$out")"
else
  : >"$out"
  one=$(streams 0 1 $((8 << 20)) --flow-rate 250mbit)
  : >"$out"
  # two of them may have one class by chance
  within "$one" 0.24 0.6 && within "$(streams 0 4 $((8 << 20)) --flow-rate 250mbit)" 0.24 "2.6 * $one"
  result $? "--flow-rate 250mbit: so much for each connection" "$out"
  : >"$out"
  # 48 MiB take 0.8 s at 500 Mb/s
  within "$(streams 0 6 $((8 << 20)) --rate 500mbit --flow-rate 250mbit)" 0.7 2.2
  result $? "--rate 500mbit holds for all of them together" "$out"
fi
# shellcheck disable=SC2016
"$net_lab" --hosts 2 --networks 2 --cut 1@0.5-1.5 exec sh -c '
  for round in $(seq 40); do
    "$LAB_ENTER" 0 ip link show "eth$((round % 2))" | grep -oE "eth[01]|state [A-Z]*" | tr "\n" " "
    echo; sleep 0.05
  done' >"$out" 2>&1
[ "$(grep eth1 "$out" | uniq | grep -oE 'UP|DOWN' | tr '\n' ' ')" = "UP DOWN UP " ] && ! grep 'eth0.*DOWN' "$out" >/dev/null
result $? "--cut 1@0.5-1.5: network 1 is cut, and put back, network 0 stays" "$out"
for wrong in "--networks 9" "--cut 1@2" "--cut 0@3-2" "--cut eth0" "--rate 1gbit,1gbit"; do
  # shellcheck disable=SC2086
  "$net_lab" --hosts 2 $wrong exec true >"$out" 2>&1
  [ $? = 2 ] && grep -qF -- "${wrong%% *}" "$out"
  result $? "$wrong is refused" "$out"
done

"$net_lab" --hosts 2 exec sleep 300 >"$out" 2>&1 &
victim=$!
sleep 1.5
pid=$(ip netns list | sed -nE "s/^lite-($victim)-h0.*/\1/p")
[ "$pid" = "$victim" ]
result $? "a lab is named by its process" "$out"
kill -TERM "$victim"
wait "$victim"
[ $? = 143 ] && ! ip netns list | grep "^lite-$victim-" >/dev/null
result $? "a lab that is ended by a signal cleans up" "$out"
"$net_lab" --hosts 2 exec sleep 300 >"$out" 2>&1 &
victim=$!
sleep 1.5
kill -KILL "$victim"
wait "$victim" 2>/dev/null
ip netns list | grep "^lite-$victim-" >/dev/null && "$net_lab" --clean >>"$out" 2>&1 && ! ip netns list | grep "^lite-$victim-" >/dev/null &&
  ! compgen -G "${TMPDIR:-/tmp}/lite-$victim-lab.*" >/dev/null
result $? "what a killed lab leaves behind is removed by the next" "$out"
"$net_lab" --hosts nine exec true >"$out" 2>&1
nine=$?
[ "$nine" != 0 ] && grep -q "hosts nine" "$out"
result $? "a bad number of hosts is refused" "$out"
plan
