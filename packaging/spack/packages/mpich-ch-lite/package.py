"""MPICH with the ch_lite device, for Spack (docs/administrator.md): Spack's own recipe of MPICH,
into whose source the device goes before it is configured. The device is that of the source tree
that this file is in."""

import os
import re

from spack.package import *

try:  # Spack 1
    from spack_repo.builtin.packages.mpich.package import Mpich
except ImportError:
    from spack.pkg.builtin.mpich import Mpich

TOP = os.path.dirname(os.path.realpath(__file__))
while not os.path.exists(os.path.join(TOP, "scripts", "install-device")):
    if TOP == os.path.dirname(TOP):
        raise RuntimeError(f"{__file__} is not in a source tree of ch_lite: add that tree's repository")
    TOP = os.path.dirname(TOP)


def found_in(name, pattern):
    with open(os.path.join(TOP, name), encoding="utf-8") as file:
        return re.search(pattern, file.read(), re.M).group(1)


DEVICE = found_in("configure.ac", r"^AC_INIT\(\[ch_lite\], \[([^]]+)\]")
KNOWN = found_in(os.path.join("scripts", "install-device"), r'^known_versions="([^"]+)"').split()


class MpichChLite(Mpich):
    """MPICH over TCP by the ch_lite device: every protocol moves on while the program computes."""

    # the last of each minor version, also for a Spack that is older than it
    version(
        "5.0.1",
        sha256="8c1832a13ddacf071685069f5fadfd1f2877a29e1a628652892c65211b1f3327",
        preferred=True,
    )
    version("4.3.2", sha256="47d774587a7156a53752218c811c852e70ac44db9c502dc3f399b4cb817e3818")
    version("4.2.3", sha256="7a019180c51d1738ad9c5d8d452314de65e828ee240bcb2d1f80de9a65be88a8")

    variant("device", default="ch4", values=("ch4",), multi=False, description="ch_lite's")
    variant("netmod", default="lite", values=("lite",), multi=False, description="ch_lite")
    variant(
        "datatype-engine",
        default="dataloop",
        values=("dataloop", "yaksa"),
        multi=False,
        description="packs derived datatypes; buffers in GPUs need yaksa",
    )
    variant(
        "ch_lite",
        default=DEVICE,
        values=(DEVICE,),
        multi=False,
        description="the device's version",
    )

    depends_on("hwloc@2:")
    depends_on("libsodium")
    for tool in ("autoconf", "automake", "libtool", "m4", "perl", "pkgconfig", "python"):
        depends_on(tool, type="build")

    @run_before("autoreconf")
    def put_the_device_in(self):
        if str(self.spec.version) not in KNOWN:
            raise InstallError(
                f"ch_lite has never been tried with MPICH {self.spec.version}: "
                f"use one of {', '.join(KNOWN)}"
            )
        Executable(os.path.join(TOP, "scripts", "install-device"))(self.stage.source_path)

    def configure_args(self):
        # simple is MPICH's default; to 4.2 and later the option names a library, as older Spacks
        # than that do not know
        ours = ("--with-device=", "--with-pmi=simple")
        args = [a for a in super().configure_args() if not a.startswith(ours)]
        return args + ["--with-device=ch4:lite", "--enable-fast=O3", "--disable-static"]
