#!/bin/sh
# docs/variables.md's table is what lite-info prints, and no script takes a LITE_* variable that is no knob: each process of a job would
# tell of it as a typing error. Run by make check in the build directory.
set -eu
srcdir=${srcdir:-.}
made=$(./lite-info --markdown)
written=$(sed -n '/^<!-- knobs:/,/^<!-- end of knobs/{/^<!--/d;p}' "$srcdir/docs/variables.md")
if [ "$made" != "$written" ]; then
  echo "docs/variables.md's table is not what lite-info --markdown prints: put that between the two comments"
  exit 1
fi
code=0
for name in $(grep -rhowE 'LITE_[A-Z_]+' "$srcdir/scripts" "$srcdir/.ci" "$srcdir/test/lab" "$srcdir/test/bench" | sort -u); do
  case $name in LITE_RSH | LITE_*_H_INCLUDED) continue ;; esac  # lite-mprun's own, which keeps it from the ranks; a header's guard
  case $made in
    *"\`$name\`"*) ;;
    *)
      echo "a script uses $name, which is no knob: call it otherwise (LITE_* belongs to the knobs)"
      code=1
      ;;
  esac
done
exit "$code"
