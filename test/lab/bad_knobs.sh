# hosts: 1
# controllers: sigio
# A LITE_* variable that does not parse ends MPI_Init with a message that names the variable, its value and what is allowed; never a silent default.
. "$(dirname "$0")/lab.sh"

refused() { # VAR VALUE ALLOWED (a part of what the message must say is allowed)
  (
    export "$1=$2"
    job 20 1 "$programs/messages" 0
    exit "$code"
  )
  code=$?
  ! hung && [ "$code" != 0 ] && grep -F -- "$1" "$out" | grep -F -e "$1=\"$2\"" -e "$1=$2;" -e "$1=$2:" -e "profile $2" | grep -F -- "$3" >/dev/null && ! grep -q 'messages: .* checks' "$out"
  result $? "$1=$2 is refused with its name, its value and \"$3\"" "$out"
}
job 20 1 "$programs/messages" 0
[ "$code" = 0 ]
result $? "without a bad knob the program runs" "$out"
refused LITE_SHORT_MAX 12Q "0 to 32K"
refused LITE_SHORT_MAX -1 "0 to 32K"
refused LITE_SHORT_MAX 33000 "0 to 32K"
refused LITE_EAGER_MAX big "K, M, G"
refused LITE_EAGER_MAX 99999999999999999999 "K, M, G"
refused LITE_CONTROLLER fast "sigio, thread or sync"
refused LITE_CONTROLLER SIGIO "sigio, thread or sync"
refused LITE_SIGNAL SIGKILL "SIGIO"
refused LITE_SIGNAL 999 "SIGIO"
refused LITE_SPIN_US soon "forever"
refused LITE_IFACE nosuch0 "eth0"
refused LITE_IFACE 10.0.0.0/99 "/99"
refused LITE_FAMILY ipv5 "ipv4 or ipv6"
refused LITE_PORT_RANGE 9000 "LOW:HIGH"
refused LITE_PORT_RANGE 9:5 "LOW:HIGH"
refused LITE_PORT_RANGE 70000:70010 "65535"
refused LITE_SOCKBUF -5 "4K to 1G"
refused LITE_CREDITS few "16K"
refused LITE_CREDITS 0 "16K"
refused LITE_UNEXPECTED_MAX 1X "64K"
refused LITE_CONNECT_TIMEOUT never "100ms"
refused LITE_KEEPALIVE 10 "IDLE:INTERVAL"
refused LITE_KEEPALIVE a:b "IDLE:INTERVAL"
refused LITE_FRAME 1 "4K"
refused LITE_STALL never "1s to 86400s"
refused LITE_STALL 500ms "1s to 86400s"
refused LITE_STATS maybe "0 or 1"
refused LITE_TRACE perhaps "0, 1"
refused LITE_TRACE "$LAB_DIR/nosuch/trace" "No such file"
# what is seen only when it is written does not pass in silence either
ln -s /dev/full "$LAB_DIR/full.0.json"
job 20 1 env LITE_TRACE="$LAB_DIR/full" "$programs/messages" 0
[ "$code" = 0 ] && grep -q "LITE_TRACE: writing $LAB_DIR/full.0.json failed: No space left on device" "$out"
result $? "a trace that does not fit on the disk is told with its name" "$out"
refused LITE_PROFILE mine "auto, none, or a path"
refused LITE_PROFILE "$LAB_DIR/nosuch" "No such file"
printf 'LITE_CREDITS=4M\nLITE_EAGER_MAX 64K\n' >"$LAB_DIR/profile"
refused LITE_PROFILE "$LAB_DIR/profile" "line 2: want NAME=VALUE"
plan
