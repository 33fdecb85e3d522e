// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Native call stacks: a walk by cached rules.
//
// Why our own: the frames of a waiting call are the same few hundred addresses again and again, so
// that a rule per address, found once, makes a frame cost one cache look-up and two loads.
// _Unwind_Backtrace searches and decodes each frame each time and would bind us to libgcc_s;
// libunwind caches too, but Debian's libunwind.a is not position-independent, and it takes locks,
// blocks signals and allocates. tests/bench/unwind_bench.cpp compares the three.
#include "unwind.hpp"

#include <atomic>

#include "resolve.hpp"
#include "sys.hpp"
#include "unwind_cfi.hpp"

// The linker's marks of this very object.
extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start, etext;

// Reads other functions' frames on purpose.
#define HOSTWAIT_READS_STACK __attribute__((no_sanitize("address", "thread", "undefined")))

namespace hostwait::unwind {

namespace {

// The cache: direct-mapped, written and read without a lock. The two words of an entry are checked
// against each other, so that an entry torn between two writers, or of an older generation of the
// loader's list, does not match.
constexpr unsigned cache_bits = 14;
struct cached {
  std::atomic<std::uint64_t> key, rule;
};
constinit std::atomic<cached*> cache_{nullptr};

// Behind it, in the same mapping: the rules of whole walks, one behind the other, by where the walk
// begins. A program that has used its caches for something else since its last wait pays for each
// line that a walk touches; here four frames lie in one. Each rule is checked like any other, so
// that walks which share a place only cost more.
constexpr unsigned walk_bits = 7, walk_frames = 64;

constexpr std::uint64_t spread_1 = 0x9e3779b97f4a7c15, spread_2 = 0xd6e8feb86659fd93;

cached* cache() noexcept {
  cached* known = cache_.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  constexpr std::size_t bytes = sizeof(cached) * ((1u << cache_bits) + (walk_frames << walk_bits));
  auto* fresh = static_cast<cached*>(sys::mmap_anonymous(bytes));
  if (fresh == nullptr) return nullptr;
  if (cache_.compare_exchange_strong(known, fresh, std::memory_order_acq_rel)) return fresh;
  sys::munmap(fresh, bytes);
  return known;
}

template <class Otherwise>
inline std::uint64_t look_up(cached& place, std::uint64_t key, Otherwise otherwise) noexcept {
  std::uint64_t bits = place.rule.load(std::memory_order_relaxed);
  if ((place.key.load(std::memory_order_relaxed) ^ bits * spread_1) == key) return bits;
  bits = otherwise();
  place.rule.store(bits, std::memory_order_relaxed);
  place.key.store(key ^ bits * spread_1, std::memory_order_relaxed);
  return bits;
}

std::uint64_t rule_in(cached* table, std::uintptr_t address, std::uint64_t key) noexcept {
  return look_up(table[key * spread_1 >> (64 - cache_bits)], key,
                 [address]() noexcept { return rule_of(address).packed(); });
}

cached* walk_from(cached* table, const registers& from) noexcept {
  const std::uint64_t begin = (from.ip ^ from.sp * spread_2) * spread_1;
  return table + (1u << cache_bits) + (begin >> (64 - walk_bits)) * walk_frames;
}

// The part of a stack that is known to be readable: `first` page and a number of pages, in one
// word, since a signal handler on this thread may look at it, and change it, at any instruction.
// Pages are asked for once (a system call each) when a walk first reaches them; a thread's stack
// stays mapped while the thread runs on it. 0: nothing known.
thread_local constinit std::atomic<std::uint64_t> known_stack_{0};
constexpr unsigned page_shift = 12, count_bits = 19;
constexpr std::uint64_t max_new_pages = 16384;  // 64 MiB: no frame is that large

class stack_view {
 public:
  stack_view() noexcept : word_(known_stack_.load(std::memory_order_relaxed)) {}
  void remember() const noexcept {
    if (changed_) known_stack_.store(word_, std::memory_order_relaxed);
  }
  // Begins at `sp`, on whatever stack that is.
  bool start(std::uintptr_t sp) noexcept {
    std::uint64_t page = sp >> page_shift;
    if (page - first() < pages()) return true;
    if (!sys::readable(sp & ~std::uintptr_t{7})) return false;
    word_ = page << count_bits | 1;
    changed_ = true;
    return true;
  }
  // Eight bytes, aligned, at or above the walk's stack pointer.
  bool covers(std::uintptr_t at) noexcept {
    if (at % 8 != 0) return false;
    return (at >> page_shift) - first() < pages() || extend(at >> page_shift);
  }

 private:
  std::uint64_t first() const noexcept { return word_ >> count_bits; }
  std::uint64_t pages() const noexcept { return word_ & ((1u << count_bits) - 1); }
  __attribute__((noinline)) bool extend(std::uint64_t page) noexcept {
    if (page < first() || page - first() - pages() >= max_new_pages) return false;
    while (page - first() >= pages()) {
      std::uint64_t next = first() + pages();
      if (pages() + 1 == 1u << count_bits || !sys::readable(next << page_shift)) return false;
      ++word_;
      changed_ = true;
    }
    return true;
  }
  std::uint64_t word_;
  bool changed_ = false;
};

struct frame {
  std::uintptr_t ip, sp, bp, lr;
  bool exact = false;  // ip was interrupted there: not a return address
  bool has_bp = true, has_lr = false;
};

std::uintptr_t without_signature(std::uintptr_t address) noexcept {
#if defined(__aarch64__)
  register std::uintptr_t x30 asm("x30") = address;
  asm("hint #7" : "+r"(x30));  // xpaclri: nothing on machines without pointer authentication
  return x30;
#else
  return address;
#endif
}

// GCC does not say that `leave` has restored the frame pointer: at the `ret` behind it the saved
// value still lies just below the stack pointer, untouched by a signal.
constexpr std::uintptr_t red_zone = 128;

HOSTWAIT_READS_STACK bool read(stack_view& stack, std::uintptr_t lowest, std::uintptr_t at,
                               std::uintptr_t& out) noexcept {
  if (at < lowest || !stack.covers(at)) return false;
  out = *reinterpret_cast<const std::uintptr_t*>(at);
  return true;
}

bool saved(stack_view& stack, const frame& f, std::uintptr_t cfa, saved_at where,
           std::int32_t offset, std::uintptr_t& out) noexcept {
  std::uintptr_t base = where == saved_at::cfa ? cfa : where == saved_at::bp ? f.bp : f.sp;
  if (where == saved_at::bp && !f.has_bp) return false;
  return read(stack, f.exact ? f.sp - red_zone : f.sp,
              base + static_cast<std::uintptr_t>(std::int64_t{offset}), out);
}

#if defined(__aarch64__)
// struct rt_sigframe: siginfo (128 bytes), ucontext whose registers begin at 176 + 8.
bool kernel_signal(stack_view& stack, frame& f) noexcept {
  const std::uintptr_t registers = f.sp + 128 + 176 + 8;
  frame next{};
  if (!read(stack, f.sp, registers + 29 * 8, next.bp) ||
      !read(stack, f.sp, registers + 30 * 8, next.lr) ||
      !read(stack, f.sp, registers + 31 * 8, next.sp) ||
      !read(stack, f.sp, registers + 32 * 8, next.ip))
    return false;
  next.exact = next.has_lr = true;
  f = next;
  return stack.start(f.sp);
}
#endif

// To the caller's frame. False: the walk ends here.
bool step(stack_view& stack, frame& f, const rule& r) noexcept {
  std::uintptr_t cfa = 0;
  const auto offset = static_cast<std::uintptr_t>(std::int64_t{r.cfa_offset});
  switch (r.cfa) {
    case cfa_from::sp:
      cfa = f.sp + offset;
      break;
    case cfa_from::bp:
      if (!f.has_bp) return false;
      cfa = f.bp + offset;
      break;
    case cfa_from::bp_memory:
    case cfa_from::bp_memory_8:
      if (!f.has_bp || !read(stack, f.sp, f.bp + offset, cfa)) return false;
      break;
    case cfa_from::sp_memory:
    case cfa_from::sp_memory_8:
      if (!read(stack, f.sp, f.sp + offset, cfa)) return false;
      break;
    case cfa_from::plt:
      cfa = f.sp + 8 + ((f.ip & 15) >= offset ? 8 : 0);
      break;
#if defined(__aarch64__)
    case cfa_from::kernel_signal:
      return kernel_signal(stack, f);
#endif
    default:
      return false;
  }
  if (r.cfa == cfa_from::bp_memory_8 || r.cfa == cfa_from::sp_memory_8) cfa += 8;

  // A stack only ever grows towards its caller, except through a signal frame, which may lie on a
  // stack of its own. (A leaf of aarch64 may have no frame at all; then its lr takes it on, once.)
  if (!r.signal && !(cfa > f.sp || (r.ra == saved_at::nowhere && cfa == f.sp))) return false;
  frame next{};
  next.sp = cfa;
  if (r.ra == saved_at::nowhere) {
    if (!f.has_lr) return false;
    next.ip = f.lr;
  } else if (!saved(stack, f, cfa, r.ra, r.ra_offset, next.ip)) {
    return false;
  }
  next.ip = without_signature(next.ip);
  next.bp = f.bp;
  next.has_bp = f.has_bp && r.bp == saved_at::nowhere;
  if (r.bp != saved_at::nowhere && r.bp != saved_at::lost)
    next.has_bp = saved(stack, f, cfa, r.bp, r.bp_offset, next.bp);
  next.exact = r.signal;
  f = next;
  return !r.signal || stack.start(f.sp - red_zone) || stack.start(f.sp);
}

// The same for nearly every frame, without the detours. 1: done; 0: not of this kind; -1: the walk
// ends here.
HOSTWAIT_READS_STACK inline int common_step(stack_view& stack, frame& f, common_rule r) noexcept {
  if (!r.is_one() || f.exact || (r.by_bp() && !f.has_bp)) return 0;
  const std::uintptr_t cfa = (r.by_bp() ? f.bp : f.sp) + r.cfa_offset();
  const std::uintptr_t ra = cfa + r.ra_offset();
  if (cfa <= f.sp || ra < f.sp || !stack.covers(ra)) return -1;
  f.ip = without_signature(*reinterpret_cast<const std::uintptr_t*>(ra));
  if (r.saves_bp()) {
    const std::uintptr_t bp = cfa + r.bp_offset();
    f.has_bp = bp >= f.sp && stack.covers(bp);
    if (f.has_bp) f.bp = *reinterpret_cast<const std::uintptr_t*>(bp);
  }
  f.sp = cfa;
  f.has_lr = false;
  return 1;
}

// Whether the address is in this library's code.
bool is_ours(std::uintptr_t address) noexcept {
  return address >= reinterpret_cast<std::uintptr_t>(&__ehdr_start) &&
         address < reinterpret_cast<std::uintptr_t>(&etext);
}

frame first_frame(const registers& from) noexcept {
  frame first{without_signature(from.ip), from.sp, from.bp, from.lr};
  first.has_lr = from.lr != 0;
  return first;
}

struct walk {
  cached* table;
  std::uint64_t generation;
  cached* next = nullptr;  // of the rules of this very walk, where they are kept
  std::uint64_t bits = 0;  // the last rule
  unsigned signals = 0;

  // False: the walk ends here. Always inlined: capture() is on the path of every recorded call.
  __attribute__((always_inline)) bool to_caller(stack_view& stack, frame& now) noexcept {
    const std::uintptr_t address = now.exact ? now.ip : now.ip - 1;
    const std::uint64_t key = address ^ generation * spread_2;
    bits = next == nullptr ? rule_in(table, address, key)
                           : look_up(*next++, key, [this, address, key]() noexcept {
                               return rule_in(table, address, key);
                             });
    int done = common_step(stack, now, {bits});
    if (done == 0) {
      const rule r = rule::unpacked(bits);
      if (r.signal && ++signals > 8) return false;  // a loop of damaged signal frames
      done = step(stack, now, r) ? 1 : -1;
    }
    return done > 0 && now.ip != 0;
  }
  // Why it ended: at a frame that is marked as a thread's first, or at a return address that no
  // call has made, since a function begins there (a fiber's first frame as makecontext makes it).
  bool outermost(const frame& last) const noexcept {
    const cfa_from how = rule::unpacked(bits).cfa;
    return how == cfa_from::outermost ||
           (how == cfa_from::nowhere && rule_of(last.ip).cfa != cfa_from::nowhere);
  }
};

}  // namespace

unsigned capture(const registers& from, std::uintptr_t* out, unsigned limit) noexcept {
  if (limit == 0 || from.ip == 0) return 0;
  out[0] = without_signature(from.ip);
  cached* table = cache();
  stack_view stack;
  if (table == nullptr || !stack.start(from.sp)) return 1;
  walk on{table, resolve::loader_generation(), walk_from(table, from)};
  frame now = first_frame(from);
  unsigned depth = 1;
  while (depth < limit && on.to_caller(stack, now)) {
    out[depth++] = now.ip;
    if (depth == walk_frames) on.next = nullptr;
  }
  stack.remember();
  return depth;
}

frame_state look_for(const registers& from, std::uintptr_t sp) noexcept {
  cached* table = cache();
  stack_view stack;
  if (from.ip == 0 || table == nullptr || !stack.start(from.sp)) return frame_state::unknown;
  walk on{table, resolve::loader_generation()};
  frame now = first_frame(from);
  constexpr unsigned limit = 4096;  // frames of a runaway recursion, or of a damaged stack
  std::uintptr_t callee = 0;
  for (unsigned i = 0; i < limit && now.sp < sp; ++i) {
    callee = now.ip;
    if (on.to_caller(stack, now)) continue;
    stack.remember();
    return on.outermost(now) ? frame_state::gone : frame_state::unknown;
  }
  stack.remember();
  if (now.sp < sp) return frame_state::unknown;
  // Other frames may begin at the same place by now.
  return now.sp == sp && is_ours(callee) ? frame_state::active : frame_state::gone;
}

}  // namespace hostwait::unwind
