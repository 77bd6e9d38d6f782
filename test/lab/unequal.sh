# hosts: 2
# controllers: sigio thread
# Ranks whose credits, bounds or profiles differ: each pair takes what the lesser allows, and nothing is overdrawn.
. "$(dirname "$0")/lab.sh"

# The knobs of rank 0, then of rank 1, as mpiexec's options.
differ() { # SENTENCE "OPTIONS 0" "OPTIONS 1"
  local own0 own1
  read -ra own0 <<<"$2"
  read -ra own1 <<<"$3"
  job 60 1 "${own0[@]}" "$programs/unequal" 3 : -n 1 "${own1[@]}" "$programs/unequal" 3
  ! hung && [ "$code" = 0 ] && grep -q '^unequal: .* 0 failed' "$out"
  result $? "$1" "$out"
}
differ "the same knobs on both ranks" "" ""
differ "LITE_CREDITS of 64K and 4M" "-env LITE_CREDITS 64K" "-env LITE_CREDITS 4M"
differ "LITE_CREDITS of 4M and 16K" "-env LITE_CREDITS 4M" "-env LITE_CREDITS 16K"
differ "LITE_UNEXPECTED_MAX of 1M and 1G" "-env LITE_UNEXPECTED_MAX 1M" "-env LITE_UNEXPECTED_MAX 1G"
printf 'LITE_CREDITS=32K\nLITE_EAGER_MAX=1M\nLITE_SHORT_MAX=500\nLITE_FRAME=4K\n' >"$LAB_DIR/profile"
differ "a profile on one of them" "-env LITE_PROFILE none" "-env LITE_PROFILE $LAB_DIR/profile"
plan
