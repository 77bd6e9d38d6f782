# hosts: 2
# at once: yes
# lab: --control
# A peer that cannot be reached, was killed, or was cut off: an error that names it, in time; never a hang.
. "$(dirname "$0")/lab.sh"

export LITE_CONNECT_TIMEOUT=3s LITE_KEEPALIVE=1:1
link_down() { ip -n "$LAB_SWITCH" link set "$LAB_PORT_1" down; }
link_up() { ip -n "$LAB_SWITCH" link set "$LAB_PORT_1" up; }

# mpiexec 4.0.2 writes to proxies that have ended, and dies of it
trap '' PIPE

# Where a rank dies, mpiexec must not end the job for us: it is the library's own error that has to.
trouble() { # SECONDS CASE ACTION-WHEN-READY [mpiexec option…]
  local meet=$LAB_DIR/meet-$2
  rm -f "$meet.ready" "$meet.go"
  (
    wait_for "$meet.ready" 20 || exit 0
    sleep 0.3
    [ -z "$3" ] || "$3"
    : >"$meet.go"
  ) &
  local helper=$!
  job "$1" 2 "${@:4}" "$programs/trouble" "$2" "$meet"
  wait "$helper"
  link_up
}
# the error of rank 0: rank, host and address of the other side; where the kernel remembers that no link led to the first address, the second
names_peer() { ! hung && grep -E 'rank 1' "$out" | grep -E 'h1' | grep -E '10\.77\.0\.2|fd77::2' >/dev/null; }

trouble 40 connect link_down
! hung && grep -q '^error: MPI_' "$out"
result $? "an unreachable peer is an MPI error, in time" "$out"
names_peer && grep -qE '10\.77\.0\.2.*port [0-9]+' "$out"
result $? "the error names rank, host and port of the unreachable peer" "$out"
grep -E 'rank 0 lost rank 1' "$out" | grep -E 'tried from interface eth0, 10\.77\.0\.1' | grep -q LITE_IFACE
result $? "it names the interface and address that were tried, and LITE_IFACE" "$out"

# Without a link layer address for 3 s the kernel says that there is no route to the host.
outage() {
  ip -n "$LAB_NS_0" neigh flush dev eth0
  link_down
  : >"$meet.go"
  sleep 6
  link_up
}
# (MPI_Init of MPICH 4.2 and later has made the connection: then its silence must be borne.)
LITE_KEEPALIVE=20:20 LITE_CONNECT_TIMEOUT=20s trouble 40 connect outage
[ "$code" = 0 ] && grep -q '^trouble: ' "$out"
result $? "a first contact while the link is down for 6 s ends well" "$out"

for case in vanished polled probed; do
  trouble 40 "$case" link_down
  ! hung && grep -q '^error: MPI_' "$out" && names_peer
  result $? "a host that vanished before any contact, for which only a receive or probe waits, is an MPI error that names it ($case)" "$out"
done

trouble 40 recv '' -disable-auto-cleanup
! hung && grep -q '^error: MPI_Recv' "$out"
result $? "a receive from a killed peer is an MPI error, in time" "$out"
names_peer
result $? "the error names rank and host of the killed peer" "$out"

trouble 40 late '' -disable-auto-cleanup
! hung && grep -q '^error: MPI_Wait' "$out"
result $? "a receive posted to a peer that is known to be lost is an MPI error where it is waited for" "$out"

trouble 40 fatal '' -disable-auto-cleanup
# The killed rank alone makes mpiexec's code one of failure, and without auto-cleanup the job ends
# only if rank 0 ends. Not by an error that the call returned, nor by a crash. The host's own line,
# "Abort(…) Fatal error in …", is lost in Hydra often: it ends before it has read all of the pipe.
! hung && [ "$code" != 0 ] && ! grep -qE '^error: |signal (4|6|7|8|11)|Segmentation|Illegal' "$out"
result $? "with MPI_ERRORS_ARE_FATAL a killed peer ends the job, in time" "$out"
names_peer
result $? "the abort names rank and host of the killed peer" "$out"

trouble 40 first '' -disable-auto-cleanup
! hung && grep -q '^error: MPI_' "$out"
result $? "a peer that was killed before any connection is an MPI error, in time" "$out"
names_peer
result $? "that error names rank and host" "$out"

for what in freed freed_send; do
  [ "$what" = freed ] && words='memory for data from it .the buffer of a pending receive' || words='memory with data for it .the buffer of a pending send'
  trouble 40 $what ''
  ! hung && grep -q '^error: MPI_Wait' "$out" && grep '^MPIDI_LITE_' "$out" | grep -E "$words" >/dev/null && names_peer && ! grep -q 'Bad address' "$out"
  result $? "$what: that the application's own memory has gone is said, with direction and peer" "$out"
done

trouble 60 idle link_down
! hung && grep -q '^error: MPI_Recv' "$out"
result $? "a peer cut off while the wire is idle is found by keepalive" "$out"
names_peer
result $? "the error names rank and host of the silent peer" "$out"

trouble 60 bulk link_down
! hung && grep -q '^error: MPI_' "$out"
result $? "a peer cut off in the middle of large messages is found" "$out"
names_peer
result $? "the error names rank and host of the peer that was cut off" "$out"
plan
