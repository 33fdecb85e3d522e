# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Fingerprint 1 stays the same over a rebuild, ASLR, inserted lines, another checkout path, another
prefix and another machine, and changes with what it names. Small programs on the simulated driver."""

import json
import os
import subprocess
import sys

import tool_support

COMPILER = os.environ["HOSTWAIT_CXX"]
SHIM = os.environ["HOSTWAIT_SHIM_DIR"]
SIM = os.environ["HOSTWAIT_SIM_DIR"]

DRIVER = """
#include <dlfcn.h>
#include <stdlib.h>
#define WAITS __attribute__((noinline))
inline void* at(const char* name) {
  static void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  return dlsym(driver, name);
}
inline void start() {
  void* context = nullptr;
  if (((int (*)(unsigned))at("cuInit"))(0) != 0 ||
      ((int (*)(void**, int))at("cuDevicePrimaryCtxRetain"))(&context, 0) != 0 ||
      ((int (*)(void*))at("cuCtxSetCurrent"))(context) != 0)
    abort();
}
"""
PROGRAM = """
#include "driver.hpp"
extern "C" int library_waits(int);
volatile int runs;
namespace app {
template <class T> WAITS int read_loss(T) { int r = ((int (*)())at("cuCtxSynchronize"))(); ++runs; return r; }
struct trainer { WAITS int step() { int r = read_loss(1); ++runs; return r; } };
}
int main() {
  start();
  int bad = app::trainer().step();
  return bad + library_waits(1);
}
"""
LIBRARY = """
#include "driver.hpp"
volatile int waits;
extern "C" WAITS int library_waits(int n) {
  int r = ((int (*)(void*))at("cuStreamSynchronize"))(nullptr);
  waits += n;
  return r;
}
"""
SCRIPT = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0

class Trainer:
    def step(self):
        return [cuda.cuCtxSynchronize() for _ in range(2)]

def main():
    Trainer().step()

main()
"""
INSERTED = "\n".join(["// a line more", "/* and", "   two */"] * 7) + "\n"


class Identity(tool_support.Case):
    def setUp(self):
        super().setUp()
        self.environment.update(HOSTWAIT_LIBDIR=SHIM, LD_LIBRARY_PATH=SIM)
        self.count = 0

    def fingerprints(self, words, change=None):
        """{where the finding is: its fingerprint} of one run; `change` edits the record first."""
        self.count += 1
        folder = self.path(f"records-{self.count}")
        os.mkdir(folder)
        ran = self.hostwait("run", "-q", "--output", folder, "--", *words)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        (name,) = self.records(folder)
        path = os.path.join(folder, name)
        if change:
            with open(path, "rb") as file:
                data = file.read()
            changed = change(data)
            self.assertEqual(len(changed), len(data))
            self.assertNotEqual(changed, data)
            with open(path, "wb") as file:
                file.write(changed)
        made = self.hostwait("report", "--format", "json", path)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.report = json.loads(made.stdout)
        return {finding["runtime_call"]: finding["fingerprint"] for finding in self.report["findings"]}

    def build(self, *parts, program=PROGRAM, flags=("-O1", "-g"), prefix=("prefix", "lib", "site-packages")):
        """The program, and a library that it links, below a folder of their own."""
        folder, libraries = self.path(*parts), self.path(*parts, *prefix)
        os.makedirs(libraries)
        for name, text in (("driver.hpp", DRIVER), ("app.cpp", program), ("waits.cpp", LIBRARY)):
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        common = [COMPILER, "-w", "-std=c++17", *flags]
        subprocess.run([*common, "-shared", "-fPIC", "waits.cpp", "-o", os.path.join(libraries, "libwaits.so"), "-ldl"], cwd=folder, check=True)
        subprocess.run([*common, "app.cpp", os.path.join(libraries, "libwaits.so"), "-o", "app", f"-Wl,-rpath,{libraries}", "-ldl"], cwd=folder, check=True)
        return [os.path.join(folder, "app")]

    def test_cpp(self):
        first = self.fingerprints(self.build("one"))
        self.assertEqual(set(first), {"cuCtxSynchronize", "cuStreamSynchronize"})
        wheres = {finding["runtime_call"]: finding["where"] for finding in self.report["findings"]}
        self.assertRegex(wheres["cuCtxSynchronize"], r"app.cpp:\d+ app::read_loss")
        self.assertRegex(wheres["cuStreamSynchronize"], r"app.cpp:\d+ main < library_waits")
        lines = {tuple(finding["lines"]) for finding in self.report["findings"]}
        cases = {
            "again, at other addresses": self.fingerprints([self.path("one", "app")]),
            "other flags": self.fingerprints(self.build("two", flags=("-O2", "-g", "-fPIE", "-pie"))),
            "another checkout": self.fingerprints(self.build("far", "away", "checkout")),
            "another prefix": self.fingerprints(self.build("three", prefix=("opt", "x", "dist-packages"))),
            "inserted lines": self.fingerprints(self.build("four", program=INSERTED + PROGRAM.replace("namespace app", INSERTED + "namespace app"))),
        }
        moved = {tuple(finding["lines"]) for finding in self.report["findings"]}
        self.assertFalse(lines & moved, "the lines must have moved, or nothing was tested")
        for name, seen in cases.items():
            self.assertEqual(seen, first, name)

    def test_another_machine(self):
        words = self.build("one")
        first = self.fingerprints(words)
        host = self.report["processes"][0]["host"].encode()
        elsewhere = b"elsewhere-elsewhere-elsewhere"[: len(host)].ljust(len(host), b"z")
        self.assertEqual(self.fingerprints(words, lambda data: data.replace(b"\0" + host + b"\0", b"\0" + elsewhere + b"\0")), first)
        self.assertEqual(self.report["processes"][0]["host"], elsewhere.decode())

    def test_what_it_names_changes_it(self):
        first = self.fingerprints(self.build("one"))
        renamed = self.fingerprints(self.build("two", program=PROGRAM.replace("read_loss", "write_loss")))
        self.assertNotEqual(renamed["cuCtxSynchronize"], first["cuCtxSynchronize"])
        self.assertEqual(renamed["cuStreamSynchronize"], first["cuStreamSynchronize"])

    def script(self, *parts, text=SCRIPT):
        os.makedirs(os.path.dirname(self.path(*parts)), exist_ok=True)
        with open(self.path(*parts), "w") as file:
            file.write(text)
        return [sys.executable, self.path(*parts)]

    def test_python(self):
        first = self.fingerprints(self.script("train.py"))
        self.assertEqual(set(first), {"cuCtxSynchronize"})
        if not self.report["findings"][0]["python"]:
            self.skipTest("no Python stacks with this interpreter: " + sys.version)
        self.assertIn("train.py", self.report["findings"][0]["where"])
        line = self.report["findings"][0]["lines"]
        inserted = SCRIPT.replace("class", "# one\n# more\n\nunused = 1\n\nclass")
        self.assertEqual(self.fingerprints(self.script("other", "checkout", "train.py", text=inserted)), first)
        self.assertNotEqual(self.report["findings"][0]["lines"], line)
        renamed = self.fingerprints(self.script("renamed", "train.py", text=SCRIPT.replace("main", "run")))
        self.assertNotEqual(renamed, first)
        self.assertNotEqual(self.fingerprints(self.script("evaluate.py")), first)


if __name__ == "__main__":
    tool_support.main()
