# hosts: 4
# All of MPI point to point with checked data (test/mpi/wide.c), by the default protocols and with each switched off or starved.
. "$(dirname "$0")/lab.sh"

try() { # SENTENCE [VAR=VALUE…]
  local sentence=$1
  shift
  (
    for pair in "$@"; do export "${pair?}"; done
    job 180 4 "$programs/wide"
    exit "$code"
  )
  code=$?
  passed wide
  result $? "$sentence" "$out"
}
try "point to point is right with the defaults"
try "point to point is right without the short protocol" LITE_SHORT_MAX=0
try "point to point is right without the eager protocol" LITE_EAGER_MAX=0
try "point to point is right by rendezvous alone" LITE_SHORT_MAX=0 LITE_EAGER_MAX=0
try "point to point is right when nearly all is eager" LITE_SHORT_MAX=0 LITE_EAGER_MAX=1G LITE_CREDITS=64M
try "point to point is right with the least credit" LITE_CREDITS=16K LITE_UNEXPECTED_MAX=64K
try "point to point is right with small socket buffers and frames" LITE_SOCKBUF=4K LITE_FRAME=4K
try "point to point is right over IPv6" LITE_FAMILY=ipv6
[ "$controller" != sigio ] || try "point to point is right with a real-time signal" LITE_SIGNAL=RTMIN+3
plan
