# hosts: 2
# Reductions and broadcasts of communicators that have one rank on a host and several on another.
. "$(dirname "$0")/lab.sh"

for variables in MPIR_CVAR_NOLOCAL=0 MPIR_CVAR_NOLOCAL=1; do
  job 120 4 env $variables "$programs/subsets"
  passed subsets
  result $? "every communicator of four ranks, $variables" "$out"
done
plan
