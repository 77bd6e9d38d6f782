# hosts: 2
# controllers: sigio
# Collectives of more than 2 GB in all.
. "$(dirname "$0")/lab.sh"

job 120 4 "$programs/long_data"
passed long_data
result $? "more than 2 GB in all are scattered and broadcast" "$out"
plan
