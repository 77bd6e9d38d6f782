# hosts: 2
# controllers: sigio
# The predefined reductions, vectorized (lite_kernels.h): each element's bits as one operation in C gives them, on every rank.
. "$(dirname "$0")/lab.sh"

job 60 2 "$programs/reductions"
! hung && [ "$code" = 0 ] && grep -q '^reductions: .* 0 failed' "$out"
result $? "reductions of predefined types are right in every bit" "$out"
plan
