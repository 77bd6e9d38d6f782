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

# 32 MiB take 0.27 s at 1 Gb/s
# shellcheck disable=SC2016
"$net_lab" --hosts 2 --rate 1gbit --counters exec sh -c '
"$LAB_ENTER" 1 python3 -c "
import socket, time
server = socket.create_server((\"10.77.0.2\", 5001))
link = server.accept()[0]
begin, total = time.monotonic(), 0
while data := link.recv(1 << 20):
    total += len(data)
print(\"seconds\", time.monotonic() - begin, \"bytes\", total)
" & sleep 0.5
"$LAB_ENTER" 0 python3 -c "
import socket
socket.create_connection((\"10.77.0.2\", 5001)).sendall(bytes(32 << 20))
"; wait' >"$out" 2>&1
awk '/^seconds/ { good = $2 > 0.24 && $2 < 0.6 && $4 == 33554432 } END { exit !good }' "$out"
result $? "--rate 1gbit shapes to 1 Gb/s" "$out"
grep -qE 'h0 received [0-9]+ bytes, sent 3[34][0-9]{6} bytes' "$out"
result $? "--counters tells the bytes that crossed" "$out"

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
