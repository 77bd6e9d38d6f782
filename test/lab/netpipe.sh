# hosts: 2
# An unmodified program of Debian's, linked against Debian's libmpich, runs on our library and finds its data right.
. "$(dirname "$0")/lab.sh"

program=$(command -v NPmpich2 || true)
[ -n "$program" ]
result $? "NetPIPE (package netpipe-mpich2) is here"
stand_in_for_debians
export LITE_STATS=1
ldd "$program" 2>/dev/null | grep "libmpich.so.12 => $libraries/" >/dev/null
result $? "the binary takes our library by its ABI name"
before=$(bytes_sent 0)
job 200 2 "$program" -i -n 10 -p 3 -u 8388608 -o /dev/null
[ "$code" = 0 ] && [ "$(grep -c 'Integrity check passed' "$out")" -ge 100 ] && ! grep -qi 'integrity check failed' "$out"
result $? "NetPIPE's integrity mode passes at all sizes up to 8 MB" "$out"
crossed=$(($(bytes_sent 0) - before))
[ "$crossed" -gt 100000000 ]
result $? "the bytes crossed the wire ($crossed)"
[ -n "$(stat_of "$out" 0 rndv_msgs)" ]
result $? "it was our device" "$out"
job 200 2 "$program" -a -S -2 -n 10 -p 0 -u 1048576 -o /dev/null
[ "$code" = 0 ] && grep -q '1048576 bytes' "$out"
result $? "NetPIPE runs with preposted receives, synchronous sends and both directions at a time" "$out"
plan
