#!/bin/bash
# lite-info's options: the versions as the sources have them, counters explained, and what it refuses. In the build directory.
set -u
top=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=test/unit/verdict.sh
. "$top/test/unit/verdict.sh"
passed=0 failed=0
run() { # ARGUMENT…
  status=0
  text=$(./lite-info "$@" 2>&1) || status=$?
}

version=$(sed -nE 's/^AC_INIT\(\[ch_lite\], \[([^]]*)\]\)$/\1/p' "$top/configure.ac")
wire=$(sed -nE 's/.* kWireVersion = ([0-9]+);$/\1/p' "$top/src/mplite/net/frame.h")
status=0 text=
verdict the_sources_have_versions test -n "$version" -a -n "$wire"
run --version
verdict version_is_told test "$status:$text" = "0:ch_lite $version, wire version $wire"
# whoever asks for the version may have a setting that is wrong with it
LITE_FRAME=nonsense run --version
verdict version_is_told_whatever_the_settings test "$status:$text" = "0:ch_lite $version, wire version $wire"
run --help
verdict help_names_the_options test "$status" = 0
for option in --json --markdown --man --version --explain; do verdict "help_names_the_options $option" says "$option"; done
run --versions
verdict wrong_option_is_refused test "$status" = 2
LITE_FRAME=nonsense run
verdict wrong_setting_is_told test "$status" = 1
verdict wrong_setting_is_told says "LITE_FRAME=\"nonsense\""

is_json() { python3 -m json.tool >/dev/null <<<"$text"; }
is_usage_error() { test "$status" = 2 && says "$1" && says "lite-info --help"; }

# also with a setting that is wrong
LITE_FRAME=nonsense run --explain
verdict counters_are_explained test "$status" = 0
verdict counters_are_explained says "  unexpected_bytes       bytes        Data of the messages that arrived before"
verdict counters_are_explained says "Connections. They are made when"
run --explain --json
verdict counters_are_explained_to_programs test "$status" = 0
verdict counters_are_explained_to_programs is_json
verdict counters_are_explained_to_programs says '"name": "unexpected_bytes", "group": "Unexpected messages", "unit": "bytes"'
json=$text
run --json --explain
verdict order_of_options_does_not_matter test "$text" = "$json"

run --explain --man
verdict wrong_combination_is_refused is_usage_error "--man with --explain"

total=$((passed + failed))
echo "$((passed * 100 / total))%: Checks: $total, Failures: $failed, Errors: 0"
[ "$failed" = 0 ]
