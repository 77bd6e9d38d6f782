# shellcheck shell=bash
# What the tests of packages and of containers share: a fresh system by debootstrap, and results as
# TAP. Sourced after lib.sh; never run.

number=0 bad=0
result() { # STATUS DESCRIPTION
  number=$((number + 1))
  if [ "$1" = 0 ]; then echo "ok $number - $2"; else bad=$((bad + 1)); echo "not ok $number - $2"; fi
}

# A directory with the least packages of a suite, from the mirror that this machine has; one that is
# there already stays as it is. Or the script ends.
new_system() { # SUITE DIR LOG
  [ ! -e "$2/etc/debian_version" ] || return 0
  rm -rf "$2.new"
  local mirror
  mirror=$(apt-get --print-uris update 2>/dev/null | sed -nE "s#^'(.*)/dists/$1/(In)?Release'.*#\1#p" | head -n 1)
  [ -n "$mirror" ] || die "no configured mirror has the suite $1"
  mkdir -p "$(dirname "$2")" "$(dirname "$3")"
  run_logged "packages" "$3" 0 '^I: (Unpacking|Configuring)' debootstrap --variant=minbase "$1" "$2.new" "$mirror" ||
    { log_tail "$3"; die "debootstrap failed"; }
  mv "$2.new" "$2"
}
