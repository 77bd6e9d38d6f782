# shellcheck shell=bash
# Shared by the scripts in this directory: messages, progress lines, logged steps, hashes. Sourced, never run.
# Progress goes to stderr, so that a script's stdout stays its result.

say() { printf '%s\n' "$*" >&2; }
die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}
# The command line is wrong: as `die`, with the exit status of wrong usage.
usage_error() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 2
}
have() { command -v "$1" >/dev/null 2>&1; }
# configure, and the libtool that it writes, start thousands of shells: with a small one MPICH's configure takes three quarters of the time.
if [ -z "${CONFIG_SHELL-}" ] && have dash; then
  CONFIG_SHELL=$(command -v dash)
  export CONFIG_SHELL
fi
now_s() { printf '%(%s)T\n' -1; }

# Packages of Debian 12 and 13 and of Ubuntu 22.04 and 24.04, by the names that they have in all of
# these. For the build of the device, the host and the tests (dpkg-dev: unpacking the host's source
# package); for running: the test hosts. NetPIPE, with the MPICH that it is linked to, is in none of
# Ubuntu 24.04's.
# shellcheck disable=SC2034
PACKAGES_BUILD="gcc g++ make autoconf automake libtool m4 perl python3 pkg-config xz-utils libhwloc-dev libsodium-dev check dpkg-dev util-linux"
# What only the project's own checks need: fuzz targets and a second compiler, scripts and Python looked through, programs built with Debian's mpich to compare with, a CMake project, a test network with a limit for each connection.
# shellcheck disable=SC2034
PACKAGES_CLANG="clang clang-format"
# What clang needs for sanitizers, where it is a package of its own (Debian 13).
# shellcheck disable=SC2034
PACKAGES_CLANG_RUNTIME="libclang-rt-dev"
# shellcheck disable=SC2034
PACKAGES_CHECK="$PACKAGES_CLANG shellcheck libmpich-dev cmake nftables"
# shellcheck disable=SC2034
PACKAGES_RUN="iproute2 procps"
# shellcheck disable=SC2034
PACKAGES_NETPIPE="netpipe-mpich2"
# The oldest compiler supported, that of Ubuntu 22.04; Debian 13 does not have it.
# shellcheck disable=SC2034
PACKAGES_OLDEST="g++-11"
# For 64-bit ARM: a cross compiler, libraries, an emulator. Debian's names, with `dpkg --add-architecture arm64`.
# shellcheck disable=SC2034
PACKAGES_ARM64="g++-aarch64-linux-gnu libhwloc-dev:arm64 libsodium-dev:arm64 check:arm64 libstdc++6:arm64 qemu-user-static"
# What scripts/debian-package needs beside PACKAGES_BUILD.
# shellcheck disable=SC2034
PACKAGES_PACKAGE="build-essential debhelper gfortran procps"
# For test/lab/slurm.sh, which skips without.
# shellcheck disable=SC2034
PACKAGES_SLURM="slurmctld slurmd slurm-client munge"
# For test/lab/gridengine.sh and ssh.sh, which skip without. Debian starts their daemons on a machine of people, so only .ci/run
# installs them.
# shellcheck disable=SC2034
PACKAGES_GRIDENGINE="gridengine-master gridengine-exec gridengine-client"
# shellcheck disable=SC2034
PACKAGES_SSH="openssh-server openssh-client"

# In pipes: grep PATTERN >/dev/null, not grep -q, which leaves early and fails the pipe (pipefail) by the writer's SIGPIPE.

# A live line is only for people: on a pipe or in CI one plain line every LIB_QUIET_PERIOD seconds says that we are alive.
LIB_QUIET_PERIOD=${LIB_QUIET_PERIOD:-30}
# How often run_logged looks, in seconds; less in tests of steps that take no time.
LIB_POLL_PERIOD=${LIB_POLL_PERIOD:-1}
is_live() { [ -t 2 ] && [ "${TERM:-dumb}" != dumb ]; }

minutes() { # SECONDS -> "3:07"
  printf '%d:%02d' $(($1 / 60)) $(($1 % 60))
}

# Prints the end of a log, indented, so that it can be told from our own words.
log_tail() { # LOG [LINES]
  [ -f "$1" ] || return 0
  say "  last lines of $1:"
  tail -n "${2:-25}" "$1" | sed 's/^/    | /' >&2
}

# Runs a command with its output in LOG and shows how far it is by counting the lines of LOG that match PATTERN.
# EXPECTED 0: not known. Returns the command's exit code.
run_logged() { # LABEL LOG EXPECTED PATTERN CMD…
  local label=$1 log=$2 expected=$3 pattern=$4
  shift 4
  local start pid code=0 count elapsed shown=0 text
  start=$(now_s)
  "$@" >"$log" 2>&1 </dev/null &
  pid=$!
  # An interrupted script must not leave a build running behind its back.
  LIB_CHILD=$pid
  while kill -0 "$pid" 2>/dev/null; do
    sleep "$LIB_POLL_PERIOD"
    elapsed=$(($(now_s) - start))
    if ! is_live && [ $((elapsed - shown)) -lt "$LIB_QUIET_PERIOD" ]; then continue; fi
    shown=$elapsed
    count=$(grep -cE -- "$pattern" "$log" 2>/dev/null || true)
    text="$label: ${count:-0}"
    if [ "$expected" -gt 0 ]; then
      # An estimate from another machine: never show more than it, nor 100 % before the end.
      local percent=$((count * 100 / expected))
      [ "$percent" -gt 99 ] && percent=99
      text="$text of about $expected ($percent %)"
    fi
    text="$text, $(minutes "$elapsed")"
    if is_live; then printf '\r\033[K      %s' "$text" >&2; else say "      $text"; fi
  done
  wait "$pid" || code=$?
  LIB_CHILD=
  if is_live; then printf '\r\033[K' >&2; fi
  return "$code"
}

# Ends what run_logged or a script has under way, by process id and by what that process started.
# shellcheck disable=SC2034  # read by the traps of the scripts
LIB_CHILD=
end_tree() { # PID
  local child
  for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null || true); do end_tree "$child"; done
  kill "$1" 2>/dev/null || true
}

# One hash over the names and contents of files and directories (build leftovers excluded), and over the words after "--".
hash_inputs() { # PATH… [-- WORD…]
  local path
  {
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
      path=$1
      shift
      if [ -d "$path" ]; then
        (cd "$path" && find . -type f \( -name '*.[cho]*' -o -name '*.hpp' -o -name '*.m4' -o -name '*.mk' -o -name '*.am' -o -name '*.ac' \
          -o -name '*.in' -o -name '*.patch' -o -perm -u+x \) ! -name '*.o' ! -name '*.lo' ! -path '*/.deps/*' ! -path '*/autom4te.cache/*' -print0 |
          LC_ALL=C sort -z | xargs -0 -r sha256sum)
      elif [ -f "$path" ]; then
        sha256sum <"$path"
      fi
    done
    printf '%s\n' "$@"
  } | sha256sum | cut -c1-16
}

# The version of an MPICH 4 or 5, by the text of its maint/version.m4 on stdin.
mpich_version() {
  sed -n 's/^m4_define(\[MPICH_VERSION_m4\],\[\([^]]*\)\]).*/\1/p'
}
# Whether it is one of `known_versions`, which install-device has and prints (--versions).
mpich_is_known() { # VERSION
  # shellcheck disable=SC2154  # the script's
  case " $known_versions " in *" $1 "*) ;; *) return 1 ;; esac
}

# The cores that this process may use, one number per line.
cores_allowed() {
  local list part
  list=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
  for part in ${list//,/ }; do seq "${part%-*}" "${part#*-}"; done
}
