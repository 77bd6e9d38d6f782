# shellcheck shell=bash
# Shared by the lab tests: runs jobs with a limit, judges, prints TAP. Sourced by each test, which test/lab/run starts inside a net-lab.
# LAB_PREFIX: the installation; LAB_PROGRAMS: where the programs of test/mpi are.
set -uo pipefail
: "${LAB_MPIEXEC:?run the lab tests by test/lab/run}" "${LAB_PREFIX:?}" "${LAB_PROGRAMS:?}"
# shellcheck disable=SC2034  # read by the tests
controller=${LITE_CONTROLLER:-sigio}
# shellcheck disable=SC2034
programs=$LAB_PROGRAMS
out=$LAB_DIR/out
test_number=0

# With its output as diagnosis when it fails, so that a red line in a log can be understood from there.
result() { # 0|1 SENTENCE [FILE]
  test_number=$((test_number + 1))
  if [ "$1" = 0 ]; then
    echo "ok $test_number - $2"
  else
    echo "not ok $test_number - $2"
    [ ! -f "${3-}" ] || tail -n 25 "$3" | sed 's/^/#   /'
  fi
}
plan() { echo "1..$test_number"; }

# Runs a job with its output in $out and its exit code in $code; 124 or 137 means that it hung for SECONDS.
code=0
job() { # SECONDS RANKS [mpiexec option…] PROGRAM…
  local limit=$1 count=$2
  shift 2
  code=0
  timeout -k 10 "$limit" "$LAB_MPIEXEC" "$LAB_PREFIX" -n "$count" "$@" >"$out" 2>&1 </dev/null || code=$?
  if hung; then
    echo "hung for $limit s" >>"$out"
    end_leftovers
  fi
}
# A hung job leaves its ranks behind, busy: the next job shall not pay for them. The hosts are ours, nothing else runs in them then.
end_leftovers() {
  local i ns pid
  for ((i = 0; i < LAB_HOSTS; i++)); do
    ns=LAB_NS_$i
    for pid in $(ip netns pids "${!ns}"); do kill -KILL "$pid" 2>/dev/null; done
  done
}
hung() { [ "$code" = 124 ] || [ "$code" = 137 ]; }

# The program's line in FILE says that all of its checks held.
checks_hold() { # PROGRAM FILE
  grep -qE "^$1: [1-9][0-9]* checks, 0 failed" "$2"
}
# The job that was run has ended well, and its checks held.
passed() { # PROGRAM
  [ "$code" = 0 ] && checks_hold "$1" "$out"
}

# A job whose rank 0 dies before a collective call; mpiexec must not hear of it, and end the others, which say how the call has ended. 0: all by an error.
errors_without_rank_0() { # RANKS PROGRAM ARGUMENT
  job 40 "$1" -disable-auto-cleanup env MPIR_CVAR_NOLOCAL=1 LITE_CONNECT_TIMEOUT=3s sh -c "trap '' USR1 TERM HUP; '$programs/$2' $3; true"
  ! hung && [ "$(grep -cE "^$2: rank [0-9]+: an error" "$out")" = $(($1 - 1)) ]
}

# The same, with how long it took in $elapsed_ms.
elapsed_ms=0
timed_job() {
  local begin
  begin=$(date +%s%N)
  job "$@"
  # shellcheck disable=SC2034  # read by the tests
  elapsed_ms=$((($(date +%s%N) - begin) / 1000000))
}

# ---- daemons that a test starts: of a launcher, of a batch system ----

# Those that run, the last first; what they print is in $daemons_log.
daemons=() daemons_log=/dev/null
# A slurmd that is told to end while a step does may wait for its slurmstepd for ever (seen with 22.05), so there is a limit. The
# lab ends what is left in its hosts.
stop_daemons() {
  local pid tenths
  for pid in "${daemons[@]}"; do kill "$pid" 2>/dev/null; done
  for pid in "${daemons[@]}"; do
    for ((tenths = 0; tenths < 20; tenths++)); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
  done
}
start_daemon() { # HOST COMMAND… that stays in the foreground
  trap stop_daemons EXIT
  trap 'exit 143' TERM
  "$LAB_ENTER" "$@" >>"$daemons_log" 2>&1 </dev/null &
  daemons=("$!" "${daemons[@]}")
}
# Waits until CONDITION holds; fails after half a minute, and as soon as one of the daemons has ended.
await_daemons() { # CONDITION…
  local pid until=$((SECONDS + 30))
  while [ "$SECONDS" -lt "$until" ]; do
    for pid in "${daemons[@]}"; do kill -0 "$pid" 2>/dev/null || return 1; done
    if "$@"; then return 0; fi
    sleep 0.3
  done
  return 1
}
# For jobs of a daemon: one that hung has taken the daemons with it (end_leftovers), and nothing can be run after it.
verdict() { # 0|1 SENTENCE
  result "$1" "$2" "$out"
  if hung; then
    plan
    exit 0
  fi
}

# What a test cannot do without; where it is missing the test is skipped.
skip_without() { # PACKAGE TOOL…
  local tool package=$1
  for tool in "${@:2}"; do
    if ! PATH=$PATH:/usr/sbin command -v "$tool" >"$out"; then
      echo "ok 1 - # SKIP $package is not installed"
      echo "1..1"
      exit 0
    fi
  done
}
# The program messages has run with so many ranks, and each has printed its counters (LITE_STATS=1).
ranks_talked() { # RANKS
  passed messages && [ "$(grep -c 'lite-stats rank=' "$out")" = "$1" ]
}
# A job of test/mpi/trouble in which something happens as soon as the ranks are ready for it.
trouble_job() { # CASE [mpiexec option…]
  local meet=$LAB_DIR/meet-$1
  (
    wait_for "$meet.ready" 30 || exit 0
    sleep 0.3
    : >"$meet.go"
  ) &
  timed_job 60 2 "${@:2}" "$programs/trouble" "$1" "$meet"
  wait $!
}

# A field of the counter line of one rank; empty when there is no such line.
stat_of() { # FILE RANK FIELD
  sed -nE "/.*lite-stats rank=$2 /{s/.* $3=([^ ]*).*/\1/p;q}" "$1"
}

# Waits until a file exists; fails after SECONDS.
wait_for() { # FILE SECONDS
  local tenths=$(($2 * 10))
  while [ ! -e "$1" ]; do
    [ "$tenths" -gt 0 ] || return 1
    tenths=$((tenths - 1))
    sleep 0.1
  done
}

# Whether the installation was configured with a part that can be left out, as it says itself.
configured() { # fortran|cxx|romio
  ! "$LAB_PREFIX/bin/mpichversion" | grep -e "--disable-$1" >/dev/null
}

# From here on programs that are linked to Debian's MPICH take this installation's libraries, by their ABI names.
# A tree of the repository numbers its library 0, a release 12: the interface is the same.
stand_in_for_debians() {
  libraries=$LAB_DIR/libraries
  mkdir -p "$libraries"
  ln -sf "$LAB_PREFIX/lib/libmpi.so" "$libraries/libmpich.so.12"
  ln -sf "$LAB_PREFIX/lib/libmpifort.so" "$libraries/libmpichfort.so.12"
  export LD_LIBRARY_PATH=$libraries
}

# Bytes that host I has sent so far through the interface that the ranks use.
bytes_sent() { # I
  local ns=LAB_NS_$1
  ip netns exec "${!ns}" sed -nE 's/^ *eth0: *//p' /proc/net/dev | awk '{ print $9 }'
}
