#!/bin/bash
# make dist: a release has every file of the sources and a configure, and nothing that was built beside them. In the build directory.
set -u
top=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=test/unit/verdict.sh
. "$top/test/unit/verdict.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL
if ! tracked=$(git -C "$top" ls-files 2>/dev/null) || [ -z "$tracked" ]; then
  echo "the sources are not in git, which tells them from what was built"
  exit 77
fi
work=$(mktemp -d) passed=0 failed=0
trap 'rm -rf "$work"' EXIT
status=0
text=$(make distdir distdir="$work/release" 2>&1) || status=$?
verdict is_made test "$status" = 0
text=$(cd "$work/release" && find . ! -type d | sed 's,^\./,,' | LC_ALL=C sort)
missing=$(LC_ALL=C comm -13 <(echo "$text") <(LC_ALL=C sort <<<"$tracked"))
verdict has_all_sources test -z "$missing"
[ -z "$missing" ] || head -n 5 <<<"$missing"
more=$(LC_ALL=C comm -23 <(echo "$text") <(LC_ALL=C sort <<<"$tracked") |
  grep -vxE '(configure|aclocal\.m4|config\.h\.in|Makefile\.in|build-aux/.*|m4/(libtool|lt.*)\.m4)' || true)
verdict has_nothing_that_was_built test -z "$more"
[ -z "$more" ] || head -n 5 <<<"$more"
verdict has_a_configure test -x "$work/release/configure"

total=$((passed + failed))
echo "$((passed * 100 / total))%: Checks: $total, Failures: $failed, Errors: 0"
[ "$failed" = 0 ]
