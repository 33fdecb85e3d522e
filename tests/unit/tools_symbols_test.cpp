// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Names, lines and inlined frames of this very program, by libdw.
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "support/catch.hpp"
#include "symbols/symbolizer.hpp"
#include "tools_marked.hpp"

using namespace hostwait;

namespace {

std::string own_path() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  REQUIRE(length > 0);
  return std::string(path, static_cast<std::size_t>(length));
}

hostwait_record_module own_module() {
  hostwait_record_module module{};
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {  // the program comes first
        static_cast<hostwait_record_module*>(to)->bias = info->dlpi_addr;
        return 1;
      },
      &module);
  return module;
}

}  // namespace

TEST_CASE("a return address names the call before it") {
  const auto symbols = make_dwarf_symbolizer();
  const auto frames = symbols->resolve(own_path(), own_module(), marked::plain());
  REQUIRE(frames.size() == 1);
  CHECK(frames[0].function == "marked::plain");
  CHECK(base_name(frames[0].file) == "tools_marked.cpp");
  CHECK(frames[0].line == 23);
  CHECK(frames[0].owner == frame_owner::user);
  CHECK(symbols->notes().empty());
}

TEST_CASE("inlined functions are frames of their own, innermost first") {
  const auto symbols = make_dwarf_symbolizer();
  const auto frames = symbols->resolve(own_path(), own_module(), marked::outer());
  REQUIRE(frames.size() == 2);
  CHECK(frames[0].function == "marked::(anonymous namespace)::inlined");
  CHECK(frames[0].inlined);
  CHECK(frames[0].line == 16);
  CHECK(frames[1].function == "marked::outer");
  CHECK_FALSE(frames[1].inlined);
  CHECK(frames[1].line == 29);
}

TEST_CASE("a lambda names the function that it stands in") {
  const auto symbols = make_dwarf_symbolizer();
  const auto frames = symbols->resolve(own_path(), own_module(), marked::in_lambda());
  REQUIRE_FALSE(frames.empty());
  CHECK(frames[0].function == "marked::in_lambda::{lambda}::operator()");
}

TEST_CASE("an address without a symbol is module and offset") {
  const auto symbols = make_dwarf_symbolizer();
  const hostwait_record_module module = own_module();
  const auto frames = symbols->resolve(own_path(), module, module.bias + 0x7fffffff);
  REQUIRE(frames.size() == 1);
  CHECK(frames[0].function.empty());
  CHECK(frames[0].name() == base_name(own_path()) + "+0x7fffffff");
}

TEST_CASE("a module that changed since gives no names, and a note") {
  const auto symbols = make_dwarf_symbolizer();
  hostwait_record_module module = own_module();
  module.build_id_bytes = 20;
  std::memset(module.build_id, 0x5a, sizeof module.build_id);
  const auto frames = symbols->resolve(own_path(), module, marked::plain());
  REQUIRE(frames.size() == 1);
  CHECK(frames[0].function.empty());
  REQUIRE(symbols->notes().size() == 1);
  CHECK_THAT(*symbols->notes().begin(), ContainsSubstring("other build id"));
}

TEST_CASE("missing, relative and nonsense modules are no accident") {
  const auto symbols = make_dwarf_symbolizer();
  const hostwait_record_module module{};
  CHECK(symbols->resolve("/no/such/module.so", module, 0x10).size() == 1);
  CHECK(symbols->notes().size() == 1);
  CHECK(symbols->resolve("[vdso]", module, 0x10)[0].name() == "[vdso]+0x10");
  CHECK(symbols->resolve("", module, 0x10)[0].name() == "0x10");
  CHECK(symbols->resolve("/etc/passwd", module, 0).size() == 1);
  CHECK(symbols->resolve("/dev/null", module, 0).size() == 1);
}

TEST_CASE("Python files of the standard library, of packages and of generators are a library's") {
  for (const char* file :
       {"/usr/lib/python3.12/contextlib.py",
        "/home/me/.pyenv/versions/3.11.7/lib/python3.11/ast.py",
        "/opt/venv/lib/python3.12/site-packages/torch/_tensor.py",
        "/usr/lib/python3/dist-packages/numpy/core.py", "/usr/lib64/python3.11/json/encoder.py",
        "<frozen importlib._bootstrap>", "/tmp/torchinductor_me/ab/cab.py", "<eval_with_key>.7"})
    CHECK(is_python_library(file));
  for (const char* file : {"/usr/src/app/train.py", "/opt/project/train.py", "train.py", "<stdin>",
                           "<string>", "/srv/lib/pythonic/model.py", "/tmp/ipykernel_7/1.py"})
    CHECK_FALSE(is_python_library(file));
}

TEST_CASE("no server is asked for debug information") {
  ::setenv("DEBUGINFOD_URLS", "http://192.0.2.1/", 1);
  const auto symbols = make_dwarf_symbolizer();
  CHECK(std::getenv("DEBUGINFOD_URLS") == nullptr);
}
