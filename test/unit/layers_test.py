#!/usr/bin/env python3
"""scripts/layers: what points up is found, in includes and in calls; and nothing in this tree does (run in the build directory)."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from script_module import script_module  # noqa: E402

layers = script_module(os.path.join(TOP, "scripts", "layers"))
TWO_FOLDERS = "layer low\nlayer high\n"


class Tree(unittest.TestCase):
    def setUp(self):
        self.here = tempfile.TemporaryDirectory()
        self.addCleanup(self.here.cleanup)
        self.src, self.build = os.path.join(self.here.name, "src"), os.path.join(self.here.name, "build")

    def put(self, path, text):
        path = os.path.join(self.src, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def rules(self, text=TWO_FOLDERS):
        self.put("LAYERS", text)
        return layers.Rules(os.path.join(self.src, "LAYERS"))

    def include_errors(self, rules=TWO_FOLDERS):
        return layers.check_includes(self.src, self.rules(rules))

    def call_errors(self, rules=TWO_FOLDERS):
        for path in layers.sources(self.src):
            if path.endswith(".cpp"):
                made = os.path.join(self.build, "src", path[:-4] + ".o")
                os.makedirs(os.path.dirname(made), exist_ok=True)
                compiler = os.environ.get("CXX", "g++").split()
                subprocess.run([*compiler, "-O0", "-I", self.src, "-c", os.path.join(self.src, path), "-o", made], check=True)
        return layers.check_calls(self.src, self.build, self.rules(rules))

    def assert_one(self, errors, *parts):
        self.assertEqual(len(errors), 1, errors)
        for part in parts:
            self.assertIn(part, errors[0])


class Includes(Tree):
    def test_an_include_that_points_down_is_right(self):
        self.put("low/a.h", "")
        self.put("high/b.cpp", '#include "low/a.h"\n#include <vector>\n#include "elsewhere.h"\n')
        self.assertEqual(self.include_errors(), [])

    def test_an_include_that_points_up_is_found(self):
        self.put("low/a.cpp", '  #  include "high/b.h"\n')
        self.put("high/b.h", "")
        self.assert_one(self.include_errors(), "src/low/a.cpp", "high/b.h", "further up")

    def test_an_include_by_a_relative_path_is_found_too(self):
        self.put("low/a.cpp", '#include "../high/b.h"\n')
        self.put("high/b.h", "")
        self.assert_one(self.include_errors(), "high/b.h", "further up")

    def test_a_file_in_no_folder_of_the_list_is_found(self):
        self.put("other/a.h", "")
        self.assert_one(self.include_errors(), "src/other/a.h", "no folder")

    def test_a_file_may_stand_at_a_place_of_its_own(self):
        self.put("high/public.h", "")
        self.put("low/a.cpp", '#include "high/public.h"\n')
        self.assertEqual(self.include_errors("layer high/public.h\nlayer low\nlayer high\n"), [])

    def test_a_circle_of_files_is_found(self):
        self.put("low/a.h", '#include "low/b.h"\n')
        self.put("low/b.h", "")
        self.put("low/b.cpp", '#include "low/b.h"\n#include "low/c.h"\n')
        self.put("low/c.h", '#include "low/a.h"\n')
        self.assert_one(self.include_errors(), "circle", "low/a, low/b, low/c")

    def test_what_a_folder_may_not_know_is_found(self):
        rules = "layer a\nlayer b\nlayer c\nonly c -> b\n"
        self.put("a/a.h", "")
        self.put("b/b.h", "")
        self.put("c/c.cpp", '#include "b/b.h"\n#include "a/a.h"\n')
        self.assert_one(self.include_errors(rules), "src/c/c.cpp", "a/a.h", "only b")
        self.assertEqual(self.include_errors(rules.replace("-> b", "-> b a/a.h")), [])


@unittest.skipUnless(shutil.which("nm") and shutil.which("c++filt"), "no binutils")
class Calls(Tree):
    def test_a_call_that_points_down_is_right(self):
        self.put("low/a.cpp", "int low() { return 1; }\n")
        self.put("high/b.cpp", "int low();\nint high() { return low(); }\n")
        self.assertEqual(self.call_errors(), [])

    def test_a_call_that_points_up_is_found_though_nothing_is_included(self):
        self.put("low/a.cpp", "int high();\nint low() { return high(); }\n")
        self.put("high/b.cpp", "int high() { return 1; }\n")
        self.assert_one(self.call_errors(), "src/low/a.cpp uses high() of src/high/b.cpp")

    def test_what_is_defined_further_down_as_well_is_no_error(self):
        self.put("low/a.h", "template <typename T> [[gnu::noinline]] T twice(T x) { return x + x; }\nextern template int twice<int>(int);\n")
        self.put("low/a.cpp", '#include "low/a.h"\nint low() { return twice(1); }\n')
        self.put("low/c.cpp", '#include "low/a.h"\ntemplate int twice<int>(int);\n')
        self.put("high/b.cpp", '#include "low/a.h"\ntemplate int twice<int>(int);\n')
        self.assertEqual(self.call_errors(), [])

    def test_an_excuse_holds_as_long_as_it_is_needed(self):
        excuse = TWO_FOLDERS + "calls low -> high  because\n"
        self.put("low/a.cpp", "int high();\nint low() { return high(); }\n")
        self.put("high/b.cpp", "int high() { return 1; }\n")
        self.assertEqual(self.call_errors(excuse), [])
        self.put("low/a.cpp", "int low() { return 1; }\n")
        self.assert_one(self.call_errors(excuse), "take the line out")

    def test_a_source_without_an_object_is_an_error(self):
        self.put("low/a.cpp", "")
        self.assert_one(layers.check_calls(self.src, self.build, self.rules()), "no object")


class Figures(Tree):
    CODE = """
// int comment() {
namespace n {
enum class Kind { kOne, kTwo };
class Box : public Base {
 public:
  explicit Box(int a) : a_(a), b_{1} { fill(); }
  int get() const { return a_; }  // one
  void set(int value);
  static constexpr int kMost = 1'000;
  enum class State { kIdle };
  struct Part {
    int x = 0, y = 0;
    void (*call)(int) = nullptr;
  };

 private:
  void hidden();
  int a_, b_;
  std::map<int, int> c_;
  Part d_ = {};
};
int Box::long_one(int n) {
%s  if (n) { return 1; }
  return 2;
}
}
"""

    def test_functions_and_classes_are_measured(self):
        shapes = layers.Shapes.of(self.CODE % ("  f();\n" * 60))
        self.assertEqual([f for f in shapes.functions if f[1] > 1], [("Box::long_one", 64)])
        self.assertEqual(sorted(shapes.classes), [("Box", 3, 4), ("Part", 0, 3)])

    def test_what_is_over_the_aim_is_counted(self):
        self.put("low/a.cpp", "\n" * 451 + "//" + "x" * 99 + "\n" + self.CODE % ("  f();\n" * 60))
        found = layers.too_large(self.src)
        self.assertEqual([len(found[title]) for title in (layers.FILES, layers.CLASSES, layers.FUNCTIONS, layers.COLUMNS)], [1, 0, 1, 1])

    def test_what_is_over_the_aim_needs_a_reason(self):
        self.put("low/a.cpp", "\n" * 451)
        self.assert_one(layers.check_sizes(self.src, self.rules()), "src/low/a.cpp: 451", "size src/low/a.cpp  REASON")
        self.assertEqual(layers.check_sizes(self.src, self.rules(TWO_FOLDERS + "size src/low/a.cpp  one table\n")), [])

    def test_reason_that_is_not_needed_goes(self):
        self.put("low/a.cpp", "\n" * 450)
        self.assert_one(layers.check_sizes(self.src, self.rules(TWO_FOLDERS + "size src/low/a.cpp  one table\n")), "src/low/a.cpp", "take the line out")


class This(unittest.TestCase):
    def test_nothing_points_up(self):
        src = os.path.join(TOP, "src")
        rules = layers.Rules(os.path.join(src, "LAYERS"))
        errors = layers.check_includes(src, rules) + layers.check_sizes(src, rules)
        if os.path.exists("config.status"):
            errors += layers.check_calls(src, ".", rules)
        else:
            print("not in a build directory: the calls are not checked")
        self.assertEqual(errors, [], "\n" + "\n".join(errors))

    def test_the_plan_tells_of_every_folder_in_order(self):
        src = os.path.join(TOP, "src")
        with open(os.path.join(TOP, "docs", "STRUCTURE.md"), encoding="utf-8") as text:
            told = [line.split("`")[1] for line in text if line.startswith("| `src/")]
        self.assertEqual(told, [f"src/{entry}" for entry in layers.Rules(os.path.join(src, "LAYERS")).layers])


if __name__ == "__main__":
    unittest.main()
