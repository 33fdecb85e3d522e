// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// One cause, one finding: a copy and the stream wait that follows from the same stack are one row
// with two calls, in the shapes that C++ programs, PyTorch's .item() and CuPy's .get() have.
#include "findings/finding.hpp"
#include "support/catch.hpp"
#include "support/record_builder.hpp"
#include "support/report_of.hpp"

using namespace hostwait;
using hostwait::test::record_builder;

namespace {

constexpr std::uint64_t app = 0x10000, runtime = 0x7e0000000000, library = 0x7f0000000000,
                        package = 0x7d0000000000, python = 0x400000;

struct shapes {
  record_builder record;
  std::uint32_t app_module, runtime_module, torch_module, cupy_module, python_module, thread;

  shapes()
      : app_module(record.module("/home/me/app", app, app + 0x9000, app)),
        runtime_module(record.module("/usr/local/cuda/lib64/libcudart.so.13", runtime,
                                     runtime + 0x9000, runtime)),
        torch_module(record.module("/v/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so",
                                   library, library + 0x9000, library)),
        cupy_module(record.module("/v/lib/python3.12/site-packages/cupy_backends/cuda/api/"
                                  "runtime.cpython-312-x86_64-linux-gnu.so",
                                  package, package + 0x9000, package)),
        python_module(record.module("/usr/bin/python3.12", python, python + 0x9000, 0)),
        thread(record.thread(7, "main")) {}

  void add(const char* symbol, hostwait_kind_number kind, std::uint32_t native,
           std::uint32_t python_stack, const hostwait::test::counts& what) {
    hostwait_record_site site{};
    site.call = record.call(symbol, kind);
    site.verdict = HOSTWAIT_VERDICT_STREAM;
    site.native = native;
    site.python = python_stack;
    record.count(thread, record.site(site), what);
  }
  void copy(std::uint32_t native, std::uint32_t python_stack) {
    add("cuMemcpyDtoHAsync_v2", HOSTWAIT_KIND_ASYNC_COPY, native, python_stack,
        {.calls = 5, .waited = 5, .total_ns = 500, .max_ns = 100, .waited_ns = 500});
  }
  void wait(std::uint32_t native, std::uint32_t python_stack) {
    add("cuStreamSynchronize", HOSTWAIT_KIND_STREAM_SYNC, native, python_stack,
        {.calls = 5, .latent = 5, .total_ns = 10, .max_ns = 2});
  }
  std::uint32_t frame(std::uint32_t parent, std::uint64_t base, std::uint64_t offset,
                      std::uint32_t module) {
    return record.frame(parent, base + offset, module);
  }
};

// By module and offset; the names that matter for who a frame belongs to.
class named final : public symbolizer {
 public:
  std::map<std::uint64_t, std::string> names;  // by offset
  std::vector<native_frame> resolve(const std::string& path, const hostwait_record_module& module,
                                    std::uint64_t address) override {
    native_frame made;
    made.module = path;
    made.offset = address - module.bias;
    if (const auto known = names.find(made.offset); known != names.end())
      made.function = known->second;
    made.owner = owner_of(path, made.function, module.flags);
    return {made};
  }
};

run_report report_of(const record_builder& builder,
                     std::map<std::uint64_t, std::string> names = {}) {
  named symbols;
  symbols.names = std::move(names);
  return make_report({hostwait::test::parsed(builder)}, symbols);
}

void is_one_row(const run_report& report, const char* calls) {
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].runtime_call == calls);
  CHECK(report.findings[0].sum.calls == 5);
  CHECK(report.findings[0].sum.waited == 5);
  CHECK(report.findings[0].sum.latent == 0);
  CHECK(report.findings[0].sum.total_ns == 510);
  CHECK(report.findings[0].shares.size() == 1);
  CHECK(report.findings[0].shares[0].sum.calls == 5);
}

}  // namespace

TEST_CASE("C++: one runtime call that copies and waits") {
  shapes of;
  const std::uint32_t user = of.frame(0, app, 0x100, of.app_module);
  of.copy(of.frame(user, runtime, 0x40, of.runtime_module), 0);
  of.wait(of.frame(user, runtime, 0x80, of.runtime_module), 0);
  is_one_row(report_of(of.record, {{0x40, "cudaMemcpy"}, {0x80, "cudaMemcpy"}}),
             "cudaMemcpy + Memcpy");
}

TEST_CASE("C++: a library function that copies, then waits") {
  shapes of;
  const std::uint32_t user = of.frame(0, app, 0x100, of.app_module);
  // Two return addresses in thrust::reduce, one call of it.
  of.copy(of.frame(user, app, 0x210, of.app_module), 0);
  of.wait(of.frame(user, app, 0x250, of.app_module), 0);
  const std::map<std::uint64_t, std::string> names = {
      {0x100, "main"}, {0x210, "thrust::reduce"}, {0x250, "thrust::reduce"}};
  is_one_row(report_of(of.record, names), "cuMemcpyDtoHAsync + StreamSynchronize");
}

TEST_CASE("C++: two lines of the user's own function are two causes") {
  shapes of;
  of.copy(of.frame(0, app, 0x210, of.app_module), 0);
  of.wait(of.frame(0, app, 0x250, of.app_module), 0);
  const run_report report = report_of(of.record, {{0x210, "read_loss"}, {0x250, "read_loss"}});
  CHECK(report.findings.size() == 2);
}

TEST_CASE(".item(): one function of libtorch makes both") {
  shapes of;
  const std::uint32_t interpreter = of.frame(0, python, 0x10, of.python_module);
  const std::uint32_t line = of.record.python(0, "/home/me/train.py", "step", 42);
  of.copy(of.frame(interpreter, library, 0x210, of.torch_module), line);
  of.wait(of.frame(interpreter, library, 0x250, of.torch_module), line);
  is_one_row(report_of(of.record, {{0x210, "at::native::_local_scalar_dense_cuda"},
                                   {0x250, "at::native::_local_scalar_dense_cuda"}}),
             "cuMemcpyDtoHAsync + StreamSynchronize");
}

TEST_CASE(".get(): two functions of CuPy below the one that the Python line called") {
  shapes of;
  const std::uint32_t interpreter = of.frame(0, python, 0x10, of.python_module);
  const std::uint32_t get = of.frame(interpreter, package, 0x900, of.cupy_module);
  const std::uint32_t line = of.record.python(0, "/home/me/train.py", "step", 42);
  of.copy(of.frame(get, package, 0x210, of.cupy_module), line);
  of.wait(of.frame(get, package, 0x250, of.cupy_module), line);
  const std::map<std::uint64_t, std::string> names = {
      {0x900, "__pyx_f_4cupy_5_core_4core_13_ndarray_base_get"},
      {0x210, "__pyx_f_13cupy_backends_4cuda_3api_7runtime_memcpyAsync"},
      {0x250, "__pyx_f_13cupy_backends_4cuda_3api_7runtime_streamSynchronize"}};
  is_one_row(report_of(of.record, names), "cuMemcpyDtoHAsync + StreamSynchronize");
}

TEST_CASE("two calls of a library on one Python line are two causes") {
  shapes of;
  const std::uint32_t interpreter = of.frame(0, python, 0x10, of.python_module);
  const std::uint32_t line = of.record.python(0, "/home/me/train.py", "step", 42);
  of.copy(of.frame(interpreter, package, 0x210, of.cupy_module), line);
  of.wait(of.frame(interpreter, package, 0x250, of.cupy_module), line);
  const run_report report =
      report_of(of.record, {{0x210, "memcpyAsync"}, {0x250, "streamSynchronize"}});
  CHECK(report.findings.size() == 2);
}

TEST_CASE("another Python line is another cause") {
  shapes of;
  const std::uint32_t interpreter = of.frame(0, python, 0x10, of.python_module);
  const std::uint32_t line = of.record.python(0, "/home/me/train.py", "step", 42);
  const std::uint32_t next = of.record.python(0, "/home/me/train.py", "step", 43);
  of.copy(of.frame(interpreter, package, 0x210, of.cupy_module), line);
  of.wait(of.frame(interpreter, package, 0x250, of.cupy_module), next);
  CHECK(report_of(of.record).findings.size() == 2);
}

TEST_CASE("without any stack nothing is joined") {
  shapes of;
  of.copy(0, 0);
  of.wait(0, 0);
  CHECK(report_of(of.record).findings.size() == 2);
}
