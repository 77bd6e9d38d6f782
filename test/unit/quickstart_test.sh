#!/bin/bash
# What scripts/quickstart configures MPICH with: an optimized host, and the user's arguments after ours, so that they win. MPICH is a tree of the few files that
# install-device looks for, whose configure writes down its arguments; nothing is installed and nothing downloaded.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=test/unit/verdict.sh
. "$top/test/unit/verdict.sh"
work=$(mktemp -d) passed=0 failed=0
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
printf '#!/bin/sh\n[ ! -f maint/version.m4 ] || cp made-configure configure\n[ -f configure ] || echo >configure\nmkdir -p autom4te.cache build-aux\n' >"$work/bin/autoreconf"
printf '#!/bin/sh\necho install ok installed\n' >"$work/bin/dpkg-query"
for tool in automake libtoolize pkg-config; do printf '#!/bin/sh\n' >"$work/bin/$tool"; done
for tool in apt-get sudo; do printf '#!/bin/sh\necho %s was called >>%s\nexit 1\n' "$tool" "$work/forbidden" >"$work/bin/$tool"; done
chmod +x "$work"/bin/*
export PATH=$work/bin:$PATH

src=$work/src
mkdir -p "$src/maint" "$src/src/mpid/ch4/netmod/ucx" "$src/src/mpid/ch4/src"
echo 'm4_define([MPICH_VERSION_m4],[4.0.2])dnl' >"$src/maint/version.m4"
printf 'm4_include([src/mpid/ch4/subconfigure.m4])\n[src_mpid_ch4],\n' >"$src/subsys_include.m4"
printf '    mpi_errno = MPIDI_NM_get_local_upids(MPIR_Process.comm_self, &addrname_size, &addrname);\n    free_port_name_tag(tag);\n' >"$src/src/mpid/ch4/src/ch4_spawn.c"
{
  echo ' MPIDI_Reduce_intra_composition_alpha('
  echo '_mpi_reduce(sendbuf, recvbuf, count, datatype, op, 0, comm->node_comm,'
  echo '_mpi_reduce(sendbuf, recvbuf, count, datatype, op, 0, comm->node_comm,'
  echo ' MPIDI_Reduce_intra_composition_beta('
} >"$src/src/mpid/ch4/src/ch4_coll_impl.h"
mkdir -p "$src/src/mpid/ch4/shm/src"
echo '    ret = MPIDI_POSIX_progress(vci, made_progress);' >"$src/src/mpid/ch4/shm/src/shm_progress.h"
touch "$src/src/mpid/ch4/netmod/Makefile.mk" "$src/configure.ac" "$src/Makefile.am"
cat >"$src/made-configure" <<'END'
#!/bin/sh
printf '%s\n' "$@" >../arguments
for word; do case $word in --prefix=*) prefix=${word#--prefix=} ;; esac; done
printf 'all:\ninstall:\n\tmkdir -p %s/bin && cp /bin/true %s/bin/mpicc\n' "$prefix" "$prefix" >Makefile
touch config.status
END
chmod +x "$src/made-configure"
cp "$src/made-configure" "$src/configure"

quickstart() { # ARGUMENT…
  status=0
  text=$("$top/scripts/quickstart" --no-run --build "$work/build" --prefix "$work/prefix" --mpich-src "$src" "$@" 2>&1) || status=$?
}
# autoconf takes the last of several
last_of() { grep -E -- "^$1=" "$work/build/arguments" | tail -n 1; }

quickstart
verdict host_is_built test "$status" = 0 -a -x "$work/prefix/bin/mpicc"
verdict host_is_optimized test "$(last_of --enable-fast)" = --enable-fast=O3
verdict host_checks_arguments_as_ever test -z "$(grep -E 'error-checking|ndebug' "$work/build/arguments")"
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
verdict nothing_is_fetched test ! -e "$work/forbidden"

total=$((passed + failed))
echo "$((passed * 100 / total))%: Checks: $total, Failures: $failed, Errors: 0"
[ "$failed" = 0 ]
