# hosts: 2
# controllers: sigio
# Blocking ping-pong of 8 bytes: at most 1.5 times a spinning raw-TCP ping-pong in the same run, in turns, and no signal but
# those of the first contact.
. "$(dirname "$0")/lab.sh"

export LITE_STATS=1
# the best of three: a busy machine can only make the ratio worse
best=
for _ in 1 2 3; do
  job 120 2 "$programs/pingpong" "$LAB_ADDR_1"
  [ "$code" = 0 ] || break
  ratio=$(sed -nE 's/^pingpong .*ratio=([0-9.]+).*/\1/p' "$out")
  echo "# $(grep '^pingpong bytes' "$out")"
  if [ -z "$best" ] || awk "BEGIN { exit !($ratio < $best) }"; then best=$ratio; fi
  if awk "BEGIN { exit !($best <= 1.5) }"; then break; fi
done
[ -n "$best" ] && awk "BEGIN { exit !($best <= 1.5) }"
result $? "8-byte ping-pong takes at most 1.5 times raw TCP (${best:-no result})" "$out"
# connect, hello, proof: three, and six if both signals tell of each
[ "$(stat_of "$out" 0 signals)" -le 6 ] && [ "$(stat_of "$out" 1 signals)" -le 6 ]
result $? "a blocking ping-pong takes no signal but those of the first contact" "$out"
plan
