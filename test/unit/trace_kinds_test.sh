#!/bin/sh
# Every kind of event that LITE_TRACE names is recorded somewhere in src/, and every protocol: a
# reader of a trace relies on it. Run by make check.
set -eu
src=${srcdir:-.}/src
header=$(find "$src" -name trace_event.h)
code=0
for kind in TraceEvent TraceProtocol; do
  names=$(awk -v begin="enum class $kind " '
      index($0, begin) { on = 1 } on { print } on && /};/ { exit }' "$header" |
    sed 's,//.*,,' | grep -o 'k[A-Z][A-Za-z]*_\?' | grep -v '^kNone$\|^kCount_$')
  [ "$(echo "$names" | wc -l)" -ge 10 ] || { echo "$header: no list of $kind found"; exit 1; }
  for name in $names; do
    wanted="$kind::$name\\b"
    [ "$name" != kYield ] || wanted='trace_yield();'  # several are one record, made by trace.cpp
    if ! grep -rq "$wanted" "$src" --include='*.cpp' --include='*.h' --exclude='trace*'; then
      echo "$kind::$name is recorded nowhere in src/"
      code=1
    fi
  done
done
exit "$code"
