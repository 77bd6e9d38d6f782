# hosts: 2
# controllers: sigio
# Reductions with a program's own operation on derived types, where the ranks of a node share memory and where they do not.
. "$(dirname "$0")/lab.sh"

for variables in MPIR_CVAR_NOLOCAL=0 MPIR_CVAR_NOLOCAL=1; do
  job 60 4 env $variables "$programs/own_operations"
  passed own_operations
  result $? "operations of the program's own on derived types, four ranks, $variables" "$out"
done
plan
