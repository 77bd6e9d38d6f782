# hosts: 3
# at once: yes
# lab: --control
# A process that dies concerns only those who wait for it: receives from any source in communicators that it is not in go on.
. "$(dirname "$0")/lab.sh"

trap '' PIPE # mpiexec 4.0.2 writes to proxies that have ended, and dies of it

# A job with an mpiexec of its own, on the first of its hosts.
job_at() { # HOSTS OUTPUT RANKS ARGUMENTS…
  local hosts=$1 output=$2 count=$3 first=${1%%,*}
  shift 3
  timeout -k 10 100 "$LAB_ENTER" "${first#h}" "$LAB_PREFIX/bin/mpiexec" -launcher ssh -launcher-exec "$LAB_DIR/launch" -hosts "$hosts" -ppn 1 -n "$count" "$programs/bystander" "$@" >"$output" 2>&1 </dev/null
}

# The dead caller's end comes before the server accepts, the living one's call after it.
dies_before_accept() { # MODE (of the program)
  local mode=$1 file=$LAB_DIR/port-$1 server code caller=0
  rm -f "$file" "$file.dead"
  job_at h0,h1 "$LAB_DIR/server" 2 "$mode" "$file" &
  server=$!
  job_at h2 "$LAB_DIR/killed" 1 die "$file" || true
  touch "$file.dead"
  sleep 3
  job_at h2 "$LAB_DIR/caller" 1 call "$file" || caller=$?
  wait "$server"
  code=$?
  cat "$LAB_DIR/server" "$LAB_DIR/killed" "$LAB_DIR/caller" >"$out"
  [ "$code" = 0 ] && [ "$caller" = 0 ] || end_leftovers
  [ "$code" = 0 ] && checks_hold "$mode" "$LAB_DIR/server" && ! grep 'ch_lite' "$LAB_DIR/server" | grep -qv 'before it had proved'
  result $? "$mode: a caller that dies before it is accepted does not concern the job that it has called" "$out"
  [ "$caller" = 0 ] && checks_hold call "$LAB_DIR/caller"
  result $? "$mode: the next caller is accepted" "$out"
}
dies_before_accept serve
dies_before_accept asleep

job 60 3 -disable-auto-cleanup "$programs/bystander" rank
! hung && [ "$(grep -cE '^rank [01]: [0-9]+ checks, 0 failed' "$out")" = 2 ]
result $? "a rank that dies ends receives from any source in its communicators, and in no other" "$out"
plan
