// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Raw system calls. They touch no errno, are no cancellation points, need no symbol whose version
// moved between glibc releases, and return -errno on failure.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>

// On the path of every recorded call: these functions lie side by side, since a program that waits
// seldom finds none of them in its caches and pays for each page.
#define HOSTWAIT_HOT __attribute__((hot))

namespace hostwait::sys {

#if defined(__x86_64__)
inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                 long f = 0) noexcept {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                 long f = 0) noexcept {
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc #0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory");
  return x0;
}
#else
#error "hostwait knows x86-64 and aarch64"
#endif

inline bool failed(long result) noexcept {
  return result < 0 && result > -4096;
}

inline int open(const char* path, int flags, unsigned mode = 0) noexcept {
  return static_cast<int>(
      call(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path), flags, static_cast<long>(mode)));
}
inline int close(int fd) noexcept {
  return static_cast<int>(call(SYS_close, fd));
}
inline long write(int fd, const void* bytes, std::size_t count) noexcept {
  return call(SYS_write, fd, reinterpret_cast<long>(bytes), static_cast<long>(count));
}
inline long pwrite(int fd, const void* bytes, std::size_t count, std::uint64_t offset) noexcept {
  return call(SYS_pwrite64, fd, reinterpret_cast<long>(bytes), static_cast<long>(count),
              static_cast<long>(offset));
}
inline int unlink(const char* path) noexcept {
  return static_cast<int>(call(SYS_unlinkat, AT_FDCWD, reinterpret_cast<long>(path), 0));
}

// Null on failure.
inline void* mmap(void* at, std::size_t bytes, int protection, int flags, int fd,
                  std::uint64_t offset) noexcept {
  long result = call(SYS_mmap, reinterpret_cast<long>(at), static_cast<long>(bytes), protection,
                     flags, fd, static_cast<long>(offset));
  return failed(result) ? nullptr : reinterpret_cast<void*>(result);
}
inline void* mmap_anonymous(std::size_t bytes) noexcept {
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
inline int munmap(void* at, std::size_t bytes) noexcept {
  return static_cast<int>(call(SYS_munmap, reinterpret_cast<long>(at), static_cast<long>(bytes)));
}
inline int madvise(void* at, std::size_t bytes, int advice) noexcept {
  return static_cast<int>(
      call(SYS_madvise, reinterpret_cast<long>(at), static_cast<long>(bytes), advice));
}

inline int getpid() noexcept {
  return static_cast<int>(call(SYS_getpid));
}
inline int getppid() noexcept {
  return static_cast<int>(call(SYS_getppid));
}
inline int gettid() noexcept {
  return static_cast<int>(call(SYS_gettid));
}
inline void sched_yield() noexcept {
  call(SYS_sched_yield);
}

// The kernel's struct stat is glibc's on both machines.
inline int fstat(int fd, struct stat* out) noexcept {
  return static_cast<int>(call(SYS_fstat, fd, reinterpret_cast<long>(out)));
}

// Blocks every signal of the calling thread, also the two that glibc keeps for itself (with them
// asynchronous cancellation), and gives the old mask to restore.
inline std::uint64_t block_signals() noexcept {
  std::uint64_t all = ~0ull, before = 0;
  call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, reinterpret_cast<long>(&all),
       reinterpret_cast<long>(&before), sizeof all);
  return before;
}
inline void restore_signals(std::uint64_t mask) noexcept {
  call(SYS_rt_sigprocmask, 2, reinterpret_cast<long>(&mask), 0, sizeof mask);
}

// Whether the eight bytes at `at` can be read. The kernel copies the new mask in before it looks at
// the (invalid) first argument: unreadable memory gives EFAULT, readable memory EINVAL.
inline bool readable(std::uintptr_t at) noexcept {
  constexpr long efault = 14;
  return call(SYS_rt_sigprocmask, ~0l, static_cast<long>(at), 0, 8) != -efault;
}

}  // namespace hostwait::sys
