#!/bin/bash
# What scripts/quickstart configures MPICH with: an optimized host, and the user's arguments after ours, so that they win. MPICH is a tree of the few files that
# install-device looks for, whose configure writes down its arguments; nothing is installed and nothing downloaded.
# And what it does on which distribution, with a made os-release, apt and dpkg; and what scripts/check installs there.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=test/unit/verdict.sh
. "$top/test/unit/verdict.sh"
# shellcheck source=test/unit/mpich_tree.sh
. "$top/test/unit/mpich_tree.sh"
work=$(mktemp -d) passed=0 failed=0
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
printf '#!/bin/sh\n[ ! -f maint/version.m4 ] || cp made-configure configure\n[ -f configure ] || echo >configure\nmkdir -p autom4te.cache build-aux\n' >"$work/bin/autoreconf"
printf '#!/bin/sh\necho install ok installed\n' >"$work/bin/dpkg-query"
for tool in automake libtoolize pkg-config; do printf '#!/bin/sh\n' >"$work/bin/$tool"; done
for tool in apt-get sudo; do printf '#!/bin/sh\necho %s was called >>%s\nexit 1\n' "$tool" "$work/forbidden" >"$work/bin/$tool"; done
chmod +x "$work"/bin/*
export PATH=$work/bin:$PATH LIB_POLL_PERIOD=0.05

src=$work/src
whole_mpich_tree "$src" 4.0.2
cat >"$src/made-configure" <<'END'
#!/bin/sh
printf '%s\n' "$@" >../arguments
for word; do case $word in --prefix=*) prefix=${word#--prefix=} ;; esac; done
printf 'all:\ninstall:\n\tmkdir -p %s/bin && cp /bin/true %s/bin/mpicc && cp %s %s/bin\n' "$prefix" "$prefix" "$WORK/mpiexec" "$prefix" >Makefile
touch config.status
END
chmod +x "$src/made-configure"
cp "$src/made-configure" "$src/configure"

# shellcheck disable=SC2016  # it is the script's
printf '#!/bin/sh\necho "pi is approximately 3.14, Error is 0.0000000 ($*)"\necho "messages: 160 checks, 0 failed"\n' >"$work/mpiexec"
chmod +x "$work/mpiexec"
export WORK=$work

quickstart() { # ARGUMENT…
  status=0
  text=$("$top/scripts/quickstart" --no-run --build "$work/build" --prefix "$work/prefix" --mpich-src "$src" "$@" 2>&1) || status=$?
}
# autoconf takes the last of several
last_of() { grep -E -- "^$1=" "$work/build/arguments" | tail -n 1; }

compiler_is() { # VERSION-OF-GFORTRAN
  printf '#!/bin/sh\necho %s\n' "$1" >"$work/bin/gfortran"
  chmod +x "$work/bin/gfortran"
}
arguments() { grep -E -- "$1" "$work/build/arguments" | tr '\n' ' '; }
about_extent='^--disable|^FFLAGS|datatype-engine'
unset FC F77
compiler_is 12
quickstart
verdict host_is_built test "$status" = 0 -a -x "$work/prefix/bin/mpicc"
verdict host_is_optimized test "$(last_of --enable-fast)" = --enable-fast=O3
verdict host_checks_arguments_as_ever test -z "$(arguments 'error-checking|ndebug')"
verdict default_has_all_languages_and_mpi_io test "$(arguments "$about_extent")" = "--disable-static FFLAGS=-fallow-argument-mismatch --with-datatype-engine=dataloop "
compiler_is 9
quickstart
verdict default_has_no_fortran_with_an_older_compiler test "$(arguments "$about_extent")" = "--disable-static --disable-fortran --with-datatype-engine=dataloop "
verdict default_has_no_fortran_with_an_older_compiler says "without Fortran"
quickstart --full
verdict full_leaves_all_to_mpich test "$(arguments "$about_extent")" = "--disable-static "
rm "$work/bin/gfortran"
touch "$work/prefix/bin/mpicxx"
quickstart --small
verdict small_is_c_alone test "$(arguments "$about_extent")" = "--disable-static --disable-fortran --disable-cxx --disable-romio --with-datatype-engine=dataloop "
verdict small_leaves_no_wrapper_of_before test ! -e "$work/prefix/bin/mpicxx" -a -x "$work/prefix/bin/mpicc"
quickstart -- --enable-fast=O1,ndebug --enable-static
verdict arguments_of_the_user_win test "$status:$(last_of --enable-fast)" = 0:--enable-fast=O1,ndebug
verdict arguments_of_the_user_win test "$(tail -n 1 "$work/build/arguments")" = --enable-static

# A release's tar file: unpacked under the build directory and taken from there; another one is another build.
quickstart_tarball() { # FILE
  status=0
  text=$("$top/scripts/quickstart" --no-run --build "$work/build" --prefix "$work/prefix" --mpich-tarball "$1" 2>&1) || status=$?
}
"$top/scripts/install-device" --remove "$src" >/dev/null 2>&1
tar -czf "$work/mpich-4.0.2.tar.gz" -C "$work" --transform 's,^src,mpich-4.0.2,' src
rm -f "$work/build/arguments"
quickstart_tarball "$work/mpich-4.0.2.tar.gz"
verdict tarball_is_built test "$status" = 0 -a -f "$work/build/mpich-src/src/mpid/ch4/netmod/lite/lite_impl.h" -a -f "$work/build/arguments"
quickstart_tarball "$work/mpich-4.0.2.tar.gz"
verdict tarball_is_unpacked_once says "have it"
sed -i 's/4\.0\.2/4.2.3/' "$src/maint/version.m4"
tar -czf "$work/mpich-4.2.3.tar.gz" -C "$work" --transform 's,^src,mpich-4.2.3,' src
rm -f "$work/build/arguments"
quickstart_tarball "$work/mpich-4.2.3.tar.gz"
verdict another_tarball_is_another_build test "$status" = 0 -a -f "$work/build/arguments"
echo nothing >"$work/empty.tar.gz"
quickstart_tarball "$work/empty.tar.gz"
verdict what_is_no_tarball_is_refused says "could not unpack"
quickstart_tarball "$work/nowhere.tar.gz"
verdict missing_tarball_is_refused says "cannot be read"
quickstart_tarball "$work"
verdict folder_is_no_tarball says "cannot be read"
quickstart --prefix ""
verdict empty_value_is_refused says "--prefix needs a value"
quickstart --prefix "$work/a b"
verdict blanks_in_a_path_are_refused says "take no path with blanks"
verdict blanks_in_a_path_are_refused test "$status" = 2
verdict nothing_is_fetched test ! -e "$work/forbidden"

# ---- distributions: apt and dpkg say what a distribution's would; what they are asked for is kept ----
world=$work/world
mkdir -p "$work/apt-bin" "$world"
cat >"$work/apt-bin/dpkg-query" <<'END'
#!/bin/sh
for package; do :; done
grep -qx "$package" "$WORLD/installed" && echo install ok installed
END
cat >"$work/apt-bin/apt-cache" <<'END'
#!/bin/sh
for word; do case $word in Dir::Etc::sourcelist=*) sources=${word#*=} ;; esac; done
case " $* " in
  *" showsrc "*) cat "$WORLD/source.$(sed -n 's/^Suites: //p' "$sources")" ;;
  *) for package; do :; done; ! grep -qx "$package" "$WORLD/unknown" ;;
esac
END
cat >"$work/apt-bin/apt-get" <<'END'
#!/bin/sh
for word; do case $word in Dir::Etc::sourcelist=*) sources=${word#*=} ;; esac; done
case " $* " in
  *" --print-uris update "*)
    for suite in $(cat "$WORLD/suites"); do
      echo "'http://mirror.invalid/os/dists/$suite/InRelease' x 0"
      echo "'http://mirror.invalid/os/dists/$suite-security/InRelease' x 0"
    done
    ;;
  *" update "*) [ -z "$sources" ] || [ -e "$WORLD/source.$(sed -n 's/^Suites: //p' "$sources")" ] ;;
  *" source "*)
    suite=$(sed -n 's/^Suites: //p' "$sources")
    [ ! -e "$WORLD/withheld.$suite" ] || exit 1
    cp "$WORLD/pool/$suite"/* .
    ;;
  *" install "*)
    echo "$*" >>"$WORLD/asked"
    for package; do ! grep -qx "$package" "$WORLD/unknown" || exit 1; done
    for package; do echo "$package" >>"$WORLD/installed"; done
    ;;
esac
END
chmod +x "$work"/apt-bin/*
# Every tool of this machine, but for those that a distribution here may not have, and for ip: the
# programs run in no test hosts.
mkdir "$work/few"
ln -sf -t "$work/few" /usr/bin/* /bin/* /usr/sbin/* /sbin/*
(cd "$work/few" && rm -f libtoolize autoconf apt-get apt-cache dpkg-query sudo NPmpich2 ip)
printf '#!/bin/sh\n' >"$work/apt-bin/autoconf"
chmod +x "$work/apt-bin/autoconf"
export WORLD=$world

# A fresh machine.
distribution() { # OS-RELEASE-LINES SUITE…
  rm -rf "$world" "$work/build" "$work/prefix"
  mkdir -p "$world/pool"
  printf '%b' "$1" >"$world/os-release"
  shift
  printf '%s\n' "$@" >"$world/suites"
  echo none >"$world/installed"
  echo none >"$world/unknown"
}
source_package() { # SUITE VERSION-IN-ITS-NAME VERSION-OF-THE-TREE
  local upstream=${2%-*} pool=$world/pool/$1 hash
  "$top/scripts/install-device" --remove "$src" >/dev/null 2>&1
  sed -i "s/_m4\],\[[^]]*/_m4],[$3/" "$src/maint/version.m4"
  mkdir -p "$pool"
  tar -cJf "$pool/mpich_$upstream.orig.tar.xz" -C "$work" src
  echo signature >"$pool/mpich_$upstream.orig.tar.xz.asc"
  hash=$(cd "$pool" && sha256sum ./*.tar.xz | sed 's, \./,1 ,')
  printf 'Checksums-Sha256:\n %s\nFiles:\n' "$hash" >"$pool/mpich_$2.dsc"
  printf 'Package: mpich\nVersion: %s\n' "$2" >"$world/source.$1"
}
on_it() { # ARGUMENT…
  status=0
  text=$(PATH=$work/apt-bin:$work/bin:$work/few CHLITE_OS_RELEASE=$world/os-release "$top/scripts/quickstart" \
    --build "$work/build" --prefix "$work/prefix" "$@" 2>&1) || status=$?
}
built_from() { # VERSION
  test "$status" = 0 && grep -qF "[$1]" "$work/build/mpich-src/maint/version.m4"
}
debian13='PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nID=debian\nVERSION_CODENAME=trixie\n'
ubuntu24='PRETTY_NAME="Ubuntu 24.04.3 LTS"\nID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\nUBUNTU_CODENAME=noble\n'
ubuntu22='PRETTY_NAME="Ubuntu 22.04.5 LTS"\nID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=jammy\nUBUNTU_CODENAME=jammy\n'
mint='PRETTY_NAME="Linux Mint 22"\nID=linuxmint\nID_LIKE="ubuntu debian"\nVERSION_CODENAME=wilma\nUBUNTU_CODENAME=noble\n'
fedora='PRETTY_NAME="Fedora Linux 41"\nID=fedora\n'

distribution "$debian13" trixie
source_package trixie 4.3.0+really4.2.1-1 4.2.1
on_it --no-run
verdict debian_13_takes_its_own_mpich built_from 4.2.1
verdict debian_13_takes_its_own_mpich says "MPICH 4.2.1 of trixie"
verdict debian_13_gets_the_packages grep -q ' gcc g++ .*libhwloc-dev libsodium-dev' "$world/asked"
# nobody asks for what only the programs need
verdict debian_13_gets_the_packages test -z "$(grep -E 'netpipe|iproute2' "$world/asked")"
on_it --no-run
verdict second_time_asks_for_nothing test "$status:$(wc -l <"$world/asked")" = 0:1

source_package bookworm 4.0.2-3 4.0.2
touch "$world/withheld.trixie"
rm -rf "$work/build"
on_it --no-run
verdict debian_12s_source_is_the_second_choice built_from 4.0.2
verdict debian_12s_source_is_the_second_choice says "trixie has MPICH 4.2.1, which its mirror does not hand out"
printf 'Package: mpich\nVersion: 9.9.9-1\n' >"$world/source.trixie"
rm -rf "$work/build"
on_it --no-run
verdict an_unknown_version_is_said says "trixie has MPICH 9.9.9, which ch_lite does not know"

distribution "$ubuntu22" jammy
source_package jammy 4.0-3 4.0
on_it --no-run
verdict ubuntu_22_takes_its_own_mpich built_from 4.0

# Its packages have no NetPIPE: that is no failure, and the next run does not ask again.
distribution "$ubuntu24" noble
source_package noble 4.2.0-5build3 4.2.0
echo netpipe-mpich2 >"$world/unknown"
on_it
verdict ubuntu_24_takes_its_own_mpich built_from 4.2.0
verdict ubuntu_24_does_without_netpipe test -z "$(grep netpipe "$world/asked")"
verdict ubuntu_24_does_without_netpipe says "messages: 160 checks, 0 failed"
verdict ubuntu_24_gets_the_test_hosts grep -q ' iproute2 procps' "$world/asked"
on_it
verdict second_time_asks_for_nothing test "$status:$(wc -l <"$world/asked")" = 0:1
verdict ubuntu_does_not_ask_for_debian_12 test -z "$(grep -r bookworm "$work/build")"
printf 'Package: mpich\nVersion: 9.9.9-1\n' >"$world/source.noble"
rm -rf "$work/build"
on_it --no-run
verdict no_known_version_is_a_failure test "$status" = 1
verdict no_known_version_is_a_failure says "noble has MPICH 9.9.9, which ch_lite does not know"
verdict no_known_version_is_a_failure says "--mpich-tarball FILE"

distribution "$mint" wilma noble
source_package noble 4.2.0-5build3 4.2.0
on_it --no-run
verdict mint_takes_ubuntus_mpich built_from 4.2.0

# No packages by name: the tools and libraries are there, or are named. dpkg as a tool is no Debian.
"$top/scripts/install-device" --remove "$src" >/dev/null 2>&1
distribution "$fedora" none
# shellcheck disable=SC2016  # it is the script's
printf '#!/bin/sh\n[ "$1" != --exists ] || [ ! -e "$WORLD/no.$2" ]\n' >"$work/bin/pkg-config"
on_it --no-run --mpich-src "$src"
verdict another_distribution_is_built_from_a_tree test "$status" = 0
verdict another_distribution_is_built_from_a_tree says "Fedora Linux 41: tools and libraries found"
on_it --no-run
verdict another_distribution_needs_a_tree test "$status" = 1
verdict another_distribution_needs_a_tree says "Fedora Linux 41's own source of MPICH is not known here"
verdict another_distribution_needs_a_tree says "give --mpich-src DIR or --mpich-tarball FILE"
touch "$world/no.hwloc"
on_it --no-run --mpich-src "$src"
verdict missing_libraries_are_named says "missing: hwloc with its headers"
verdict missing_libraries_are_named says "cure: install them by Fedora Linux 41's package manager"
status=0
text=$(PATH=$work/few CHLITE_OS_RELEASE=$world/os-release "$top/scripts/quickstart" --no-run \
  --build "$work/build" --prefix "$work/prefix" --mpich-src "$src" 2>&1) || status=$?
verdict missing_tools_are_named test "$status" = 1
verdict missing_tools_are_named says "missing: autoconf, libtoolize"
verdict nobody_else_is_asked test ! -e "$world/asked"

# ---- scripts/check installs what its steps need, as the README's second command ----
check_on_it() { # ARGUMENT…
  status=0
  text=$(PATH=$work/apt-bin:$work/bin:$work/few CHLITE_OS_RELEASE=$world/os-release "$top/scripts/check" \
    --packages-only --build "$work/check" "$@" 2>&1) || status=$?
}
asked() { tr ' ' '\n' <"$world/asked" | grep -xF -- "$1" >/dev/null; }
distribution "$debian13" trixie
echo g++-11 >"$world/unknown"
check_on_it
verdict check_installs_what_all_steps_need test "$status" = 0
for package in g++ libhwloc-dev clang clang-format shellcheck libmpich-dev cmake nftables iproute2 netpipe-mpich2 slurmd; do
  verdict check_installs_what_all_steps_need asked "$package"
done
verdict check_does_without_what_the_distribution_lacks test -z "$(grep -F 'g++-11' "$world/asked")"
verdict check_installs_each_once test "$(tr ' ' '\n' <"$world/asked" | grep -cx clang)" = 1
check_on_it
verdict check_asks_once test "$status:$(wc -l <"$world/asked")" = 0:1
distribution "$debian13" trixie
rm -rf "$work/check"
check_on_it --steps races
verdict check_installs_for_the_steps_that_run asked libhwloc-dev
verdict check_installs_for_the_steps_that_run test -z "$(grep -E 'clang|slurm|iproute2' "$world/asked")"
distribution "$debian13" trixie
check_on_it --no-install
verdict check_installs_nothing_where_it_must_not test ! -e "$world/asked"
distribution "$debian13" trixie
echo clang >"$world/unknown"
check_on_it
verdict check_names_what_cannot_be_had test "$status" = 1
verdict check_names_what_cannot_be_had says "apt-get could not install"
distribution "$fedora" 41
check_on_it
verdict check_knows_no_other_names test "$status" = 0 -a ! -e "$world/asked"

total=$((passed + failed))
echo "$((passed * 100 / total))%: Checks: $total, Failures: $failed, Errors: 0"
[ "$failed" = 0 ]
