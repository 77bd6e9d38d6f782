# shellcheck shell=bash
# Steps of a long script: each has a name, a key (a hash of all that it depends on), a log, and the
# cure that is told when it fails. A step that is done is remembered under the build directory.
# Sourced after lib.sh, with `build` and `steps_total` set; never run.

step_number=0
step_names=() step_seconds=() step_notes=()
step_begin() { # NAME DESCRIPTION
  step_number=$((step_number + 1))
  step_name=$1
  step_start=$(now_s)
  step_log=$build/$1.log
  # shellcheck disable=SC2154  # the script's
  say "[$step_number/$steps_total] $1: $2"
}
step_end() { # [NOTE]
  step_names+=("$step_name")
  step_seconds+=($(($(now_s) - step_start)))
  step_notes+=("${1-}")
}
step_is_done() { [ "$(cat "$build/stamps/$step_name" 2>/dev/null || true)" = "$1" ]; }
step_done() { printf '%s\n' "$1" >"$build/stamps/$step_name"; }
step_fail() { # WHAT CURE
  [ ! -s "$step_log" ] || log_tail "$step_log"
  say "${0##*/}: step $step_name failed: $1"
  [ -z "${2-}" ] || say "  cure: $2"
  say "  The next run resumes at this step."
  exit 1
}
# Where the time went.
steps_table() {
  local i total=0
  say ""
  say "  step        seconds"
  for i in "${!step_names[@]}"; do
    say "$(printf '  %-10s %8d  %s' "${step_names[$i]}" "${step_seconds[$i]}" "${step_notes[$i]}")"
    total=$((total + step_seconds[i]))
  done
  say "$(printf '  %-10s %8d' total "$total")"
  say ""
}

# A script that is interrupted ends what run_logged has started, too.
# shellcheck disable=SC2317  # called by the trap
steps_on_exit() {
  local code=$?
  trap '' INT TERM
  [ -z "$LIB_CHILD" ] || end_tree "$LIB_CHILD"
  exit "$code"
}
trap steps_on_exit EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
