# hosts: 2
# at once: yes
# lab: --control
# Hosts that have one address family, or a route that leads nowhere: the job runs, or it says within 10 s which addresses were tried, and from where.
. "$(dirname "$0")/lab.sh"

# eth1 is a cable between the hosts.
ip -n "$LAB_NS_0" link add eth1 type veth peer name eth1 netns "$LAB_NS_1"
for i in 0 1; do
  ns=LAB_NS_$i
  ip -n "${!ns}" addr add "10.79.0.$((i + 1))/24" dev eth1
  ip -n "${!ns}" link set eth1 up
done
addresses() { # HOST ADDRESS… : those that eth0 has from now on
  local ns=LAB_NS_$1 address
  ip -n "${!ns}" addr flush dev eth0
  for address in "${@:2}"; do
    case $address in
      *:*) ip -n "${!ns}" addr add "$address" dev eth0 nodad ;;
      *) ip -n "${!ns}" addr add "$address" dev eth0 ;;
    esac
  done
}
# The same as timed_job, and in $told_ms when a line that fits PATTERN was there; empty: never.
told_ms=
told_job() { # PATTERN SECONDS RANKS [mpiexec option…] PROGRAM…
  local begin told=$LAB_DIR/told watcher
  begin=$(date +%s%N)
  rm -f "$told"
  : >"$out"
  (
    until grep -qE "$1" "$out"; do sleep 0.1; done
    echo $((($(date +%s%N) - begin) / 1000000)) >"$told"
  ) &
  watcher=$!
  timed_job "${@:2}"
  sleep 0.3
  kill "$watcher" 2>/dev/null
  wait "$watcher" 2>/dev/null
  told_ms=$(cat "$told" 2>/dev/null)
}
ends_in_time() { ! passed messages && ! hung && [ "$elapsed_ms" -lt 10000 ]; }

# ---- one family ----
addresses 0 fd77::1/64
addresses 1 fd77::2/64
job 60 2 "$programs/messages" 2 8 100000
passed messages && ! grep -qE 'does not answer|no connection' "$out"
result $? "hosts with IPv6 alone" "$out"
job 90 2 "$programs/dynamic" spawn 2
passed spawn
result $? "processes that are spawned by such ranks reach them" "$out"

addresses 0 10.77.0.1/24
timed_job 60 2 "$programs/messages" 2 8 100000
ends_in_time
result $? "a host with IPv4 alone and one with IPv6 alone: an error at once" "$out"
grep -E 'lost rank [01] on host h[01]( [^)]*\))?: its host and that of this rank have no address family in common' "$out" >/dev/null
result $? "the families are the reason" "$out"
grep -E 'rank 0 lost rank 1 on host h1 \(fd77::2 port [0-9]+.*this rank has interface eth0, 10\.77\.0\.1.*LITE_IFACE, LITE_FAMILY|rank 1 lost rank 0 on host h0 \(10\.77\.0\.1 port [0-9]+.*this rank has interface eth0, fd77::2.*LITE_IFACE, LITE_FAMILY' "$out" >/dev/null
result $? "both ranks' addresses and the cure are named" "$out"

addresses 0 10.77.0.1/24 fd77::1/64
job 60 2 "$programs/messages" 2 8 100000
passed messages
result $? "a host with both families and one with IPv6 alone" "$out"
addresses 1 10.77.0.2/24
job 60 2 "$programs/messages" 2 8 100000
passed messages
result $? "a host with both families and one with IPv4 alone" "$out"

# ---- a default route that is dead: nobody answers for its gateway, or what it gets is lost ----
export LITE_FAMILY=ipv4
gateways() { # STEP lost|absent : of host 0 in 10.77, of host 1 in 10.(77 + STEP)
  local i
  for i in 0 1; do
    ns=LAB_NS_$i
    ip -n "${!ns}" route replace default via "10.$((77 + $1 * i)).0.254" dev eth0
    if [ "$2" = lost ]; then ip -n "${!ns}" neigh replace "10.$((77 + $1 * i)).0.254" lladdr 02:00:00:00:00:01 dev eth0; fi
  done
}
addresses 0 10.77.0.1/24
addresses 1 10.77.0.2/24
gateways 0 absent
LITE_IFACE=eth0,eth1 job 60 2 "$programs/messages" 2 8 100000
passed messages && ! grep -qE 'does not answer|no connection' "$out"
result $? "it does not matter where the hosts are neighbours" "$out"

addresses 1 10.80.0.2/24
for gateway in absent lost; do
  gateways 3 "$gateway"
  LITE_IFACE=eth0,eth1 timed_job 60 2 "$programs/messages" 2 8 100000
  passed messages && [ "$elapsed_ms" -lt 10000 ]
  result $? "another network is taken where the gateway is $gateway" "$out"
  reason='no answer'
  [ "$gateway" = lost ] || reason='No route to host'
  said='no connection to rank 1 on host h1 for [89] s: tried 10\.80\.0\.2 port [0-9]+ from 10\.77\.0\.1'
  said+="|no connection to rank 0 on host h0 for [89] s: tried 10\.77\.0\.1 port [0-9]+ from 10\.80\.0\.2"
  LITE_IFACE=eth0 LITE_CONNECT_TIMEOUT=14s told_job "$said" 60 2 "$programs/messages" 2 8 100000
  ! passed messages && ! hung && [ -n "$told_ms" ] && [ "$told_ms" -lt 10000 ]
  result $? "where it is the only way, it is said within 10 s what was tried, and from where (${told_ms:-never} ms)" "$out"
  grep -E 'no connection to' "$out" | grep -F "($reason)" | grep -qE 'tried for another [56] s'
  result $? "with the reason, and for how long it is tried" "$out"
  [ "$(grep -cE "$said" "$out")" -le 2 ] && grep -E 'lost rank [01]' "$out" >/dev/null
  result $? "once per rank, and the error comes when the time is over" "$out"
done
ip -n "$LAB_NS_1" link set eth1 arp off
ip -n "$LAB_NS_0" neigh flush dev eth1
LITE_IFACE=eth0,eth1 LITE_CONNECT_TIMEOUT=14s told_job 'tried 10\..* from 10\..*, 10\.79\.0\.[12] port [0-9]+ from 10\.79\.0\.[12]' 60 2 "$programs/messages" 2 8 100000
! passed messages && ! hung && [ -n "$told_ms" ] && [ "$told_ms" -lt 10000 ]
result $? "where both networks lead nowhere, both are named within 10 s (${told_ms:-never} ms)" "$out"
grep -E 'tried from interface eth0, 10\.(77\.0\.1|80\.0\.2) and interface eth1, 10\.79\.0\.[12]: check' "$out" >/dev/null
result $? "the error names the interfaces and addresses that were used" "$out"
plan
