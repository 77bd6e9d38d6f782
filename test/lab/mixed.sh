# hosts: 2
# Two ranks on each of two hosts: shared memory inside, the device between. Receives from anybody get every message once and in order, whichever way it comes.
. "$(dirname "$0")/lab.sh"

export LITE_STATS=1
job 240 4 "$programs/mixed" 100 mixed
[ "$code" = 0 ] && grep -qE '^mixed: [0-9]+ checks, 0 failed' "$out"
result $? "wildcard storms, cancels, probes, windows over both, reductions in place" "$out"
plan
