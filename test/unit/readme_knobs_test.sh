#!/bin/sh
# The README's table of knobs is what lite-info prints. Run by make check in the build directory.
set -eu
srcdir=${srcdir:-.}
made=$(./lite-info --markdown)
written=$(sed -n '/^<!-- knobs:/,/^<!-- end of knobs/{/^<!--/d;p}' "$srcdir/README.md")
if [ "$made" != "$written" ]; then
  echo "README.md's table of knobs is not what lite-info --markdown prints: put that between the two comments"
  exit 1
fi
