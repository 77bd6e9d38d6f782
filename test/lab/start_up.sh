# hosts: 2
# at once: yes
# lab: --control
# controllers: sigio thread
# What goes wrong on one host before the ranks know each other ends the job at once, and is said once, with rank, host and reason.
. "$(dirname "$0")/lab.sh"

program=("$programs/messages" 0)

# The job in $out has ended with an error by itself, and soon, and exactly one line tells of it.
limit_ms=2500
told_once() { # TEXT…
  local text
  ! hung && [ "$code" != 0 ] && [ "$elapsed_ms" -lt "$limit_ms" ] && [ "$(grep -c '^ch_lite: ' "$out")" = 1 ] || return 1
  for text in "$@"; do grep '^ch_lite: ' "$out" | grep -qF -- "$text" || return 1; done
}

# ---- one rank cannot start ----
one_fails() { # SENTENCE "mpiexec's options of rank 1" TEXT…
  local own
  read -ra own <<<"$2"
  timed_job 20 1 "${program[@]}" : -n 1 "${own[@]}" "${program[@]}"
  told_once "rank 1 on host h1 cannot start" "${@:3}"
  result $? "$1" "$out"
}
one_fails "a bad knob on one host" "-env LITE_CREDITS few" 'LITE_CREDITS="few" is not allowed' "16K to 1024G"
timed_job 20 1 -env LITE_FRAME 1 "${program[@]}" : -n 1 "${program[@]}"
told_once "rank 0 on host h0 cannot start" 'LITE_FRAME="1" is not allowed'
result $? "a bad knob on the first host" "$out"
timed_job 20 6 -env LITE_CREDITS few "${program[@]}"
told_once "rank 0 on host h0 cannot start" 'LITE_CREDITS="few" is not allowed'
result $? "a bad knob on all six ranks is told once" "$out"

"$LAB_ENTER" 1 python3 -c '
import socket, sys, time
s = socket.socket()
s.bind(("10.77.0.2", 4999))
s.listen()
open(sys.argv[1], "w").close()
time.sleep(60)' "$LAB_DIR/bound" &
holder=$!
wait_for "$LAB_DIR/bound" 10
one_fails "no port left in the range on one host" "-env LITE_PORT_RANGE 4999:4999" "Address already in use" "LITE_PORT_RANGE=4999:4999"
kill "$holder" 2>/dev/null

mkfifo "$LAB_DIR/pipe"
one_fails "a profile that is a named pipe" "-env LITE_PROFILE $LAB_DIR/pipe" "$LAB_DIR/pipe" "it is a named pipe" "LITE_PROFILE=none"
one_fails "a profile that is a directory" "-env LITE_PROFILE $LAB_DIR/" "it is a directory"
one_fails "a profile that is not there" "-env LITE_PROFILE $LAB_DIR/nosuch" "No such file"
one_fails "an interface that is not there" "-env LITE_IFACE nosuch0" "LITE_IFACE=nosuch0" "eth0 10.77.0.2"

# With fewer than ten the loader does not find the program's libraries. The least limit with which the job runs is tried as well. With some between
# the two, shared memory of MPICH 5 is what fails, and says so.
told=0 runs=no
for ((limit = 10; limit < 40 && told == limit - 10; limit++)); do
  timed_job 20 1 "${program[@]}" : -n 1 sh -c "ulimit -n $limit; exec $programs/messages 0"
  if told_once "rank 1 on host h1 cannot start" "ulimit -n" || grep -q '^MPIDI_POSIX_comm_bootstrap' "$out"; then told=$((told + 1)); elif ! hung && [ "$code" = 0 ]; then runs=$limit; fi
done
[ "$told" -gt 0 ] && [ "$runs" != no ]
result $? "too few descriptors are told by rank and host ($told limits), with one more the job runs ($runs)" "$out"

# The other is not yet in MPI_Init.
timed_job 30 1 sh -c "sleep 20; exec $programs/messages 0" : -n 1 -env LITE_CREDITS few "${program[@]}"
limit_ms=3500 told_once "rank 1 on host h1 cannot start" 'LITE_CREDITS="few" is not allowed'
result $? "a rank that is late in MPI_Init does not hold up the message" "$out"

# ---- what the ranks publish does not fit together ----
head -c 32 /dev/urandom >"$LAB_DIR/secret"
head -c 32 /dev/urandom >"$LAB_DIR/other"
chmod 600 "$LAB_DIR/secret" "$LAB_DIR/other"
both() { # "options 0" "options 1"
  local own0 own1
  read -ra own0 <<<"$1"
  read -ra own1 <<<"$2"
  timed_job 20 1 "${own0[@]}" "$programs/messages" 3 1000 : -n 1 "${own1[@]}" "$programs/messages" 3 1000
}
both "-env LITE_SECRET_FILE $LAB_DIR/secret" "-env LITE_SECRET_FILE $LAB_DIR/secret"
! hung && [ "$code" = 0 ] && grep -q ' 0 failed' "$out"
result $? "with the same LITE_SECRET_FILE the ranks talk" "$out"
both "-env LITE_SECRET_FILE $LAB_DIR/secret" "-env LITE_SECRET_FILE $LAB_DIR/other"
told_once "LITE_SECRET_FILE differ between rank 0 on host h0 and rank 1 on host h1"
result $? "different secret files are told by rank and host" "$out"
both "" "-env LITE_SECRET_FILE $LAB_DIR/secret"
told_once "rank 0 on host h0 has no LITE_SECRET_FILE, and rank 1 on host h1 has one"
result $? "a secret file on one rank only is told by rank and host" "$out"
chmod 640 "$LAB_DIR/other"
one_fails "a secret file that others may read is refused" "-env LITE_SECRET_FILE $LAB_DIR/other" "its mode is 0640" "chmod 600 $LAB_DIR/other"

for ((i = 0; i < 2; i++)); do
  ns=LAB_NS_$i
  ip -n "${!ns}" link add twin0 type veth peer name twin1
  ip -n "${!ns}" addr add 10.79.0.1/24 dev twin0
  ip -n "${!ns}" link set twin0 up
done
both "-env LITE_IFACE twin0" "-env LITE_IFACE twin0"
told_once "rank 0 on host h0 and rank 1 on host h1 have the same address (10.79.0.1)" LITE_IFACE
result $? "one address on two hosts is told by rank and host" "$out"
both "-env LITE_IFACE lo" "-env LITE_IFACE lo"
told_once "rank 0 on host h0 listens on loopback" "rank 1 on host h1"
result $? "loopback on two hosts is told by rank and host" "$out"

ip -n "$LAB_NS_0" link set twin1 up
ip -n "$LAB_NS_0" addr add fe80::77/64 dev twin0 nodad
# Only rank 1 finds that: the others could reach a link-local address over an interface that has one.
both "-env LITE_IFACE twin0 -env LITE_FAMILY ipv6" "-env LITE_IFACE eth0 -env LITE_FAMILY ipv4"
told_once "rank 1 on host h1 cannot start: rank 0 on host h0 has a link-local address only" "and rank 1 none" LITE_IFACE
result $? "a link-local address on one side only is told at once by the rank that finds it" "$out"

# ---- mpiexec -iface ----
# The lab's mpiexec is started with -iface ctl0, and with LITE_IFACE=eth0 in the environment.
control_bytes() { ip netns exec "$LAB_NS_0" sed -nE 's/^ *ctl0: *//p' /proc/net/dev | awk '{ print $9 }'; }
over_control() { # LITE_IFACE: bytes of a message of 4 MB that went over ctl0
  local before
  before=$(control_bytes)
  LITE_IFACE=$1 job 20 2 "$programs/messages" 1 4194304
  echo $(($(control_bytes) - before))
}
bytes=$(over_control auto)
[ "$bytes" -gt 4000000 ]
result $? "mpiexec -iface is the default of LITE_IFACE ($bytes bytes over ctl0)" "$out"
bytes=$(over_control eth0)
[ "$bytes" -lt 1000000 ]
result $? "LITE_IFACE overrides mpiexec -iface ($bytes bytes over ctl0)" "$out"
plan
