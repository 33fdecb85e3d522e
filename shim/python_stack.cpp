// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Walks the calling thread's Python frames.
#include "python_stack.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "python_layout.hpp"
#include "resolve.hpp"

namespace hostwait::python {

namespace {

struct interpreter {
  const layout* shape;
  void* (*this_thread_state)();
  int (*is_initialized)();
  const void* code_type;
};

// Written once by whoever finds the interpreter first; the four words are published by `found`.
interpreter the_interpreter;
std::atomic<int> found{0};  // 0 not looked yet, 1 found, 2 not usable
std::atomic<bool> looking{false};
std::atomic<std::uint32_t> looked_at_generation{0xffffffff};
std::atomic<const char*> the_note{""};

template <class T>
T load(std::uintptr_t base, std::size_t offset) noexcept {
  T value;
  std::memcpy(&value, reinterpret_cast<const void*>(base + offset), sizeof value);
  return value;
}

using look_up_function = void* (*)(void*, const char*);

// Global scope: the executable (static interpreter) and its libraries (libpython), or what was
// opened with RTLD_GLOBAL.
void look() noexcept {
  const auto look_up = reinterpret_cast<look_up_function>(resolve::libc_symbol("dlsym"));
  if (look_up == nullptr) return;
  void* state = look_up(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
  if (state == nullptr) return;
  interpreter it{};
  std::memcpy(&it.this_thread_state, &state, sizeof state);
  void* initialized = look_up(RTLD_DEFAULT, "Py_IsInitialized");
  std::memcpy(&it.is_initialized, &initialized, sizeof initialized);
  it.code_type = look_up(RTLD_DEFAULT, "PyCode_Type");
  const void* version_at = look_up(RTLD_DEFAULT, "Py_Version");  // 3.11 and later
  // A free-threaded build (3.13t) has other object headers.
  const bool free_threaded = look_up(RTLD_DEFAULT, "_Py_MergeZeroLocalRefcount") != nullptr;
  unsigned long version = 0;
  if (version_at != nullptr) std::memcpy(&version, version_at, sizeof version);
  for (const layout& shape : layouts)
    if (shape.version == version >> 16) it.shape = &shape;
  if (it.shape == nullptr || it.code_type == nullptr || it.is_initialized == nullptr ||
      free_threaded) {
    the_note.store(free_threaded ? "Python is a free-threaded build: native stacks only"
                                 : "Python's version is not known to hostwait: native stacks only",
                   std::memory_order_relaxed);
    found.store(2, std::memory_order_release);
    return;
  }
  the_interpreter = it;
  found.store(1, std::memory_order_release);
}

const interpreter* get() noexcept {
  const int state = found.load(std::memory_order_acquire);
  if (state == 1) return &the_interpreter;
  if (state == 2) return nullptr;
  const std::uint32_t generation = resolve::loader_generation();
  if (looked_at_generation.load(std::memory_order_relaxed) == generation) return nullptr;
  if (looking.exchange(true, std::memory_order_acquire)) return nullptr;
  looked_at_generation.store(generation, std::memory_order_relaxed);
  if (found.load(std::memory_order_acquire) == 0) look();
  looking.store(false, std::memory_order_release);
  return found.load(std::memory_order_acquire) == 1 ? &the_interpreter : nullptr;
}

// Copies a str object as UTF-8, whole characters only. Compact forms are the only ones that code
// objects hold.
void copy_text(const layout& shape, std::uintptr_t object, char* out, std::size_t room) noexcept {
  out[0] = '\0';
  if (object == 0) return;
  const auto length = load<std::int64_t>(object, shape.unicode_length);
  const auto state = load<std::uint32_t>(object, shape.unicode_state) >> shape.unicode_kind_bit;
  const unsigned kind = state & 7;
  const bool compact = (state & 8) != 0, ascii = (state & 16) != 0;
  if (!compact || length < 0) return;
  const std::uintptr_t data = object + (ascii ? shape.ascii_data : shape.compact_data);
  std::size_t used = 0;
  for (std::int64_t i = 0; i < length; ++i) {
    std::uint32_t c = 0;
    if (kind == 1)
      c = load<std::uint8_t>(data, i);
    else if (kind == 2)
      c = load<std::uint16_t>(data, i * 2);
    else if (kind == 4)
      c = load<std::uint32_t>(data, i * 4);
    const std::size_t need = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (used + need + 1 > room) break;
    if (need == 1) {
      out[used++] = static_cast<char>(c);
    } else {
      constexpr unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
      out[used++] = static_cast<char>(lead[need] | (c >> (6 * (need - 1))));
      for (std::size_t k = need - 1; k > 0; --k)
        out[used++] = static_cast<char>(0x80 | ((c >> (6 * (k - 1))) & 63));
    }
  }
  out[used] = '\0';
}

}  // namespace

unsigned capture(raw_frame* out, unsigned limit) noexcept {
  const interpreter* it = get();
  // Finalization destroys the key that the thread state is found by, and sets "initialized" back
  // before it does.
  if (it == nullptr || it->is_initialized() == 0) return 0;
  const auto state = reinterpret_cast<std::uintptr_t>(it->this_thread_state());
  if (state == 0) return 0;
  const layout& shape = *it->shape;
  auto frame = load<std::uintptr_t>(state, shape.state_frame);
  if (shape.behind_c_frame && frame != 0)
    frame = load<std::uintptr_t>(frame, shape.c_frame_current);
  unsigned n = 0;
  while (frame != 0 && n < limit) {
    const auto code = load<std::uintptr_t>(frame, shape.frame_code);
    const bool foreign = load<unsigned char>(frame, shape.frame_owner) == owned_by_c_stack;
    if (!foreign && code != 0) {
      // A layout that is not what it should be shows here, before anything is believed.
      if (load<const void*>(code, 8) != it->code_type) break;
      out[n++] = {code, load<std::uintptr_t>(frame, shape.frame_instruction),
                  load<std::uintptr_t>(code, shape.code_qualname),
                  load<std::uintptr_t>(code, shape.code_line_table)};
    }
    frame = load<std::uintptr_t>(frame, shape.frame_previous);
  }
  return n;
}

void describe(const raw_frame& frame, frame_text& out) noexcept {
  out = {};
  const interpreter* it = get();
  if (it == nullptr) return;
  const layout& shape = *it->shape;
  copy_text(shape, load<std::uintptr_t>(frame.code, shape.code_filename), out.file,
            sizeof out.file);
  copy_text(shape, frame.name, out.qualname, sizeof out.qualname);
  out.first_line = load<std::uint32_t>(frame.code, shape.code_first_line);
  const auto bytes = load<std::int64_t>(frame.line_table, shape.bytes_length);
  const std::uintptr_t begin = frame.code + shape.code_bytes;
  if (bytes <= 0 || frame.instruction < begin) {
    out.line = out.first_line;  // the frame has not begun to run
    return;
  }
  out.line = line_at(reinterpret_cast<const unsigned char*>(frame.line_table + shape.bytes_data),
                     static_cast<std::size_t>(bytes), out.first_line, frame.instruction - begin);
}

const char* note() noexcept {
  return the_note.load(std::memory_order_relaxed);
}

}  // namespace hostwait::python
