// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Stacks are those of _Unwind_Backtrace, address by address.
#include <alloca.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <random>
#include <stdexcept>
#include <thread>

#include "record_resolve_double.hpp"
#include "support/catch.hpp"
#include "unwind_support.hpp"

using namespace hostwait;
using namespace hostwait::test;

namespace {

void check_last(std::size_t at_least) {
  CHECK(last.ours.list() == last.theirs.list());
  CHECK(last.ours.size() >= at_least);
  last = {};
}

__attribute__((noinline)) int recurse(int depth, int extra) {
  volatile int room[8];
  room[depth % 8] = extra;
  if (depth == 0) return take_last_from_c();
  return recurse(depth - 1, extra + 1) + room[depth % 8];
}

__attribute__((noinline)) int aligned_frame(int depth) {
  alignas(64) volatile char room[192];
  room[depth] = 1;
  if (depth == 0) return take_last_from_c() + room[0];
  return aligned_frame(depth - 1) + room[depth];
}

__attribute__((noinline)) int with_alloca(int bytes) {
  auto* room = static_cast<volatile char*>(alloca(static_cast<std::size_t>(bytes)));
  room[0] = 1;
  if (bytes > 4000) return take_last_from_c() + room[0];
  return with_alloca(bytes * 3) + room[0];
}

__attribute__((noinline)) int aligned_and_alloca(int bytes) {
  alignas(128) volatile char fixed[128];
  auto* room = static_cast<volatile char*>(alloca(static_cast<std::size_t>(bytes)));
  fixed[1] = 1;
  room[0] = 1;
  return take_last_from_c() + room[0] + fixed[1];
}

int compare_and_take(const void* a, const void* b) {
  take_last_from_c();
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

void take_in_handler(int) {
  take_last_from_c();
}

struct takes_in_destructor {
  ~takes_in_destructor() { take_last(); }
};

__attribute__((noinline)) int throws(int depth) {
  if (depth == 0) throw std::runtime_error("thrown");
  takes_in_destructor guard;
  return throws(depth - 1) + 1;
}

}  // namespace

TEST_CASE("deep recursion", "[unwind]") {
  recurse(200, 1);
  check_last(200);
  recurse(3, 1);
  check_last(4);
}

TEST_CASE("inlined functions and tail calls at -O3", "[unwind]") {
  through_inlined_and_tail_calls(3);
  check_last(3);
}

TEST_CASE("functions with a frame pointer", "[unwind]") {
  through_framed(20);
  check_last(21);
}

TEST_CASE("over-aligned frames and alloca", "[unwind]") {
  aligned_frame(10);
  check_last(11);
  with_alloca(10);
  check_last(6);
  aligned_and_alloca(300);
  check_last(2);
}

TEST_CASE("through qsort", "[unwind]") {
  int numbers[] = {5, 3, 9, 1, 7};
  qsort(numbers, 5, sizeof numbers[0], compare_and_take);
  check_last(4);
}

TEST_CASE("through a signal handler, on the same and on an alternate stack", "[unwind]") {
  for (int flags : {0, SA_ONSTACK}) {
    static char room[64 * 1024];
    stack_t alternate{};
    alternate.ss_sp = room;
    alternate.ss_size = sizeof room;
    sigaltstack(&alternate, nullptr);
    struct sigaction action {};
    action.sa_handler = take_in_handler;
    action.sa_flags = flags;
    sigaction(SIGUSR1, &action, nullptr);
    raise(SIGUSR1);
    check_last(5);
    for (int round = 0; round < 3; ++round) {
      recurse(3, 1);  // the two stacks in turn
      check_last(4);
      raise(SIGUSR1);
      check_last(5);
    }
  }
}

TEST_CASE("std::function, exceptions and destructors amid unwinding", "[unwind]") {
  std::function<int(int)> nested = [&](int depth) {
    return depth == 0 ? take_last_from_c() : nested(depth - 1) + 1;
  };
  nested(5);
  check_last(6);
  try {
    throws(4);
  } catch (const std::exception&) {
    check_last(3);
    take_last();
    check_last(1);
  }
  check_last(0);
}

TEST_CASE("on other threads", "[unwind]") {
  std::thread([] { recurse(4, 1); }).join();
  check_last(6);
}

TEST_CASE("a library that takes the place of another", "[unwind]") {
  std::uintptr_t first = 0;
  for (const char* name : {"libunwind_test_a.so", "libunwind_test_b.so"}) {
    std::string path = std::string(HOSTWAIT_TEST_LIBRARIES) + "/" + name;
    void* library = dlopen(path.c_str(), RTLD_NOW);
    REQUIRE(library != nullptr);
    auto* call_back = reinterpret_cast<int (*)(int (*)())>(dlsym(library, "call_back"));
    REQUIRE(call_back != nullptr);
    if (first != 0 && first != reinterpret_cast<std::uintptr_t>(call_back))
      WARN("the second library lies elsewhere: the stale rule was not tried");
    first = reinterpret_cast<std::uintptr_t>(call_back);
    call_back(take_last_from_c);
    check_last(3);
    dlclose(library);
    next_loader_generation();
  }
}

#if defined(__x86_64__)
asm(R"(
  .text
  .globl hostwait_test_without_cfi
  .type hostwait_test_without_cfi, @function
hostwait_test_without_cfi:
  endbr64
  pushq %rbx
  subq $48, %rsp
  call *%rdi
  addq $48, %rsp
  popq %rbx
  ret
  .size hostwait_test_without_cfi, . - hostwait_test_without_cfi
)");
extern "C" int hostwait_test_without_cfi(int (*)());

TEST_CASE("assembly without unwind information ends the walk", "[unwind]") {
  hostwait_test_without_cfi(take_last_from_c);
  auto start = reinterpret_cast<std::uintptr_t>(&hostwait_test_without_cfi);
  REQUIRE(last.ours.size() >= 2);
  CHECK(last.ours.size() <= last.theirs.size() + 1);
  CHECK(last.ours.outermost() - start < 32);
  last = {};
}

TEST_CASE("generated code ends the walk", "[unwind]") {
  // sub rsp, 40; call rdi; add rsp, 40; ret
  const unsigned char code[] = {0x48, 0x83, 0xec, 0x28, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x28, 0xc3};
  void* page =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  std::memcpy(page, code, sizeof code);
  reinterpret_cast<int (*)(int (*)())>(page)(take_last_from_c);
  REQUIRE(last.ours.size() != 0);
  CHECK(last.ours.outermost() == reinterpret_cast<std::uintptr_t>(page) + 6);
  check_last(2);
  munmap(page, 4096);
}

#if !defined(__SANITIZE_THREAD__)  // every step of the run-time library would be taken, too
namespace {
std::atomic<unsigned> stepped{0}, different{0};
std::size_t depth_of_step = 0;
void one_step(int) {
  two_stacks now = take_stacks();
  stepped.fetch_add(1);
  if (!now.equal()) different.fetch_add(1);
  if (now.ours.size() > depth_of_step) depth_of_step = now.ours.size();
}
}  // namespace

// The processor traps after each instruction, so that the walk begins in every kind of place:
// prologues, epilogues, entries of the linkage table.
TEST_CASE("at every single instruction", "[unwind]") {
  struct sigaction action {};
  action.sa_handler = one_step;
  sigaction(SIGTRAP, &action, nullptr);
  int numbers[] = {3, 1, 2};
  char text[32];
  asm volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
  qsort(numbers, 3, sizeof numbers[0], [](const void* a, const void* b) {
    return *static_cast<const int*>(a) - *static_cast<const int*>(b);
  });
  snprintf(text, sizeof text, "%d %s", numbers[2], "text");
  aligned_frame(2);
  asm volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
  signal(SIGTRAP, SIG_DFL);
  CHECK(stepped.load() > 500);
  CHECK(different.load() == 0);
  CHECK(depth_of_step > 5);
  last = {};
}
#endif
#endif

TEST_CASE("damaged registers read nothing that is not there", "[unwind]") {
  const std::size_t page = 4096;
  auto* room = static_cast<char*>(
      mmap(nullptr, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(room != MAP_FAILED);
  REQUIRE(mprotect(room + 4 * page, 4 * page, PROT_NONE) == 0);
  recurse(4, 1);
  std::vector<std::uintptr_t> addresses = last.ours.list();  // places with all kinds of rules
  aligned_frame(3);
  addresses.insert(addresses.end(), last.ours.at, last.ours.at + last.ours.count);
  through_framed(3);
  addresses.insert(addresses.end(), last.ours.at, last.ours.at + last.ours.count);
  last = {};
  std::mt19937_64 random(4711);
  auto base = reinterpret_cast<std::uintptr_t>(room);
  std::uintptr_t out[64];
  for (unsigned round = 0; round < 20000; ++round) {
    // Memory full of plausible addresses and pointers into itself, up to the hole.
    if (round % 50 == 0) {
      for (std::size_t at = 0; at < 4 * page; at += 8) {
        std::uintptr_t word = random() % 3 == 0   ? base + random() % (8 * page)
                              : random() % 2 == 0 ? addresses[random() % addresses.size()]
                                                  : random();
        std::memcpy(room + at, &word, 8);
      }
    }
    unwind::registers from{};
    from.ip = addresses[random() % addresses.size()];
    from.sp = random() % 8 == 0 ? random() : base + random() % (8 * page);
    from.bp = random() % 8 == 0 ? random() : base + random() % (8 * page);
    unsigned depth = unwind::capture(from, out, 64);
    if (depth == 0 || depth > 64) FAIL("depth");
  }
  munmap(room, 8 * page);
}

TEST_CASE("the limit is kept, and the first frame is the given one", "[unwind]") {
  std::uintptr_t out[4] = {0, 0, 0, 4711};
  unwind::registers from{};
  from.ip = 0x1234;
  from.sp = reinterpret_cast<std::uintptr_t>(out);
  CHECK(unwind::capture(from, out, 0) == 0);
  CHECK(unwind::capture(from, out, 3) == 1);
  CHECK(out[0] == 0x1234);
  CHECK(out[3] == 4711);
}

namespace {

std::uintptr_t begin_of_walk = 0;

// Frames of different sizes: a walk by the other one's rule goes astray.
template <std::size_t Bytes>
__attribute__((noinline)) bool in_frame(bool (*next)()) {
  volatile char room[Bytes];
  room[0] = 1;
  return next() && room[0] == 1;
}
__attribute__((noinline)) bool stacks_are_equal() {
  begin_of_walk = reinterpret_cast<std::uintptr_t>(__builtin_dwarf_cfa());
  return take_stacks().equal();
}
__attribute__((noinline)) bool small_below_large() {
  return in_frame<400>([] { return in_frame<48>(stacks_are_equal); });
}
__attribute__((noinline)) bool large_below_small() {
  return in_frame<48>([] { return in_frame<400>(stacks_are_equal); });
}

}  // namespace

// The rules of a walk are kept by where it begins, and these two begin at the same place.
TEST_CASE("a walk that begins where another one did takes its own way", "[unwind]") {
  bool (*const paths[])() = {small_below_large, large_below_small};
  std::uintptr_t begin[2] = {};
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 2; ++i) {
      CHECK(paths[i]());
      begin[i] = begin_of_walk;
    }
    REQUIRE(begin[0] == begin[1]);
  }
}

TEST_CASE("threads share the cache while the generation moves", "[unwind]") {
  std::atomic<unsigned> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 300; ++round) {
        if (!take_stacks().equal()) wrong.fetch_add(1);
        if (t == 0 && round % 10 == 0) next_loader_generation();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong.load() == 0);
}
