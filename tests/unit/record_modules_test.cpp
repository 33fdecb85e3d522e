// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Modules and generations: one address, different code.
#include <dlfcn.h>

#include "record_resolve_double.hpp"
#include "record_support.hpp"

using namespace hostwait;
using namespace hostwait::test;

namespace {

struct library {
  explicit library(const char* name) {
    std::string path = std::string(HOSTWAIT_TEST_LIBRARIES) + "/" + name;
    handle = dlopen(path.c_str(), RTLD_NOW);
    if (handle != nullptr)
      inside = reinterpret_cast<std::uintptr_t>(dlsym(handle, "call_back")) + 8;
    next_loader_generation();
  }
  ~library() {
    if (handle != nullptr) dlclose(handle);
    next_loader_generation();
  }
  void* handle;
  std::uintptr_t inside = 0;
};

}  // namespace

TEST_CASE("the same address in another library is another site", "[record]") {
  folder out;
  pid_t pid = 0;
  int status = in_child(
      [&] {
        if (!open_in(out.path)) return 1;
        std::uintptr_t outside = reinterpret_cast<std::uintptr_t>(&one_call) + 8, first = 0;
        bool same_place = true;
        for (const char* name : {"libunwind_test_a.so", "libunwind_test_b.so",
                                 "libunwind_test_a.so", "libunwind_test_driver.so"}) {
          library loaded(name);
          if (loaded.handle == nullptr) return 2;
          if (first == 0) first = loaded.inside;
          same_place &= first == loaded.inside;
          std::uintptr_t stack[] = {loaded.inside, outside};
          for (int i = 0; i < 10; ++i) one_call(key_of(stack, 2));
        }
        return same_place ? 0 : 3;
      },
      &pid);
  REQUIRE((WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3));
  if (WEXITSTATUS(status) == 3) WARN("the libraries lay at different places");
  record_reader record(record_of(out.path, pid));
  CHECK(record.calls() == 40);
  std::vector<hostwait_record_module> modules = record.modules();
  auto frames = record.frames();
  std::map<std::string, std::uint64_t> calls;
  for (auto [site, count] : record.calls_by_site()) {
    if (site == 0) continue;
    std::uint32_t module = frames.at(record.sites()[site].native).module;
    std::string path = record.text(modules.at(module).path);
    calls[path.substr(path.rfind('/') + 1)] += count;
    const hostwait_record_module& m = modules[module];
    CHECK(m.start < m.end);
    CHECK(m.build_id_bytes == 20);
    bool driver = path.find("_driver") != std::string::npos;
    CHECK(m.flags == (driver ? std::uint32_t{HOSTWAIT_MODULE_DRIVER} : 0u));
  }
  // Where the first library came back to its place, it is one module and one site again.
  CHECK(calls["libunwind_test_a.so"] == 20);
  CHECK(calls["libunwind_test_b.so"] == 10);
  CHECK(calls["libunwind_test_driver.so"] == 10);
  if (WEXITSTATUS(status) == 0) CHECK(record.sites().size() == 4);

  // This test has the writer in it.
  std::uint32_t outer = frames.at(frames.at(record.sites()[1].native).parent).module;
  CHECK(modules.at(outer).flags == HOSTWAIT_MODULE_OWN);
  CHECK(record.text(modules.at(outer).path) ==
        std::filesystem::read_symlink("/proc/self/exe").string());
}

TEST_CASE("generated code has no module", "[record]") {
  folder out;
  pid_t pid = 0;
  int status = in_child(
      [&] {
        std::uintptr_t stack[] = {0x10};
        if (!open_in(out.path)) return 1;
        one_call(key_of(stack, 1));
        return 0;
      },
      &pid);
  REQUIRE(status == 0);
  record_reader record(record_of(out.path, pid));
  REQUIRE(record.sites().size() == 2);
  CHECK(record.frames().at(record.sites()[1].native).module == HOSTWAIT_FRAME_NO_MODULE);
}
