# hosts: 3
# Dynamic processes: jobs on different hosts that share no secret connect by a port, with IPv4 and IPv6; wrong and closed ports are refused; processes are spawned on other hosts.
. "$(dirname "$0")/lab.sh"

export LITE_CONNECT_TIMEOUT=10s
# A job with an mpiexec of its own, on the first of its hosts.
job_on() { # HOSTS OUTPUT RANKS PROGRAM…
  local hosts=$1 output=$2 count=$3 first=${1%%,*}
  shift 3
  timeout -k 10 150 "$LAB_ENTER" "${first#h}" "$LAB_PREFIX/bin/mpiexec" -launcher ssh -launcher-exec "$LAB_DIR/launch" -hosts "$hosts" -ppn 1 -n "$count" "$@" >"$output" 2>&1 </dev/null
}
clean() { checks_hold "$2" "$1" && ! grep -q 'ch_lite' "$1"; }

# Two jobs of mpiexec's own: the server on the first host and the second, the caller on the third (and the second).
two_jobs() { # NAME SERVER-ARGUMENTS CALLER-ARGUMENTS [VARIABLE=VALUE…]
  local server=$2 caller=$3 file=$LAB_DIR/port-$1 one two=0
  shift 3
  rm -f "$file" "$file.closed"
  # shellcheck disable=SC2086  # words
  env "$@" bash -c "$(declare -f job_on); job_on h0,h1 '$LAB_DIR/server' 2 '$programs/dynamic' accept '$file' $server" &
  one=$!
  # shellcheck disable=SC2086
  env "$@" bash -c "$(declare -f job_on); job_on h2,h1 '$LAB_DIR/caller' 3 '$programs/dynamic' ${caller/FILE/$file}" || two=$?
  wait "$one" && [ "$two" = 0 ]
  code=$?
  cat "$LAB_DIR/server" "$LAB_DIR/caller" >"$out"
  if [ "$code" != 0 ]; then end_leftovers; fi
}

two_jobs v4 2 'connect FILE 2'
[ "$code" = 0 ] && clean "$LAB_DIR/server" accept && clean "$LAB_DIR/caller" connect
result $? "two jobs connect by a port, talk by every protocol, disconnect and connect again" "$out"

two_jobs v6 1 'connect FILE 1' LITE_FAMILY=ipv6
[ "$code" = 0 ] && clean "$LAB_DIR/server" accept && clean "$LAB_DIR/caller" connect
result $? "the same with IPv6" "$out"

two_jobs wrong 1 'refused FILE'
passed refused
result $? "wrong names and a closed port are refused in time, the right one works in between" "$out"
[ "$(grep -cE '^(wrong key|another wrong key|closed port): class MPI_ERR_PORT' "$out")" = 3 ]
result $? "the errors are of class MPI_ERR_PORT" "$out"

two_jobs credits 1 'connect FILE 1' LITE_CREDITS=16K LITE_UNEXPECTED_MAX=256K LITE_EAGER_MAX=8K
[ "$code" = 0 ] && clean "$LAB_DIR/server" accept && clean "$LAB_DIR/caller" connect
result $? "with credit at its minimum" "$out"

# Jobs of one process each, without mpiexec: all are there before one of them is answered.
guests=6
singly() { # HOST OUTPUT ARGUMENT…
  timeout -k 10 60 "$LAB_ENTER" "$1" "$programs/dynamic" "${@:3}" >"$2" 2>&1 </dev/null
}
rm -f "$LAB_DIR/port-guests"
visits=() code=0
singly 0 "$LAB_DIR/host" entertain "$LAB_DIR/port-guests" "$guests" "$guests" &
visits+=($!)
for ((i = 0; i < guests; i++)); do
  singly $((i % 3)) "$LAB_DIR/guest-$i" visit "$LAB_DIR/port-guests" "$i" &
  visits+=($!)
done
for one in "${visits[@]}"; do wait "$one" || code=$?; done
cat "$LAB_DIR/host" "$LAB_DIR"/guest-? >"$out"
[ "$code" = 0 ] && [ "$(grep -c 'visit: .* 0 failed' "$out")" = "$guests" ]
result $? "jobs of one process each, started without mpiexec, are told apart" "$out"
if [ "$code" != 0 ]; then end_leftovers; fi

job 150 1 "$programs/dynamic" spawn 3
[ "$code" = 0 ] && clean "$out" spawn
result $? "processes are spawned on other hosts; a parent and children that just end report nothing" "$out"

# The host of the parent has one rank, the other none: Hydra of 4.1 to 5.0.1 gave two of three one rank.
code=0
job_on h0,h1 "$out" 1 "$programs/dynamic" spawn 3 || code=$?
[ "$code" = 0 ] && clean "$out" spawn
result $? "three processes are spawned on two hosts" "$out"
if [ "$code" != 0 ]; then end_leftovers; fi
plan
