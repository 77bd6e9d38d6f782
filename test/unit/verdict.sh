# shellcheck shell=bash
# Checks in shell tests: counts in `passed` and `failed`, and for a failure prints $status and the beginning of $text, what the command under test said. Sourced.

verdict() { # NAME CONDITION…
  local name=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "$name:F: not so: $*; status $status, said:"
    head -n 8 <<<"$text" | sed 's/^/    | /'
  fi
}
says() { grep -qF -- "$1" <<<"$text"; }
