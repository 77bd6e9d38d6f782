# hosts: 2
# at once: yes
# lab: --control
# Hosts with several networks: whichever leads to the others is found, in either order; what does not is named with its reason.
. "$(dirname "$0")/lab.sh"

# eth1 is a cable between the hosts; eth2 has the same address on both, as behind NAT. No packet gets through eth0 while its port is cut,
# and its carrier stays.
ip -n "$LAB_NS_0" link add eth1 type veth peer name eth1 netns "$LAB_NS_1"
for i in 0 1; do
  ns=LAB_NS_$i
  ip -n "${!ns}" addr add "10.79.0.$((i + 1))/24" dev eth1
  ip -n "${!ns}" link set eth1 up
  ip -n "${!ns}" link add eth2 type veth peer name nat
  ip -n "${!ns}" addr add 10.0.2.15/24 dev eth2
  ip -n "${!ns}" link set eth2 up
  ip -n "${!ns}" link set nat up
done
cut_eth0() { ip -n "$LAB_SWITCH" link set "$LAB_PORT_1" nomaster; }
mend_eth0() { ip -n "$LAB_SWITCH" link set "$LAB_PORT_1" master br0; }
export LITE_FAMILY=ipv4

cut_eth0
start=$SECONDS
LITE_IFACE=eth0,eth1 job 60 2 "$programs/messages" 2 8 100000
passed messages && [ $((SECONDS - start)) -lt 20 ]
result $? "the second network is taken where the first leads nowhere" "$out"
grep -qE 'rank [01] does not answer at 10\.77\.0\.[12] port [0-9]+: another of its addresses does' "$out"
result $? "it is said which address did not answer" "$out"
LITE_IFACE=eth1,eth0 job 60 2 "$programs/messages" 2 8 100000
passed messages && ! grep -q 'does not answer' "$out"
result $? "nothing is said where the first one leads there" "$out"
LITE_IFACE=eth0 LITE_CONNECT_TIMEOUT=3s job 60 2 "$programs/messages" 2 8 100000
! passed messages && ! hung && grep -q '10\.77\.0\.[12]' "$out"
result $? "one address alone is tried as ever, and named in the error" "$out"
mend_eth0

ip -n "$LAB_NS_1" link set eth1 arp off
ip -n "$LAB_NS_0" neigh flush dev eth1
LITE_IFACE=eth1,eth0 job 60 2 "$programs/messages" 2 8 100000
passed messages && grep -qE 'does not answer at 10\.79\.0\.[12] ' "$out"
result $? "so it is in the other order" "$out"
ip -n "$LAB_NS_1" link set eth1 arp on

LITE_IFACE=eth2,eth0 job 60 2 "$programs/messages" 2 8 100000
passed messages && ! grep -q '10\.0\.2\.15' "$out"
result $? "an address that both hosts have is left out" "$out"
LITE_IFACE=eth2,eth0 job 90 2 "$programs/dynamic" spawn 2
passed spawn
result $? "processes that are spawned by such ranks reach them" "$out"
LITE_IFACE=eth2 job 60 2 "$programs/messages" 2 8 100000
! passed messages && ! hung && grep -q 'have the same address (10\.0\.2\.15)' "$out"
result $? "without another one the ranks are named at the start" "$out"

cut_eth0
LITE_IFACE=eth0,eth2 LITE_CONNECT_TIMEOUT=6s job 60 2 "$programs/messages" 2 8 100000
! passed messages && ! hung && grep -q '10\.77\.0\.[12]' "$out"
result $? "where no address leads there the error names them" "$out"
mend_eth0

export LITE_FAMILY=any LITE_IFACE=eth0
job 60 1 env LITE_FAMILY=ipv6 "$programs/messages" 2 8 100000 : -n 1 "$programs/messages" 2 8 100000
passed messages
result $? "a rank with IPv6 only and one with both" "$out"
job 60 1 env LITE_FAMILY=ipv6 "$programs/messages" 2 8 100000 : -n 1 env LITE_FAMILY=ipv4 "$programs/messages" 2 8 100000
passed messages
result $? "a rank with IPv6 only and one that is called by IPv4" "$out"
LITE_FAMILY=ipv6 job 60 2 "$programs/messages" 2 8 100000
passed messages
result $? "IPv6 only" "$out"
plan
