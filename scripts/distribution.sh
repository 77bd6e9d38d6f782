# shellcheck shell=bash
# The distribution: what it is, its packages, and its own source of MPICH. Sourced after lib.sh, and
# after steps.sh where there are steps, with `build` set; never run.

# CHLITE_OS_RELEASE is for test/unit/quickstart_test.sh.
os_release=${CHLITE_OS_RELEASE:-/etc/os-release}
os_field() { # NAME: its value in os-release, or nothing
  # shellcheck disable=SC1090
  (. "$os_release" && eval "printf '%s' \"\${$1-}\"") 2>/dev/null || true
}
os_name=$(os_field PRETTY_NAME)
os_name=${os_name:-this distribution}
os_ids=" $(os_field ID) $(os_field ID_LIKE) "
# dpkg alone is no sign: other distributions have it as a tool. Without os-release the tools decide.
is_debian_like() {
  have dpkg-query && have apt-get || return 1
  case $os_ids in "  " | *" debian "* | *" ubuntu "*) return 0 ;; *) return 1 ;; esac
}
as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo)
package_is_installed() {
  dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep '^install ok installed' >/dev/null
}
# Installs the packages of `missing`, and of `wanted` those that the distribution has. The others
# are written down with its name, so that a later run does not ask again.
# shellcheck disable=SC2154  # build is the script's
without=$build/not-in-the-distribution
apt_install() {
  local package to_install=("${missing[@]}")
  "${as_root[@]}" apt-get -o Acquire::Retries=3 update || return 1
  : >"$without"
  for package in "${wanted[@]}"; do
    if apt-cache show --no-all-versions "$package" >/dev/null 2>&1; then
      to_install+=("$package")
    else
      echo "$os_name: $package" | tee -a "$without"
    fi
  done
  [ ${#to_install[@]} -gt 0 ] || return 0
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 \
    install -y --no-install-recommends "${to_install[@]}"
}
# Required ones, `missing`, and those that are done without where the distribution has not got them,
# `wanted`; both in `all`.
find_missing() { # "PACKAGE…" "OPTIONAL…"
  local package
  missing=() wanted=()
  for package in $1; do package_is_installed "$package" || missing+=("$package"); done
  for package in $2; do
    package_is_installed "$package" || grep -qxF "$os_name: $package" "$without" 2>/dev/null ||
      wanted+=("$package")
  done
  # what can be done without is no reason to ask for root's password
  if [ "$(id -u)" != 0 ] && [ ${#missing[@]} -eq 0 ]; then wanted=(); fi
  all=("${missing[@]}" "${wanted[@]}")
  by_hand="as root: apt-get install --no-install-recommends ${all[*]}"
}
apt_install_logged() { # LOG
  run_logged "packages unpacked and set up" "$1" 0 '^(Get:|Unpacking|Setting up)' apt_install
}
packages_step() { # "PACKAGE…" "OPTIONAL…"
  local tool library list all by_hand
  step_begin packages "what the build and the programs need"
  missing=()
  if is_debian_like; then
    find_missing "$@"
    if [ ${#all[@]} -gt 0 ]; then
      say "      installing ${all[*]}"
      if [ "$(id -u)" != 0 ]; then
        have sudo || step_fail "no root and no sudo" "$by_hand"
        # sudo may have to ask for its password, which it cannot behind a log
        sudo -v || step_fail "sudo refused" "$by_hand"
      fi
      apt_install_logged "$step_log" ||
        step_fail "apt-get could not install ${all[*]}" \
          "read the log; is the package mirror reachable? On Ubuntu some are in universe"
      step_end "installed $((${#all[@]} - $(wc -l <"$without"))) of ${#all[@]}"
    else
      step_end "all present"
    fi
  else
    for tool in gcc g++ make autoconf automake libtoolize m4 perl python3 pkg-config xz; do
      have "$tool" || missing+=("$tool")
    done
    if have pkg-config; then
      for library in hwloc libsodium; do
        pkg-config --exists "$library" || missing+=("$library with its headers")
      done
    fi
    if [ ${#missing[@]} -gt 0 ]; then
      printf -v list '%s, ' "${missing[@]}"
      step_fail "missing: ${list%, }" \
        "install them by $os_name's package manager: only Debian's and Ubuntu's packages are known here"
    fi
    step_end "$os_name: tools and libraries found"
  fi
}

# The user's apt configuration is only read: the mirrors it names are asked for the source package through a private sources file and
# private lists, so no deb-src line has to be added to it.
# The suites to ask: the distribution's own, and that of what it is made from (Mint: of Ubuntu).
# Where Debian's own has no version that the device knows, Debian 12's, which has 4.0.2.
# shellcheck disable=SC2154  # here is the script's
known_versions=$("$here/install-device" --versions)
suites=$(
  for field in VERSION_CODENAME UBUNTU_CODENAME DEBIAN_CODENAME; do
    os_field "$field"
    echo
  done
  case $os_ids in *" ubuntu "*) ;; *) echo bookworm ;; esac
)
suites=$(awk 'NF && !seen[$0]++' <<<"$suites")
source_mirrors() { # SUITE; those that name it first
  apt-get --print-uris update 2>/dev/null | sed -nE "s#^'(.*)/dists/([^']*)/(In)?Release'.*#\2 \1#p" |
    awk -v suite="$1" '$1 ~ /-(security|updates|backports)/ || $1 ~ /\// { next } { print ($1 == suite ? 0 : 1), $2 }' | sort -s -u -k1,1 -k2 | cut -d' ' -f2-
}
private_apt() { # PROGRAM ARGUMENT…
  local program=$1
  shift
  "$program" -o Dir::Etc::sourcelist="$build/apt/mpich.sources" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$build/apt/lists" \
    -o Dir::Cache="$build/apt/cache" -o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=3 "$@"
}
# What private_apt asks.
apt_sources() { # deb|deb-src SUITE MIRROR
  local keyring keyrings=()
  for keyring in /usr/share/keyrings/{debian,ubuntu}-archive-keyring.gpg; do
    [ ! -f "$keyring" ] || keyrings+=("$keyring")
  done
  {
    printf 'Types: %s\nURIs: %s\nSuites: %s\nComponents: main universe\n' "$1" "$3" "$2"
    [ ${#keyrings[@]} -eq 0 ] || printf 'Signed-By: %s\n' "${keyrings[*]}"
  } >"$build/apt/mpich.sources"
}
# The version of mpich that the suite has there, without Debian's part: 4.0.2 of 4.0.2-3, 4.2.1 of
# 4.3.0+really4.2.1-1.
version_in() { # SUITE MIRROR
  apt_sources deb-src "$1" "$2"
  private_apt apt-get update >&2 || return 1
  private_apt apt-cache showsrc mpich |
    sed -nE 's/^Version: ([0-9]+:)?(.*\+really)?([^-+~]*).*/\3/p' | sort -V | tail -n 1
}
# Each suite that is asked leaves a line in $build/source.found: what was taken, or why it was not.
download_source() {
  local suite mirror version found=$build/source.found
  : >"$found"
  for suite in $suites; do
    for mirror in $(source_mirrors "$suite"); do
      version=$(version_in "$suite" "$mirror") || continue
      [ -n "$version" ] || continue
      if ! mpich_is_known "$version"; then
        echo "$suite has MPICH $version, which ch_lite does not know" >>"$found"
        continue
      fi
      # several repositories may call a suite by this name: the one with this package, signed by the distribution, is ours
      if (cd "$build/download" && private_apt apt-get source --download-only --only-source mpich); then
        echo "MPICH $version of $suite" >>"$found"
        return 0
      fi
      echo "$suite has MPICH $version, which its mirror does not hand out" >>"$found"
    done
  done
  cat "$found"
  echo "no configured mirror has the source package mpich of ${suites//$'\n'/ or } in a version that ch_lite knows"
  return 1
}
# Leaves its tar file in $build/download, as the distribution has signed it.
fetch_mpich() {
  rm -rf "$build/apt" "$build/download"
  mkdir -p "$build/apt/lists/partial" "$build/apt/cache/archives/partial" "$build/download"
  [ -n "$(source_mirrors "")" ] || { echo "apt knows no mirror: is /etc/apt/sources.list.d empty?"; return 1; }
  download_source || return 1
  cd "$build/download" || return 1
  # apt has checked the signature up to the .dsc; the .dsc vouches for the tar file
  sed -n '/^Checksums-Sha256:/,/^[^ ]/s/^ \([0-9a-f]*\) [0-9]* \(.*\)$/\1  \2/p' mpich_*.dsc >SHA256
  grep -q '\.orig\.tar' SHA256 || { echo "the .dsc lists no .orig.tar"; return 1; }
  sha256sum --check --strict SHA256
}
# In a step: the distribution's MPICH (the pristine release, without the distribution's patches)
# becomes `tarball`, and what was found `mpich_found`; or the step fails.
download_mpich() { # HOW-TO-GIVE-ONE
  local get_it="get a release of MPICH yourself (one of $known_versions) and give $1"
  is_debian_like || step_fail "$os_name's own source of MPICH is not known here" "$get_it"
  run_logged "lines of apt-get" "$step_log" 0 '.' fetch_mpich ||
    step_fail "could not get MPICH's source package" "see the log; or $get_it"
  rm -rf "$build/apt"
  sed -e '$d' -e 's/^/      /' "$build/source.found" >&2
  # shellcheck disable=SC2034  # the script's
  mpich_found=$(tail -n 1 "$build/source.found")
  # shellcheck disable=SC2034
  tarball=$(find "$build/download" -name 'mpich_*.orig.tar.*' ! -name '*.asc')
}
