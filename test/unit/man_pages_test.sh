#!/bin/bash
# The manual pages: well-formed, every knob in ch_lite(7), and in the others the options that --help names. In the build directory.
set -u
top=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=test/unit/verdict.sh
. "$top/test/unit/verdict.sh"
passed=0 failed=0 status=0 text=
version=$(sed -nE 's/^AC_INIT\(\[ch_lite\], \[([^]]*)\]\)$/\1/p' "$top/configure.ac")

for page in lite-info.1 lite-mprun.1 ch_lite.7; do
  verdict "is_made $page" test -s "$page"
  text=$(cat "$page")
  verdict "has_the_version $page" says "\"ch_lite $version\""
  verdict "has_nothing_left_to_fill_in $page" test "$(grep -cE '@[A-Z_]+@' "$page")" = 0
  if type groff >/dev/null 2>&1; then
    status=0
    text=$(groff -man -ww -z -Kutf8 -Tutf8 "$page" 2>&1) || status=$?
    verdict "is_well_formed $page" test "$status:$text" = 0:
  fi
done
type groff >/dev/null 2>&1 || echo "groff is missing: the pages' form was not checked"

# Before the sections that a page of another name could have too.
options_of_page() { # PAGE
  sed -n '/^\.SH OPTIONS/,/^\.SH "*[^O]/{/^\.TP$/{n;s/^\.BI* \(\\-[^ ]*\).*/\1/p}}' "$1" | sed 's/\\-/-/g' | LC_ALL=C sort
}
for program in lite-info lite-mprun; do
  text=$("./$program" --help | sed -nE 's/^  (-[^ ]+) .*/\1/p' | LC_ALL=C sort)
  verdict "page_and_help_have_the_same_options $program" test -n "$text" -a "$text" = "$(options_of_page "$program.1")"
done

knobs=$(./lite-info --markdown | sed -nE 's/^\| `([A-Z_]+)` .*/\1/p')
text=$(sed -n '/^\.SH ENVIRONMENT/,/^\.SH FILES/p' ch_lite.7)
verdict has_knobs test "$(wc -w <<<"$knobs")" -gt 10
for knob in $knobs; do verdict "names_every_knob $knob" says ".BR $knob \""; done

total=$((passed + failed))
echo "$((passed * 100 / total))%: Checks: $total, Failures: $failed, Errors: 0"
[ "$failed" = 0 ]
