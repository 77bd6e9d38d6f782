# hosts: 2
# lab: --rate 1gbit
# Long gets over several connections: more of them than may be under way, and windows that are freed right after one.
. "$(dirname "$0")/lab.sh"

for lanes in 1 2 4; do
  job 60 2 env LITE_LANES=$lanes "$programs/long_gets" many 100
  passed long_gets
  result $? "200 gets of 1 MB, LITE_LANES=$lanes" "$out"
  job 60 2 env LITE_LANES=$lanes "$programs/long_gets" beside 30
  passed long_gets
  result $? "windows that are freed while a long message comes, LITE_LANES=$lanes" "$out"
done
job 60 2 env LITE_RESUME=on "$programs/long_gets" many 100
passed long_gets
result $? "200 gets of 1 MB, LITE_RESUME=on" "$out"
plan
