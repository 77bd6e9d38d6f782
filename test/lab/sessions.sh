# hosts: 2
# Sessions one after the other, each of which starts and ends all of MPI, over the device and beside shared memory.
. "$(dirname "$0")/lab.sh"

for place in "2 2" "4 4"; do
  read -r count lines <<<"$place"
  job 240 "$count" "$programs/sessions" 120
  [ "$code" = 0 ] && [ "$(grep -cE '^sessions: [0-9]+ checks, 0 failed' "$out")" = "$lines" ]
  result $? "$count ranks on two hosts: $(sed -nE 's/^sessions: .*failed, //p;q' "$out") one after the other" "$out"
done
plan
