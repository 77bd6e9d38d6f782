# hosts: 2
# lab: --networks 2 --control --reset 0.4
# LITE_RESUME: a job whose connections are reset again and again goes on, and so does one whose network is cut while another one is there; every
# byte is right. Without it the same job ends.
. "$(dirname "$0")/lab.sh"
export LITE_STATS=1 LITE_IFACE=eth0,eth1

goes_on() { # WHAT BREAKS VARIABLE=VALUE…
  local what=$1 breaks=$2
  shift 2
  job 90 2 env "$@" "$programs/resume" 5
  [ "$code" = 0 ] && grep -q 'resume: .* 0 failed' "$out" && [ "$(stat_of "$out" 0 connections_broken)" -ge "$breaks" ] &&
    [ "$(stat_of "$out" 0 resume_gaps)" = 0 ]
  result $? "$what: every byte is right" "$out"
  echo "# $(sed -n 's/^rounds/rounds/p' "$out"), $(stat_of "$out" 0 connections_broken) breaks"
}

goes_on "connections are reset" 3 LITE_RESUME=on
goes_on "connections are reset, with lanes" 3 LITE_RESUME=on LITE_LANES=4
goes_on "connections are reset, encrypted" 3 LITE_RESUME=on LITE_ENCRYPT=on
job 60 2 env LITE_RESUME=off "$programs/resume" 5
[ "$code" != 0 ] && ! hung && grep -q 'lost rank' "$out"
result $? "with LITE_RESUME=off the job ends with an error" "$out"
(sleep 3; ip -n "$LAB_SWITCH" link set "$LAB_PORT_0" down) &
goes_on "a network is cut" 3 LITE_RESUME=on LITE_KEEPALIVE=1:1
wait
ip -n "$LAB_SWITCH" link set "$LAB_PORT_0" up
plan
