# hosts: 2
# Living together (docs/coexistence.md): children, handlers, threads, little stacks, a debugger, and which system calls a message interrupts.
. "$(dirname "$0")/lab.sh"

for what in steady children finalize_in_child serialized beside_owner init_thread alternate_stack error_handler timer handler_after; do
  LITE_STATS=1 job 60 2 "$programs/coexist" "$what"
  passed coexist
  result $? "$what: the job goes on and its data is right" "$out"
  if [ "$controller" = sigio ] && [ "$what" != init_thread ]; then
    [ "$(stat_of "$out" 0 signals)" -gt 0 ] 2>/dev/null
    result $? "$what: signals were there" "$out"
  fi
  if [ "$what" = handler_after ]; then
    lines=$(grep -c 'taken by the application.*LITE_SIGNAL.*LITE_CONTROLLER=thread' "$out" || true)
    want=0
    [ "$controller" != sigio ] || want=2
    [ "$lines" = "$want" ]
    result $? "handler_after: said once per rank, and only where it concerns ($lines lines)" "$out"
  fi
done

job 60 2 "$programs/coexist" handler_before
passed coexist
result $? "a handler installed before MPI_Init: another signal is chosen" "$out"
if [ "$controller" = sigio ]; then
  LITE_SIGNAL=SIGIO job 30 2 "$programs/coexist" handler_before
  ! hung && [ "$code" != 0 ] && grep -q 'has a handler of the application already.*LITE_SIGNAL=.*LITE_CONTROLLER=thread' "$out"
  result $? "where LITE_SIGNAL names that signal it is an error that names the knobs" "$out"
  LITE_SIGNAL=RTMIN+2 job 60 2 "$programs/coexist" handler_before
  passed coexist
  result $? "with another LITE_SIGNAL the same program runs" "$out"
fi

# What a program started by system() inherits: the mask as it is at that moment. With sigio and nothing outstanding the signal may be blocked or, where the last
# message came by a signal, still open; while something is outstanding it is open, without sigio always.
job 60 2 "$programs/coexist" mask
idle=no
[ "$controller" != sigio ] || idle='(yes|no)'
passed coexist && [ "$(grep -cE "^mask rank=[01] idle blocked=$idle\$" "$out")" = 2 ] && [ "$(grep -c '^mask rank=[01] outstanding blocked=no$' "$out")" = 2 ]
result $? "a program started by system() finds the signal blocked when nothing is outstanding: $idle; otherwise: no" "$out"

job 120 2 "$programs/interrupted"
passed interrupted
result $? "messages arrive while their receiver sleeps in system calls" "$out"
is() { # CALL EINTR|restarted (or not interrupted at all)
  grep -q "^interrupted call=$1 result=$2 " "$out"
  result $? "$controller, $1: $2" "$out"
}
early=restarted
[ "$controller" != sigio ] || early=EINTR
for call in nanosleep clock_nanosleep usleep sleep poll ppoll select pselect epoll_wait sigtimedwait semtimedop sem_timedwait msgrcv recv_timeout recv_waitall write_much; do is "$call" "$early"; done
for call in read_pipe recv waitpid sem_wait cond_timedwait; do is "$call" restarted; done

# gdb passes SIGIO on in silence of itself; another signal it has to be told of, or it stops there.
under_gdb() { # gdb option…
  job 120 2 gdb -batch -nx "$@" -ex run --args "$programs/coexist" steady
  ! hung && checks_hold coexist "$out" && [ "$(grep -c 'exited normally' "$out")" = 2 ]
}
if command -v gdb >/dev/null; then
  under_gdb -ex 'handle SIGIO nostop noprint pass'
  result $? "under gdb with 'handle SIGIO nostop noprint pass' the job ends as ever" "$out"
  if [ "$controller" = sigio ]; then
    export LITE_SIGNAL=RTMIN+2
    under_gdb -ex 'handle SIG36 nostop noprint pass'
    result $? "under gdb with LITE_SIGNAL=RTMIN+2 and 'handle SIG36 nostop noprint pass' the job ends as ever" "$out"
    ! under_gdb && grep -q 'received signal SIG36' "$out"
    result $? "without, gdb stops at the signal" "$out"
    unset LITE_SIGNAL
  fi
else
  result 0 "under gdb the job ends as ever # SKIP gdb is not installed"
fi
plan
