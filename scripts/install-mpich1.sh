# shellcheck shell=bash
# The part of install-device for MPICH 1.2.x: mpid/ch_lite, a device directory beside mpid/ch_p4, with the engine's package in it. Sourced by install-device,
# which has set `root` and `leftovers` and defined sync_files and package_files. No file of the host is changed: its configure takes any directory of mpid/ for a device.

# shellcheck disable=SC2154

is_mpich1() { # TREE
  [ -f "$1/mpid/ch2/adi2init.c" ] || [ -d "$1/mpid/ch_p4" ]
}

# "1.2.7p1", from the README's title
mpich1_version() { # TREE
  sed -n 's/^[[:space:]]*Version \([0-9][0-9a-z.]*\),.*/\1/p' "$1/README" 2>/dev/null | head -n 1
}

# The device directory, or a refusal.
mpich1_check() { # TREE
  local version file
  version=$(mpich1_version "$1")
  case $version in
  1.2.*) ;;
  *) die "$1 is MPICH ${version:-of unknown version} (by its README); the device for MPICH-1 is written for 1.2.x (1.2.7p1 is tested): use that" ;;
  esac
  for file in configure Makefile.in util/mpirun.args.in mpid/ch2/adi2init.c mpid/ch2/packets.h mpid/ch2/chnrndv.c mpid/ch2/mpiddevbase.h mpid/util/queue.c; do
    [ -f "$1/$file" ] || die "$1 is not a complete MPICH $version source tree ($file is missing); unpack mpich-$version.tar.gz and give its top directory"
  done
  [ -w "$1/mpid" ] || die "$1 cannot be written to; copy it to a place of your own"
  if [ -e "$1/mpid/ch_lite" ] && [ ! -f "$1/mpid/ch_lite/.ch_lite" ]; then
    die "$1/mpid/ch_lite exists and was not put there by this script: move it away first"
  fi
}

mpich1_remove() { # TREE
  mpich1_check "$1"
  if [ ! -e "$1/mpid/ch_lite" ]; then
    say "ch_lite is not in $1: nothing to remove"
    return
  fi
  say "removing mpid/ch_lite"
  rm -rf "${1:?}/mpid/ch_lite"
  say "done; a build configured with the device has to be configured again"
}

mpich1_install() { # TREE
  local tool needed device=$1/mpid/ch_lite copied_glue copied_package hash
  mpich1_check "$1"
  for tool in autoreconf automake libtoolize m4 perl pkg-config; do
    have "$tool" || die "$tool is missing; on Debian: apt-get install autoconf automake libtool m4 perl pkg-config"
  done
  for needed in configure.ac Makefile.am src/ch_lite/mpich1/channel_host.h src/ch_lite/mpich1/setup_ch_lite; do
    [ -f "$root/$needed" ] || die "$root/$needed is missing: the ch_lite source tree is not complete"
  done
  say "1/2 copying the device and the engine into $1/mpid/ch_lite"
  mkdir -p "$device"
  [ -f "$device/.ch_lite" ] || : >"$device/.ch_lite"
  # Links, objects and the Makefile of a build in the tree stay.
  copied_glue=$(cd "$root/src/ch_lite/mpich1" && find . -maxdepth 1 -type f ! -name 'channel_host.*' -print | sed 's,^\./,,' | sync_files "$root/src/ch_lite/mpich1" "$device" \
    -name lite -o -name '.ch_lite*' -o -name '*.o' -o -name Makefile -o -name libmpid.a)
  chmod +x "$device/setup_ch_lite" "$device/install_ch_lite"
  copied_package=$(package_files | sync_files "$root" "$device/lite" ! -name . ! -name src ! -path './src/*' -o "${leftovers[@]}")
  say "      files copied: device $copied_glue, engine $copied_package"
  hash=$(package_files | grep -E '\.(ac|am|m4)$' | LC_ALL=C sort | (cd "$root" && xargs sha256sum) | sha256sum)
  if [ -f "$device/lite/configure" ] && [ "$(cat "$device/.ch_lite")" = "$hash" ]; then
    say "2/2 the engine's configure is up to date"
  else
    say "2/2 making the engine's configure (autoreconf)"
    mkdir -p "$device/lite/m4" # aclocal wants to see it
    (cd "$device/lite" && autoreconf -fi) >"$device/.ch_lite.log" 2>&1 || {
      log_tail "$device/.ch_lite.log"
      die "autoreconf failed in $device/lite"
    }
    printf '%s\n' "$hash" >"$device/.ch_lite"
  fi
  say "done: cd $1 && ./configure --with-device=ch_lite …   (ch_lite:-form=blocking for the blocking form; docs/mpich1.md has the flags for today's compilers)"
}
