#!/bin/bash
# make install, alone: what a prefix has, what the shared library exports, and that a program of mplite.h compiles and links by pkg-config both ways, starts under
# the installed lite-mprun, and may load the library late and close it early. In the build directory.
set -u
top=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=test/unit/verdict.sh
. "$top/test/unit/verdict.sh"
# not as a part of the make that runs the tests, which would have its words among the answers
unset MAKEFLAGS MFLAGS MAKELEVEL
work=$(mktemp -d) passed=0 failed=0 status=0 text=
trap 'rm -rf "$work"' EXIT
run() { # COMMAND…
  status=0
  text=$("$@" 2>&1) || status=$?
}
if nm -A -u .libs/libmplite_core.a | grep -qE '__(asan|tsan)_'; then
  echo "instrumented by a sanitizer: its programs need its flags, and nobody installs that"
  exit 77
fi
# shellcheck disable=SC2016  # variables of make
read -r bindir libdir includedir mandir < <(make -s --no-print-directory --eval='where:;@echo $(DESTDIR)$(bindir) $(DESTDIR)$(libdir) $(DESTDIR)$(includedir) $(DESTDIR)$(mandir)' where DESTDIR="$work")
# shellcheck disable=SC2016
read -ra cc < <(make -s --no-print-directory --eval='how:;@echo $(CC) $(CFLAGS)' how)
version=$(sed -nE 's/^AC_INIT\(\[ch_lite\], \[([^]]*)\]\)$/\1/p' "$top/configure.ac")

run make install DESTDIR="$work"
verdict installs test "$status" = 0
for file in "$bindir/lite-info" "$bindir/lite-mprun" "$includedir/mplite.h" "$libdir/libmplite.a" "$libdir/pkgconfig/mplite.pc" "$mandir/man1/lite-info.1" "$mandir/man1/lite-mprun.1" "$mandir/man7/ch_lite.7"; do
  verdict "prefix_is_complete ${file#"$work"}" test -s "$file"
done
run "$bindir/lite-info" --version
verdict programs_run test "$status" = 0
# as `strings` finds it
for library in "$libdir"/libmplite.{a,so}; do
  [ ! -e "$library" ] || verdict "library_tells_its_version ${library##*.}" grep -qaF "$text" "$library"
done

export PKG_CONFIG_PATH=$libdir/pkgconfig PKG_CONFIG_SYSROOT_DIR=$work LITE_PROFILE=none
run pkg-config --modversion mplite
verdict pkg_config_knows_it test "$status:$text" = "0:$version"
ping=$top/test/bench/mp_pingpong.c
compiled() { # PROGRAM PKG_CONFIG_OPTION…
  local program=$1 flags
  shift
  read -ra flags <<<"$(pkg-config --cflags --libs "$@" mplite)"
  run "${cc[@]}" "$ping" -o "$program" "${flags[@]}"
}
runs() { # PROGRAM
  run timeout 60 "$bindir/lite-mprun" -n 2 "$1"
  [ "$status" = 0 ] && says "   1048576 "
}

if [ -e "$libdir/libmplite.so" ]; then
  # the header without its comments
  declared=$("${cc[@]}" -fpreprocessed -E -P "$includedir/mplite.h" | grep -oE '\bMP_[A-Za-z_]+\(' | tr -d '(' | LC_ALL=C sort)
  text=$(nm -D --defined-only "$libdir/libmplite.so" | awk '$2 != "A" { sub("@.*", "", $3); print $3 }' | LC_ALL=C sort)
  verdict exports_what_the_header_declares test -n "$declared" -a "$text" = "$declared"
  text=$(readelf -dW "$libdir/libmplite.so")
  verdict has_a_soname says "Library soname: [libmplite.so.0]"
  verdict binds_no_call_in_the_handler says "NOW"
  verdict stays_when_it_is_closed says "NODELETE"

  compiled "$work/shared"
  verdict links_shared test "$status" = 0
  text=$(readelf -dW "$work/shared")
  verdict links_shared says "Shared library: [libmplite.so.0]"
  verdict links_shared test "$(grep -c NEEDED <<<"$text")" -le 2 # with the C library
  LD_LIBRARY_PATH=$libdir verdict shared_program_runs runs "$work/shared"

  # A plug-in: loaded when there are threads and memory already, closed while the job runs.
  cat >"$work/plugin.c" <<'END'
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
int main(void)
{
    void *library = dlopen("libmplite.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return fprintf(stderr, "%s\n", dlerror()), 1;
    int (*init)(int *, char ***) = (int (*)(int *, char ***)) dlsym(library, "MP_Init");
    int (*me)(void) = (int (*)(void)) dlsym(library, "MP_Myproc");
    int (*shift)(const void *, int, void *, int, int64_t, int) =
        (int (*)(const void *, int, void *, int, int64_t, int)) dlsym(library, "MP_SShift");
    int (*finalize)(void) = (int (*)(void)) dlsym(library, "MP_Finalize");
    if (init(NULL, NULL) != 0)
        return 1;
    dlclose(library);
    static char in[1 << 20], out[1 << 20];
    for (int i = 0; i < 100; i++)
        if (shift(out, 1 - me(), in, 1 - me(), sizeof(in), i) != 0)
            return 1;
    return finalize() == 0 ? puts("   1048576 bytes"), 0 : 1;
}
END
  run "${cc[@]}" "$work/plugin.c" -o "$work/plugin" -ldl
  verdict may_be_loaded_late test "$status" = 0
  for controller in sigio thread; do
    LITE_CONTROLLER=$controller LD_LIBRARY_PATH=$libdir verdict "may_be_loaded_late $controller" runs "$work/plugin"
  done
  rm -f "$libdir"/libmplite.so* # leaves the linker the static one
else
  echo "the shared library was not built (--disable-shared): the static one only"
fi

compiled "$work/static" --static
verdict links_static test "$status" = 0
text=$(readelf -dW "$work/static")
verdict links_static test "$(grep -c libmplite <<<"$text")" = 0
verdict static_program_runs runs "$work/static"

total=$((passed + failed))
echo "$((passed * 100 / total))%: Checks: $total, Failures: $failed, Errors: 0"
[ "$failed" = 0 ]
