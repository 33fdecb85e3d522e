// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Merging, cutting and naming of findings; SHA-256 and fingerprint 1.
#include "findings/finding.hpp"
#include "findings/sha256.hpp"
#include "support/catch.hpp"
#include "support/record_builder.hpp"
#include "support/report_of.hpp"
#include "symbols/demangle.hpp"
#include "verdict.hpp"

using namespace hostwait;
using hostwait::test::counts;
using hostwait::test::parsed;
using hostwait::test::record_builder;
using hostwait::test::report_of;

namespace {

// One site with one frame in one module, counted once.
record_builder one_site(hostwait_kind_number kind, const char* symbol, const char* module,
                        std::uint64_t bias, const counts& what) {
  record_builder builder;
  hostwait_record_site site{};
  site.call = builder.call(symbol, kind);
  site.verdict = HOSTWAIT_VERDICT_STREAM;
  site.native = builder.frame(0, bias + 0x1000, builder.module(module, bias, bias + 0x9000, bias));
  builder.count(builder.thread(7, "main"), builder.site(site), what);
  return builder;
}

// Names by module and offset, as a symbol table would give them.
class table_symbolizer final : public symbolizer {
 public:
  std::map<std::pair<std::string, std::uint64_t>, std::string> names;
  std::vector<native_frame> resolve(const std::string& path, const hostwait_record_module& module,
                                    std::uint64_t address) override {
    native_frame frame;
    frame.module = path;
    frame.offset = address - module.bias;
    if (const auto known = names.find({path, frame.offset}); known != names.end())
      frame.function = known->second;
    frame.owner = owner_of(path, frame.function, module.flags);
    return {frame};
  }
};

native_frame frame(const std::string& module, const std::string& function) {
  native_frame made;
  made.module = module;
  made.function = function;
  made.offset = 0x10;
  made.owner = owner_of(module, function, 0);
  return made;
}

}  // namespace

TEST_CASE("SHA-256 of the standard's examples") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256_hex(std::string(1000000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("an order that was opted out of is a finding without a wait") {
  tally audit;
  audit.calls = 1;
  CHECK_FALSE(audit.is_finding());
  audit.audited = 1;
  CHECK(audit.is_finding());
}

TEST_CASE("a copy and the stream wait behind it are one finding") {
  const run_report report = report_of({hostwait::test::training_run("r", 4711)});
  REQUIRE(report.findings.size() == 2);
  const finding& copy = report.findings[0];
  CHECK(copy.call == "cuMemcpyDtoHAsync_v2 + cuStreamSynchronize");
  CHECK(copy.runtime_call == "cudaMemcpyAsync + StreamSynchronize");
  CHECK(copy.kind == HOSTWAIT_KIND_ASYNC_COPY);
  CHECK(copy.sum.calls == 100);
  CHECK(copy.sum.waited == 100);
  CHECK(copy.sum.latent == 0);
  CHECK(copy.sum.total_ns == 398000000);
  CHECK(copy.sum.max_ns == 4100000);
  CHECK(copy.thread_names == std::set<std::string>{"pt_autograd_0", "python3"});
  CHECK(copy.lines == std::set<std::uint32_t>{42});
  REQUIRE(copy.native.size() == 2);  // the runtime's frames are cut
  CHECK(copy.native[0].owner == frame_owner::library);
  CHECK(copy.native[1].owner == frame_owner::interpreter);
  const finding& freed = report.findings[1];
  CHECK(freed.runtime_call == "cudaFree");
  CHECK(freed.sum.waited == 1);
  CHECK(report.driver == "580.159");
  CHECK(report.routes == std::vector<std::string>{"dlsym", "cuGetProcAddress"});
}

TEST_CASE("a stream wait from another Python line stays its own finding") {
  record_builder builder = hostwait::test::training_run("r", 1);
  hostwait_record_site& wait = builder.at<hostwait_record_site>(HOSTWAIT_SECTION_SITES, 1);
  wait.python = builder.python(0, "/home/me/train.py", "step", 43);
  CHECK(report_of({builder}).findings.size() == 3);
}

TEST_CASE("processes at other addresses add up; other verdicts, labels, ranges do not") {
  const counts once{.calls = 2, .waited = 1, .total_ns = 500, .max_ns = 400};
  const auto copy = [&](std::uint64_t bias) {
    return one_site(HOSTWAIT_KIND_COPY, "cuMemcpyDtoH_v2", "/home/me/app", bias, once);
  };
  const record_builder first = copy(0x10000), second = copy(0x777000);
  run_report both = report_of({first, second});
  REQUIRE(both.findings.size() == 1);
  CHECK(both.findings[0].sum.calls == 4);
  CHECK(both.findings[0].sum.total_ns == 1000);
  CHECK(both.findings[0].sum.max_ns == 400);
  CHECK(both.findings[0].sum.histogram[8] == 4);
  CHECK(both.processes.size() == 2);

  record_builder other = second;
  auto& site = other.at<hostwait_record_site>(HOSTWAIT_SECTION_SITES, 0);
  SECTION("verdict") {
    site.verdict = HOSTWAIT_VERDICT_CONTEXT;
  }
  SECTION("label") {
    site.label = other.string("loss");
  }
  SECTION("range") {
    site.range = other.range("train_step");
  }
  CHECK(report_of({first, other}).findings.size() == 2);
}

TEST_CASE("sites that never waited are counted, not listed") {
  const run_report report = report_of(
      {one_site(HOSTWAIT_KIND_COPY, "cuMemcpyDtoH_v2", "/home/me/app", 0x1000, {.calls = 9})});
  CHECK(report.findings.empty());
  CHECK(report.counted_only == 1);
  CHECK(report.calls() == 9);
}

TEST_CASE("damaged references cost their finding, not the report") {
  record_builder builder = hostwait::test::training_run("r", 1);
  builder.at<hostwait_record_counters>(HOSTWAIT_SECTION_COUNTERS, 0).site = 4000000000u;
  builder.at<hostwait_record_counters>(HOSTWAIT_SECTION_COUNTERS, 3).thread = 4000000000u;
  builder.at<hostwait_record_site>(HOSTWAIT_SECTION_SITES, 2).call = 4000000000u;
  const run_report report = report_of({builder});
  CHECK(report.findings.size() == 2);
  CHECK(report.findings[0].sum.calls == 100);  // 40 of the copy, 100 of the wait
}

TEST_CASE("the runtime call is the runtime's outermost frame") {
  const auto cut =
      cut_top({frame("/d/libhostwait.so", "wrap"), frame("/d/libcuda.so.1", "x"),
               frame("/d/libcudart.so.13", "helper"), frame("/d/libcudart.so.13", "cudaMemcpy"),
               frame("/home/me/app", "work"), frame("/d/libcudart.so.13", "cudaFree")});
  CHECK(cut.runtime_call == "cudaMemcpy");
  CHECK(cut.through_runtime);
  REQUIRE(cut.frames.size() == 2);
  CHECK(cut.frames[0].function == "work");

  SECTION("static runtime: in the program, with helpers whose names are gone") {
    const auto inside =
        cut_top({frame("/home/me/app", "__cudart217"), frame("/home/me/app", ""),
                 frame("/home/me/app", "cudaStreamSynchronize"), frame("/home/me/app", "main")});
    CHECK(inside.runtime_call == "cudaStreamSynchronize");
    REQUIRE(inside.frames.size() == 1);
    CHECK(inside.frames[0].function == "main");
  }
  SECTION("static runtime of CUDA 13: helpers named by a hash") {
    const auto inside =
        cut_top({frame("/home/me/app", "libcudart_static_daedcea17177362c"),
                 frame("/home/me/app", "libcudart_static_0123456789abcdef"),
                 frame("/home/me/app", "cudaEventSynchronize"), frame("/home/me/app", "main")});
    CHECK(inside.runtime_call == "cudaEventSynchronize");
    REQUIRE(inside.frames.size() == 1);
    CHECK(inside.frames[0].function == "main");
  }
  SECTION("a program without names keeps its frames") {
    const auto nothing = cut_top({frame("/home/me/app", ""), frame("/home/me/app", "")});
    CHECK(nothing.runtime_call.empty());
    CHECK(nothing.frames.size() == 2);
  }
  SECTION("a user's function that merely begins with cuda is the user's") {
    CHECK_FALSE(is_runtime_function("cudaless"));
    CHECK_FALSE(is_runtime_function("cuda_wait"));
    CHECK_FALSE(is_runtime_function("mine::cudaThing"));
    CHECK(is_runtime_function("cudaMemcpyAsync_ptsz"));
  }
}

TEST_CASE("where names were stripped the measured map stands in; a driver call keeps its name") {
  record_builder builder = one_site(HOSTWAIT_KIND_FREE, "cuMemFree_v2", "/home/me/app", 0x1000,
                                    {.calls = 1, .waited = 1});
  CHECK(report_of({builder}).findings.at(0).runtime_call == "cudaFree");

  table_symbolizer symbols;
  symbols.names[{"/home/me/app", 0x1000}] = "release_buffers";
  const std::vector<record_file> records = {parsed(builder)};
  const run_report named = make_report(records, symbols);
  CHECK(named.findings.at(0).runtime_call == "cuMemFree");
}

TEST_CASE("driver names lose version and stream suffixes") {
  CHECK(driver_base_name("cuMemcpyDtoHAsync_v2_ptsz") == "cuMemcpyDtoHAsync");
  CHECK(driver_base_name("cuCtxSynchronize") == "cuCtxSynchronize");
  CHECK(driver_base_name("cuMemcpy_ptds") == "cuMemcpy");
  CHECK(driver_base_name("cu_verbatim") == "cu_verbatim");
  CHECK(runtime_name_of("cuMemcpy2DUnaligned", HOSTWAIT_DIRECTION_H2H) == "cudaMemcpy");
  CHECK(runtime_name_of("cuMemcpy2DUnaligned", HOSTWAIT_DIRECTION_D2H) == "cudaMemcpy2D");
  CHECK(runtime_name_of("cuNoSuchThing", 0).empty());
}

TEST_CASE("fingerprint 1 names functions, not lines, paths or addresses") {
  finding of;
  of.kind = HOSTWAIT_KIND_ASYNC_COPY;
  of.call = "cuMemcpyDtoHAsync_v2";
  of.native = {frame("/venv/site-packages/torch/lib/libtorch_cuda.so", "at::native::item")};
  of.python = {{"step", "/home/me/train.py", 42, false}, {"main", "/home/me/train.py", 9, false}};
  // Frozen: a change here makes every baseline of every user stale.
  CHECK(fingerprint_of(of) == "52e6342e822d1fcb");
  finding same = of;
  same.call = "cuMemcpyDtoHAsync_v2_ptsz + cuStreamSynchronize";
  same.python[0].line = 50;
  same.python[0].file = "/elsewhere/train.py";
  same.native[0].offset = 0x999;
  same.native[0].module = "/other/site-packages/torch/lib/libtorch_cuda.so";
  CHECK(fingerprint_of(same) == fingerprint_of(of));

  finding other = of;
  SECTION("kind") {
    other.kind = HOSTWAIT_KIND_COPY;
  }
  SECTION("label") {
    other.label = "x";
  }
  SECTION("range") {
    other.range = "x";
  }
  SECTION("library function") {
    other.native[0].function = "at::native::nonzero";
  }
  SECTION("user function") {
    other.python[0].function = "evaluate";
  }
  SECTION("module") {
    other.python[1].file = "/home/me/run.py";
  }
  CHECK(fingerprint_of(other) != fingerprint_of(of));
}

TEST_CASE("whose frame") {
  CHECK(owner_of("/home/me/app", "_start", 0) == frame_owner::system);
  CHECK(owner_of("/lib/x86_64-linux-gnu/libc.so.6", "", 0) == frame_owner::system);
  CHECK(owner_of("/usr/lib/libcublas.so.13", "", 0) == frame_owner::library);
  CHECK(owner_of("/opt/x/libcuda.so.580.159", "", 0) == frame_owner::driver);
  CHECK(owner_of("/x/renamed.so", "", HOSTWAIT_MODULE_DRIVER) == frame_owner::driver);
  CHECK(owner_of("/x/renamed.so", "", HOSTWAIT_MODULE_OWN) == frame_owner::own);
  CHECK(owner_of("/v/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12", "", 0) ==
        frame_owner::runtime);
  CHECK(owner_of("/usr/bin/python3.11", "main", 0) == frame_owner::interpreter);
  CHECK(owner_of("/home/me/pythonic", "main", 0) == frame_owner::user);
  CHECK(owner_of("/home/me/libmine.so", "mine", 0) == frame_owner::user);
  CHECK(owner_of("/usr/bin/solver", "main", 0) == frame_owner::user);
  CHECK(owner_of("/home/me/libhostwait_cai.so", "", 0) == frame_owner::user);
}

TEST_CASE("library frames outside the user's code do not stand for it") {
  finding of;
  of.native = {frame("/home/me/app", "mine"), frame("/usr/lib/libtorch.so", "run")};
  CHECK(library_frame(of) == nullptr);
  REQUIRE(user_frame(of) != nullptr);
  CHECK(user_frame(of)->function == "mine");
  of.native = {frame("/home/me/app", "thrust::reduce"), frame("/home/me/app", "mine")};
  REQUIRE(library_frame(of) != nullptr);
  CHECK(library_frame(of)->function == "thrust::reduce");
}

TEST_CASE("gates: violations, config errors, blindness, nothing seen") {
  std::string why;
  run_report report = report_of({hostwait::test::training_run("r", 1)});
  CHECK(gate_status(report, true, why) == 0);
  CHECK(why.empty());
  report.processes[0].blind = true;
  CHECK(gate_status(report, false, why) == 0);
  CHECK(gate_status(report, true, why) == 87);
  report.findings[0].sum.violations = 3;
  CHECK(gate_status(report, true, why) == 86);
  CHECK_THAT(why, ContainsSubstring("3 violations in 1 finding"));
  report.processes[0].config_error = true;
  CHECK(gate_status(report, false, why) == 2);
  CHECK(gate_status(run_report{}, false, why) == 0);
  CHECK(gate_status(run_report{}, true, why) == 87);
}

TEST_CASE("C++ names without signatures") {
  const auto check = [](const char* full, const char* expected) {
    CHECK(strip_signature(full) == expected);
  };
  check("at::native::item(at::Tensor const&)", "at::native::item");
  check("void foo<int, std::vector<char>>(int)", "foo");
  check("std::vector<int, std::allocator<int>>::push_back(int const&)", "std::vector::push_back");
  check("operator new(unsigned long)", "operator new");
  check("a::b::operator()(int) const", "a::b::operator()");
  check("a::operator<(a::x const&, a::x const&)", "a::operator<");
  check("a::operator<<(std::ostream&, int)", "a::operator<<");
  check("a::b::operator bool() const", "a::b::operator bool");
  check("main::{lambda(int)#1}::operator()(int) const", "main::{lambda}::operator()");
  check("f(int)::{lambda()#2}::operator()() const", "f::{lambda}::operator()");
  check("(anonymous namespace)::helper(int)", "(anonymous namespace)::helper");
  check("ns::(anonymous namespace)::helper<void (*)(int)>(int)",
        "ns::(anonymous namespace)::helper");
  check("std::__cxx11::basic_string<char>::size[abi:cxx11]() const",
        "std::__cxx11::basic_string::size");
  check("plain_c_name", "plain_c_name");
  CHECK(readable_name("_ZN2at6native4itemERKNS_6TensorE") == "at::native::item");
  CHECK(readable_name("_ZN2at6native4itemERKNS_6TensorE.isra.0") == "at::native::item");
  CHECK(readable_name("_Znotmangled") == "_Znotmangled");
  CHECK(readable_name("main") == "main");
  CHECK(shorten_name("c10::cuda::CUDACachingAllocator::Native::Device::free_block") ==
        "c10::cuda::…::free_block");
  CHECK(shorten_name("at::native::a::b") == "at::native::a::b");
  CHECK(shorten_name("(anonymous namespace)::reader::fetch") == "reader::fetch");
  CHECK(shorten_name("at::native::(anonymous namespace)::read::{lambda}::operator()::{lambda}::"
                     "operator()") == "at::native::read");
  CHECK(shorten_name("main::{lambda}") == "main");
  CHECK(shorten_name("thrust::functor::operator()") == "thrust::functor::operator()");
  CHECK(shorten_name("a::(anonymous namespace)::b::c::(anonymous namespace)::d") == "a::b::c::d");
}
