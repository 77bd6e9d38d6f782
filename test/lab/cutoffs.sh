# hosts: 2
# LITE_SHORT_MAX and LITE_EAGER_MAX move the cutoffs: the counters of a run with messages less those of a run without are the messages.
. "$(dirname "$0")/lab.sh"

export LITE_STATS=1
count=10
moves() { # WANTED-PROTOCOL BYTES SHORT_MAX EAGER_MAX
  local wanted=$1 bytes=$2 protocol before after sent_msgs sent_bytes good=0
  export LITE_SHORT_MAX=$3 LITE_EAGER_MAX=$4
  job 60 2 "$programs/messages" 0
  [ "$code" = 0 ] || good=1
  cp "$out" "$out.without"
  job 60 2 "$programs/messages" "$count" "$bytes"
  [ "$code" = 0 ] || good=1
  for protocol in short eager rndv; do
    before=$(stat_of "$out.without" 0 "${protocol}_msgs") after=$(stat_of "$out" 0 "${protocol}_msgs")
    sent_msgs=$((${after:-0} - ${before:-0}))
    before=$(stat_of "$out.without" 0 "${protocol}_bytes") after=$(stat_of "$out" 0 "${protocol}_bytes")
    sent_bytes=$((${after:-0} - ${before:-0}))
    if [ "$protocol" = "$wanted" ]; then
      { [ "$sent_msgs" = "$count" ] && [ "$sent_bytes" = $((count * bytes)) ]; } || good=1
    else
      { [ "$sent_msgs" = 0 ] && [ "$sent_bytes" = 0 ]; } || good=1
    fi
  done
  [ "$good" = 0 ] || cat "$out.without" >>"$out"
  result "$good" "$bytes bytes go $wanted with LITE_SHORT_MAX=$3 LITE_EAGER_MAX=$4" "$out"
}
moves short 512 512 4K
moves eager 513 512 4K
moves eager 4096 512 4K
moves rndv 4097 512 4K
moves eager 100000 512 1M
moves rndv 100000 4K 64K
moves eager 512 0 4K
moves rndv 513 512 0
moves rndv 512 0 0
moves short 32768 32K 0
# measured: whatever the round trip is, these are below and above
moves eager 10000 4K auto
moves rndv 1100000 4K auto
# what the environment does not set, a profile does
printf '# for this test\nLITE_SHORT_MAX=100\nLITE_EAGER_MAX=1K\n' >"$LAB_DIR/profile"
export LITE_PROFILE=$LAB_DIR/profile
moves short 100 "" ""
moves eager 101 "" ""
moves rndv 1025 "" ""
moves eager 1025 "" 2K
plan
