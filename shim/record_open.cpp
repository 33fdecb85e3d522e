// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Opening the record of this process, its header, and the words that describe the whole process.
#include <sys/utsname.h>
#include <time.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "record.hpp"
#include "record_text.hpp"
#include "record_threads.hpp"
#include "resolve.hpp"

namespace hostwait::record {

namespace {

constinit settings settings_{nullptr, 0, nullptr, false};
constinit std::uint64_t start_real_ns_ = 0, start_mono_ns_ = 0;
constinit std::uint32_t start_pid_ = 0;
constinit std::uint32_t steps_ = 0, opens_ = 0;

constexpr std::uint32_t max_steps = 16384;

std::uint64_t real_ns() noexcept {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void copy_text(char* to, std::size_t room, const char* from) noexcept {
  std::size_t size = 0;
  for (; from != nullptr && size < room && from[size] != '\0'; ++size) to[size] = from[size];
  for (; size < room; ++size) to[size] = '\0';
}

std::uint32_t text_of(const char* from) noexcept {
  return from == nullptr ? 0 : text_number(from, std::strlen(from));
}

void copy_run_id(char (&to)[32]) noexcept {
  const char* id = getenv("HOSTWAIT_RUN_ID");
  std::size_t size = id == nullptr ? 0 : std::strlen(id);
  if (size == 0 || size > sizeof to) return;
  for (std::size_t i = 0; i < size; ++i)
    if (std::strchr("0123456789abcdef", id[i]) == nullptr) return;
  std::memcpy(to, id, size);
}

void find_rank(hostwait_record_header& header) noexcept {
  static constexpr const char* names[][2] = {{"RANK", "WORLD_SIZE"},
                                             {"SLURM_PROCID", "SLURM_NTASKS"},
                                             {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                             {"PMI_RANK", "PMI_SIZE"}};
  header.rank = header.world = -1;
  for (const auto& name : names) {
    header.rank = number_or(getenv(name[0]), -1);
    if (header.rank < 0) continue;
    header.world = number_or(getenv(name[1]), -1);
    return;
  }
}

std::uint32_t flags_of(const settings& s) noexcept {
  return s.config_error ? std::uint32_t{HOSTWAIT_RECORD_CONFIG_ERROR} : 0;
}

void fill_header(hostwait_record_header& header) noexcept {
  header.major = HOSTWAIT_RECORD_MAJOR;
  header.minor = HOSTWAIT_RECORD_MINOR;
  header.header_bytes = HOSTWAIT_RECORD_HEADER_BYTES;
  header.state = HOSTWAIT_RECORD_OPEN;
  header.flags = flags_of(settings_);
  if (sections_.file().anonymous()) header.flags |= HOSTWAIT_RECORD_ANONYMOUS;
  copy_run_id(header.run_id);
  header.pid = static_cast<std::uint32_t>(sys::getpid());
  header.ppid = static_cast<std::uint32_t>(sys::getppid());
  find_rank(header);
  bool from_start = start_pid_ == header.pid;  // a forked child starts here
  header.start_real_ns = from_start ? start_real_ns_ : real_ns();
  header.start_mono_ns = from_start ? start_mono_ns_ : now_ns();
  header.program = text_of(program_invocation_short_name);
  utsname machine{};
  sys::call(SYS_uname, reinterpret_cast<long>(&machine));
  header.host = text_of(machine.nodename);
  header.options = text_of(settings_.options_text);
}

// Entries that every record has, at fixed numbers.
void fill_first_entries() noexcept {
  sections_.next_text(1);
  sections_.publish_text(1);  // 0 is ""
  for (unsigned id : {HOSTWAIT_SECTION_CONTROL, HOSTWAIT_SECTION_PYTHON_CODE}) {
    sections_.next(id);
    sections_.publish_next(id);  // code 0 stands for "unknown"
  }
  auto* root = static_cast<hostwait_record_frame*>(sections_.next(HOSTWAIT_SECTION_FRAMES));
  root->module = HOSTWAIT_FRAME_NO_MODULE;
  sections_.publish_next(HOSTWAIT_SECTION_FRAMES);
  auto* call = static_cast<hostwait_record_call*>(sections_.next(HOSTWAIT_SECTION_CALLS));
  call->name = text_number("(other)", 7);
  call->kind = HOSTWAIT_KIND_UNLISTED;
  call->row = 0xffff;
  sections_.publish_next(HOSTWAIT_SECTION_CALLS);
  auto* other = static_cast<hostwait_record_site*>(sections_.next(HOSTWAIT_SECTION_SITES));
  other->flags = HOSTWAIT_SITE_OTHER;
  other->first_mono_ns = now_ns();
  sections_.publish_next(HOSTWAIT_SECTION_SITES);
  open_threads();
}

void forget_parent() noexcept {
  steps_ = 0;
  sections_.forget();
  forget_interned();
  forget_modules();
  forget_threads();
  forget_sites();
  forget_private_memory();
}

bool open_slow() noexcept {
  wiped_page* p = page();
  if (p == nullptr) return false;
  slow_path inside(p);
  if (!inside) return false;
  if (p->alive.load(std::memory_order_relaxed) != 0) return true;
  if (p->tried.load(std::memory_order_relaxed) == 1) return false;
  p->tried.store(1, std::memory_order_relaxed);
  if (sections_.header() != nullptr) forget_parent();
  if (!sections_.open(settings_.output_dir)) return false;
  fill_first_entries();
  hostwait_record_header* header = sections_.header();
  fill_header(*header);
  // Last, so that a file with the magic is whole.
  std::uint64_t magic;
  std::memcpy(&magic, HOSTWAIT_RECORD_MAGIC, sizeof magic);
  publish(*reinterpret_cast<std::uint64_t*>(header->magic), magic);
  bool wiped = page_owner_.load(std::memory_order_relaxed) == 0;
  p->alive.store(++opens_ | (wiped ? 0 : compare_process), std::memory_order_release);
  return true;
}

}  // namespace

void configure(const settings& given) noexcept {
  remember_stderr();
  settings_ = given;
  set_max_sites(given.max_sites);
  start_pid_ = static_cast<std::uint32_t>(sys::getpid());
  start_real_ns_ = real_ns();
  start_mono_ns_ = now_ns();
  if (!alive()) return;
  // Another library's constructor called CUDA before ours ran.
  slow_path inside(page());
  if (!inside) return;
  store(sections_.header()->options, text_of(given.options_text));
  mark(flags_of(given));
}

bool ensure_open() noexcept {
  if (alive() || open_slow()) return true;
  // Another thread may be opening it, which takes longer than the lock is waited for: the call of
  // this one must not be lost meanwhile. Bounded, since this may be a signal handler on top of it.
  const wiped_page* p = page();
  for (unsigned attempt = 0; attempt < 64 && p != nullptr; ++attempt) {
    if (p->locked.load(std::memory_order_relaxed) == 0 &&
        p->tried.load(std::memory_order_relaxed) == 1 && !alive())
      return false;  // it was tried and cannot be had
    if (alive() || open_slow()) return true;
  }
  return false;
}

const hostwait_record_control* control() noexcept {
  return alive() ? entry_at<hostwait_record_control>(HOSTWAIT_SECTION_CONTROL, 0) : nullptr;
}

void set_driver(std::uint32_t version, const char* text) noexcept {
  if (!alive()) return;
  hostwait_record_header* header = sections_.header();
  store(header->driver_version, version);
  copy_text(header->driver_text, sizeof header->driver_text, text);
}

bool set_python_note(const char* note) noexcept {
  const std::uint32_t number = intern_string(note);
  if (number == 0) return false;
  store(sections_.header()->python_note, number);
  return true;
}

void count_mismatched_pop() noexcept {
  if (alive()) add_shared(sections_.header()->mismatched_pops, std::uint64_t{1});
}

void set_coverage(std::uint32_t routes, bool blind, const char* why,
                  std::size_t why_bytes) noexcept {
  static constexpr struct {
    std::uint32_t route;
    const char* name;
  } names[] = {{resolve::route_dlsym, "dlsym"},
               {resolve::route_dlvsym, "dlvsym"},
               {resolve::route_get_proc_address, "cuGetProcAddress"},
               {resolve::route_linked, "linked"}};
  if (!alive()) return;
  hostwait_record_header* header = sections_.header();
  text<sizeof header->routes> list;
  for (const auto& one : names) {
    if ((routes & one.route) == 0) continue;
    if (list.size() != 0) list << ", ";
    list << one.name;
  }
  // Two threads may describe the same news at once; the lock keeps their letters apart.
  slow_path inside(page());
  copy_text(header->routes, sizeof header->routes, list.c_str());
  std::size_t size =
      why_bytes < sizeof header->why_blind ? why_bytes : sizeof header->why_blind - 1;
  if (why == nullptr) size = 0;
  if (size != 0) std::memcpy(header->why_blind, why, size);
  std::memset(header->why_blind + size, 0, sizeof header->why_blind - size);
  if (blind) mark(HOSTWAIT_RECORD_BLIND);
}

void step(bool steady) noexcept {
  if (!ensure_open()) return;
  thread_writer* w = this_thread();
  slow_path inside(page());
  if (!inside) return;
  std::uint32_t count = sections_.of(HOSTWAIT_SECTION_STEPS).count();
  bool more = count < max_steps;
  auto* entry =
      static_cast<hostwait_record_step*>(more ? sections_.next(HOSTWAIT_SECTION_STEPS)
                                              : sections_.of(HOSTWAIT_SECTION_STEPS).at(count - 1));
  if (entry == nullptr) return;
  if (!steady) ++steps_;
  store(entry->mono_ns, now_ns());
  store(entry->number, steps_);
  entry->thread = w == nullptr ? 0 : static_cast<std::uint16_t>(w->index);
  if (steady) entry->flags |= HOSTWAIT_STEP_STEADY;
  if (more) sections_.publish_next(HOSTWAIT_SECTION_STEPS);
}

void seal() noexcept {
  if (!alive()) return;
  store(sections_.header()->end_mono_ns, now_ns());
  publish(sections_.header()->state, std::uint32_t{HOSTWAIT_RECORD_SEALED});
}

}  // namespace hostwait::record
