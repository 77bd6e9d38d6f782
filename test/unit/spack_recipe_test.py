#!/usr/bin/env python3
"""packaging/spack: the recipe, loaded beside stand-ins for Spack and for its recipe of MPICH."""
import os
import subprocess
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
RECIPE = os.path.join(TOP, "packaging", "spack", "packages", "mpich-ch-lite", "package.py")


class InstallError(Exception):
    pass


class Mpich:
    def __init__(self, version):
        self.spec = types.SimpleNamespace(version=version)
        self.stage = types.SimpleNamespace(source_path="the/source")

    def configure_args(self):
        return ["--enable-shared", "--with-device=ch4:", "--with-pmi=simple", "--with-slurm=no"]


def modules(asked):
    """Modules by name. What the recipe asks of Spack is noted in `asked`."""

    def note(word):
        return lambda *args, **named: asked.append((word, args, named))

    package = types.ModuleType("spack.package")
    package.variant, package.version = note("variant"), note("version")
    package.depends_on, package.run_before = note("depends_on"), lambda step: lambda method: method
    package.InstallError = InstallError
    package.Executable = lambda path: lambda *args: asked.append(("run", path, args))
    mpich = types.ModuleType("spack.pkg.builtin.mpich")
    mpich.Mpich = Mpich
    found = {name: types.ModuleType(name) for name in ("spack", "spack.pkg", "spack.pkg.builtin")}
    return found | {"spack.package": package, "spack.pkg.builtin.mpich": mpich}


def load(path=RECIPE):
    asked = []
    sys.modules.update(modules(asked))
    recipe = types.ModuleType("recipe")
    recipe.__file__ = path
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec"), recipe.__dict__)
    return recipe, asked


class Recipe(unittest.TestCase):
    def setUp(self):
        self.recipe, self.asked = load()
        device = os.path.join(TOP, "scripts", "install-device")
        says = subprocess.run([device, "--versions"], check=True, capture_output=True, text=True)
        self.known = says.stdout.split()

    def test_knows_what_install_device_knows(self):
        self.assertEqual(self.recipe.KNOWN, self.known)

    def test_versions_of_its_own_are_known(self):
        versions = [args[0] for word, args, _ in self.asked if word == "version"]
        self.assertTrue(versions)
        self.assertEqual([v for v in versions if v not in self.known], [])

    def test_device_has_the_version_of_configure(self):
        with open(os.path.join(TOP, "configure.ac"), encoding="utf-8") as file:
            self.assertIn(f"AC_INIT([ch_lite], [{self.recipe.DEVICE}])", file.read())

    def test_device_goes_into_the_source(self):
        self.recipe.MpichChLite("4.3.2").put_the_device_in()
        device = os.path.join(TOP, "scripts", "install-device")
        self.assertIn(("run", device, ("the/source",)), self.asked)

    def test_another_version_is_refused_by_name(self):
        with self.assertRaisesRegex(InstallError, r"MPICH 3\.4\.3: use one of .*\b4\.3\.2\b"):
            self.recipe.MpichChLite("3.4.3").put_the_device_in()
        self.assertFalse([a for a in self.asked if a[0] == "run"])

    def test_device_is_the_only_one(self):
        args = self.recipe.MpichChLite("4.3.2").configure_args()
        devices = [a for a in args if a.startswith("--with-device")]
        self.assertEqual(devices, ["--with-device=ch4:lite"])
        self.assertEqual([a for a in args if a.startswith("--with-pmi")], [])
        self.assertIn("--with-slurm=no", args)

    def test_outside_a_source_tree_it_says_so(self):
        with tempfile.TemporaryDirectory() as elsewhere:
            copy = os.path.join(elsewhere, "package.py")
            with open(RECIPE, encoding="utf-8") as recipe, open(copy, "w", encoding="utf-8") as file:
                file.write(recipe.read())
            with self.assertRaisesRegex(RuntimeError, "not in a source tree of ch_lite"):
                load(copy)


if __name__ == "__main__":
    unittest.main()
