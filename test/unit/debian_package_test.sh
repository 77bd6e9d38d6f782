#!/bin/bash
# What scripts/debian-package puts into a source package, what it asks dpkg for, and what it refuses.
# Nothing is built: the tools of Debian and autoconf are stand-ins that write down what they were
# asked for, the tree is the recipe alone. The packages themselves: docs/administrator.md.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=test/unit/verdict.sh
. "$top/test/unit/verdict.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL
work=$(mktemp -d) passed=0 failed=0
trap 'rm -rf "$work"' EXIT
export WORK=$work LIB_POLL_PERIOD=0.05
version=$(sed -nE 's/^AC_INIT\(\[ch_lite\], \[([^]]*)\]\)$/\1/p' "$top/configure.ac")
export version
mkdir -p "$work/bin" "$work/tree"
cp -R "$top/scripts" "$top/packaging" "$top/configure.ac" "$work/tree"
stand_in() { # NAME, with its text on stdin
  { echo '#!/bin/sh' && cat; } >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}
stand_in dpkg-query <<<'echo install ok installed'
stand_in apt-get <<<'exit 1'
# a configure whose `make dist` packs what is beside it
stand_in autoreconf <<'END'
cat >configure <<'SCRIPT'
#!/bin/sh
printf 'dist:\n\ttar -cJf ch_lite-%s.tar.xz -C .. --transform s,^./,ch_lite-%s/, --exclude=./made .\n' "$version" "$version" >Makefile
SCRIPT
chmod +x configure
END
stand_in dpkg-source <<'END'
cp -R "$2" "$WORK/packed" && touch mpich-ch-lite_$version-1.dsc
END
stand_in dpkg-buildpackage <<'END'
echo "$DEB_BUILD_OPTIONS: $*" >>"$WORK/asked"
touch ../mpich-ch-lite_$version-1_any.deb ../mpich-ch-lite_$version-1_any.changes ../mpich-ch-lite_$version-1_any.buildinfo
END
stand_in lintian <<'END'
[ ! -e "$WORK/complaint" ] || { cat "$WORK/complaint" && exit 2; }
END
export PATH=$work/bin:$PATH
printf 'ID=debian\nVERSION_CODENAME=bookworm\n' >"$work/os-release"
export CHLITE_OS_RELEASE=$work/os-release

release() { # VERSION; a release of MPICH as far as anybody looks
  mkdir -p "$work/mpich-$1/maint"
  printf 'm4_define([MPICH_VERSION_m4],[%s])dnl\n' "$1" >"$work/mpich-$1/maint/version.m4"
  tar -czf "$work/mpich-$1.tar.gz" -C "$work" "mpich-$1"
}
debian_package() { # OPTION…
  status=0
  text=$("$work/tree/scripts/debian-package" --build "$work/build" --out "$work/out" "$@" 2>&1) || status=$?
}
release 4.3.2
release 3.4.1

debian_package --mpich-tarball "$work/mpich-4.3.2.tar.gz" --jobs 3
verdict builds test "$status" = 0
verdict tells_where_they_are says "$work/out/mpich-ch-lite_$version-1_any.deb"
for file in _$version.orig.tar.xz _$version.orig-mpich.tar.gz _$version-1.dsc _$version-1_any.deb _$version-1_any.changes; do
  verdict "hands_out $file" test -e "$work/out/mpich-ch-lite$file"
done
verdict source_has_the_recipe cmp -s "$work/packed/debian/rules" "$top/packaging/debian/rules"
verdict source_has_mpich test -s "$work/packed/mpich/maint/version.m4"
verdict source_has_ch_lite test -x "$work/packed/scripts/install-device"
verdict checks_only_if_asked test "$(cat "$work/asked")" = "parallel=3 nocheck: -b -us -uc"
debian_package --mpich-tarball "$work/mpich-4.3.2.tar.gz" --jobs 3
verdict second_run_builds_nothing test "$status:$(wc -l <"$work/asked")" = 0:1
debian_package --mpich-tarball "$work/mpich-4.3.2.tar.gz" --jobs 3 --check
verdict check_is_another_build test "$(tail -n 1 "$work/asked")" = "parallel=3: -b -us -uc"
echo '# changed' >>"$work/tree/scripts/install-device"
rm -r "$work/packed"
debian_package --mpich-tarball "$work/mpich-4.3.2.tar.gz" --source-only
verdict what_has_changed_is_packed_again cmp -s "$work/tree/scripts/install-device" "$work/packed/scripts/install-device"
verdict source_only_builds_nothing test "$status:$(wc -l <"$work/asked")" = 0:2
# A release has no git; what was built below it is no source. By default both directories are there.
status=0
text=$(cd "$work/tree" && rm -r "$work/packed" && scripts/debian-package --source-only --mpich-tarball "$work/mpich-4.3.2.tar.gz" 2>&1) || status=$?
verdict default_directories_are_no_source test "$status" = 0 -a -z "$(find "$work/packed" -path '*/_*' ! -name '__*' | head -n 1)"
text=$(cd "$work/tree" && scripts/debian-package --source-only --mpich-tarball "$work/mpich-4.3.2.tar.gz" 2>&1) || status=$?
verdict default_directories_are_no_source says "up to date"
echo 'W: mpich-ch-lite: something' >"$work/complaint"
debian_package --mpich-tarball "$work/mpich-4.3.2.tar.gz"
verdict lintian_is_heard test "$status" = 1
verdict lintian_is_heard says 'W: mpich-ch-lite: something'
rm "$work/complaint"

debian_package --mpich-tarball "$work/mpich-3.4.1.tar.gz"
verdict unknown_version_is_refused test "$status" = 1
verdict unknown_version_is_refused says "MPICH 3.4.1 is not known"
echo nothing >"$work/nothing.tar.gz"
debian_package --mpich-tarball "$work/nothing.tar.gz"
verdict what_is_no_tar_file_is_refused says "is no tar file"
tar -czf "$work/other.tar.gz" -C "$work" os-release
debian_package --mpich-tarball "$work/other.tar.gz"
verdict another_tar_file_is_refused says "no MPICH release"
debian_package --mpich-tarball "$work/nowhere.tar.gz"
verdict missing_file_is_refused says "cannot be read"
debian_package --binary-only
verdict unknown_option_is_wrong_usage test "$status" = 2
debian_package --jobs 0
verdict wrong_number_is_wrong_usage test "$status" = 2
sed -i "1s/$version/0.0.9/" "$work/tree/packaging/debian/changelog"
debian_package --mpich-tarball "$work/mpich-4.3.2.tar.gz"
verdict changelog_of_another_version_is_refused says "write an entry"
echo 'ID=fedora' >"$work/os-release"
sed -i "1s/0\.0\.9/$version/" "$work/tree/packaging/debian/changelog"
debian_package --mpich-tarball "$work/mpich-4.3.2.tar.gz"
verdict another_distribution_is_refused says "has no Debian packages"

total=$((passed + failed))
echo "$((passed * 100 / total))%: Checks: $total, Failures: $failed, Errors: 0"
[ "$failed" = 0 ]
