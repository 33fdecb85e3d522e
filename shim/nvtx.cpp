// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The library as an NVTX injection: NVTX_INJECTION64_PATH names it, and each copy of NVTX in the
// process calls InitializeInjectionNvtx2 once.
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <cwchar>

#include "nvtx_abi.hpp"
#include "ranges.hpp"
#include "utf8.hpp"

namespace hostwait::nvtx {

namespace {

// Registered strings and domains live as long as the process: handles are pointers to them. They
// are bump-allocated; past the bound a handle to an unnamed text is given out.
struct text {
  char name[ranges::name_bytes];
};
constexpr std::size_t max_texts = 16384;
std::atomic<text*> texts{nullptr};
std::atomic<std::size_t> texts_used{0};
text unnamed;

// As UTF-8, whole characters only.
void narrow(char* out, std::size_t room, const wchar_t* wide) noexcept {
  std::size_t used = 0;
  out[0] = '\0';
  while (wide != nullptr && *wide != L'\0' &&
         append_utf8(out, room, used, static_cast<std::uint32_t>(*wide)))
    ++wide;
}

text* keep(const char* name) noexcept {
  text* pool = texts.load(std::memory_order_acquire);
  if (pool == nullptr) {
    void* memory = mmap(nullptr, sizeof(text) * max_texts, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return &unnamed;
    if (!texts.compare_exchange_strong(pool, static_cast<text*>(memory))) {
      munmap(memory, sizeof(text) * max_texts);
    } else {
      pool = static_cast<text*>(memory);
    }
  }
  const std::size_t index = texts_used.fetch_add(1, std::memory_order_relaxed);
  if (index >= max_texts) return &unnamed;
  if (name != nullptr) std::strncpy(pool[index].name, name, sizeof(text::name) - 1);
  return &pool[index];
}

text* keep_wide(const wchar_t* wide) noexcept {
  char name[ranges::name_bytes];
  narrow(name, sizeof name, wide);
  return keep(name);
}

// The message of an event as narrow text, in `room` where it has to be converted.
const char* message_of(const event_attributes* event, char (&room)[ranges::name_bytes]) noexcept {
  if (event == nullptr) return "";
  switch (event->message_type) {
    case message_ascii:
      return static_cast<const char*>(event->message);
    case message_unicode:
      narrow(room, sizeof room, static_cast<const wchar_t*>(event->message));
      return room;
    case message_registered:
      return event->message != nullptr ? static_cast<const text*>(event->message)->name : "";
    default:
      return "";
  }
}

const char* domain_name(const void* domain) noexcept {
  return domain != nullptr ? static_cast<const text*>(domain)->name : nullptr;
}

std::uint64_t number(const void* domain) noexcept {
  return reinterpret_cast<std::uintptr_t>(domain);
}

int domain_push(void* domain, const event_attributes* event) {
  char room[ranges::name_bytes];
  return ranges::push(number(domain), domain_name(domain), message_of(event, room));
}
int domain_pop(void* domain) {
  return ranges::pop(number(domain));
}
std::uint64_t domain_start(void* domain, const event_attributes* event) {
  char room[ranges::name_bytes];
  return ranges::start(domain_name(domain), message_of(event, room));
}
void domain_end(void*, std::uint64_t id) {
  ranges::end(id);
}

int push_ex(const event_attributes* event) {
  return domain_push(nullptr, event);
}
int push_a(const char* name) {
  return ranges::push(0, nullptr, name);
}
int push_w(const wchar_t* wide) {
  char name[ranges::name_bytes];
  narrow(name, sizeof name, wide);
  return ranges::push(0, nullptr, name);
}
int pop_default() {
  return ranges::pop(0);
}
std::uint64_t start_ex(const event_attributes* event) {
  return domain_start(nullptr, event);
}
std::uint64_t start_a(const char* name) {
  return ranges::start(nullptr, name);
}
std::uint64_t start_w(const wchar_t* wide) {
  char name[ranges::name_bytes];
  narrow(name, sizeof name, wide);
  return ranges::start(nullptr, name);
}
void end_default(std::uint64_t id) {
  ranges::end(id);
}

void* register_a(void*, const char* name) {
  return keep(name);
}
void* register_w(void*, const wchar_t* name) {
  return keep_wide(name);
}
void* create_a(const char* name) {
  return keep(name);
}
void* create_w(const wchar_t* name) {
  return keep_wide(name);
}
void destroy(void*) {}

struct slot {
  unsigned index;
  function_pointer function;
};

template <class F>
function_pointer as_pointer(F* function) noexcept {
  return reinterpret_cast<function_pointer>(function);
}

template <std::size_t N>
bool install(const export_table_callbacks* callbacks, std::uint32_t module,
             const slot (&slots)[N]) noexcept {
  function_pointer** table = nullptr;
  unsigned size = 0;
  if (callbacks->get_module_function_table(module, &table, &size) == 0 || table == nullptr)
    return false;
  for (const slot& s : slots)
    if (s.index < size && table[s.index] != nullptr) *table[s.index] = s.function;
  return true;
}

}  // namespace

}  // namespace hostwait::nvtx

// Returns 1 for success, as NVTX defines it.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    hostwait::nvtx::get_export_table get_table);

int InitializeInjectionNvtx2(hostwait::nvtx::get_export_table get_table) {
  using namespace hostwait::nvtx;
  if (get_table == nullptr) return 0;
  const auto* callbacks = static_cast<const export_table_callbacks*>(get_table(table_callbacks));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(export_table_callbacks)) return 0;
  const slot core[] = {
      {core_range_push_ex, as_pointer(push_ex)},   {core_range_push_a, as_pointer(push_a)},
      {core_range_push_w, as_pointer(push_w)},     {core_range_pop, as_pointer(pop_default)},
      {core_range_start_ex, as_pointer(start_ex)}, {core_range_start_a, as_pointer(start_a)},
      {core_range_start_w, as_pointer(start_w)},   {core_range_end, as_pointer(end_default)}};
  const slot core2[] = {{core2_domain_range_push_ex, as_pointer(domain_push)},
                        {core2_domain_range_pop, as_pointer(domain_pop)},
                        {core2_domain_range_start_ex, as_pointer(domain_start)},
                        {core2_domain_range_end, as_pointer(domain_end)},
                        {core2_domain_register_string_a, as_pointer(register_a)},
                        {core2_domain_register_string_w, as_pointer(register_w)},
                        {core2_domain_create_a, as_pointer(create_a)},
                        {core2_domain_create_w, as_pointer(create_w)},
                        {core2_domain_destroy, as_pointer(destroy)}};
  if (!install(callbacks, module_core, core)) return 0;
  install(callbacks, module_core2, core2);
  return 1;
}
