// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Walks the calling thread's Python frames.
#include "python_stack.hpp"

#include <atomic>
#include <cstring>

#include "python_layout.hpp"
#include "record.hpp"
#include "resolve.hpp"
#include "resolve_elf.hpp"
#include "shortly.hpp"
#include "utf8.hpp"

namespace hostwait::python {

namespace {

struct interpreter {
  layout shape;
  void* (*this_thread_state)();
  int (*is_initialized)();
  const void* code_type;
};

// Written once by whoever finds the interpreter first, and published by `found`.
interpreter the_interpreter;
char note_room[128];
std::atomic<int> found{0};  // 0 not looked yet, 1 found, 2 not usable
// Who looks: the number of its process's record, so that a child that was forked amid the parent's
// look does not wait for it. 0: nobody.
std::atomic<std::uint32_t> looking{0};
std::atomic<std::uint32_t> looked_at_generation{0xffffffff};
std::atomic<const char*> the_note{""};

template <class T>
T load(std::uintptr_t base, std::size_t offset) noexcept {
  T value;
  std::memcpy(&value, reinterpret_cast<const void*>(base + offset), sizeof value);
  return value;
}

// In the executable (static interpreter), in libpython, or in a libpython that was opened with
// RTLD_LOCAL. By our own look-up: dlsym waits for a thread that is inside dlopen.
struct symbols {
  const void *thread_state = nullptr, *initialized = nullptr, *code_type = nullptr;
  const void *version = nullptr, *runtime = nullptr, *free_threaded = nullptr;
};

bool find_symbols(symbols& out) noexcept {
  namespace elf = resolve::elf;
  return elf::for_each_module([&](const elf::module& in) noexcept -> bool {
    elf::image image;
    if (!elf::open(in.bias, in.dynamic, image)) return false;
    const auto at = [&](const char* name) noexcept -> const void* {
      const auto* symbol = elf::find(image, name);
      return symbol != nullptr ? elf::address(image, *symbol) : nullptr;
    };
    out.thread_state = at("PyGILState_GetThisThreadState");
    if (out.thread_state == nullptr) return false;
    out.initialized = at("Py_IsInitialized");
    out.code_type = at("PyCode_Type");
    out.version = at("Py_Version");  // 3.11 and later
    out.runtime = at("_PyRuntime");
    out.free_threaded = at("_Py_MergeZeroLocalRefcount");
    return true;
  });
}

void look() noexcept {
  symbols has;
  if (!find_symbols(has)) return;
  interpreter it{};
  std::memcpy(&it.this_thread_state, &has.thread_state, sizeof has.thread_state);
  std::memcpy(&it.is_initialized, &has.initialized, sizeof has.initialized);
  it.code_type = has.code_type;
  unsigned long version = 0;
  if (has.version != nullptr) std::memcpy(&version, has.version, sizeof version);
  verdict_on_build verdict{false, "CPython before 3.11: findings bear native stacks only"};
  if (has.version != nullptr)
    verdict = choose_layout(version, static_cast<const published*>(has.runtime),
                            has.free_threaded != nullptr, it.shape, note_room);
  the_note.store(verdict.note, std::memory_order_relaxed);
  if (!verdict.usable || it.code_type == nullptr || it.is_initialized == nullptr) {
    found.store(2, std::memory_order_release);
    return;
  }
  the_interpreter = it;
  found.store(1, std::memory_order_release);
}

enum class answer { found, absent, not_yet };

// Each change of the loader's list is looked through once, by whoever comes first.
answer find() noexcept {
  const auto known = [](std::uint32_t generation) noexcept {
    return found.load(std::memory_order_acquire) != 0 ||
           looked_at_generation.load(std::memory_order_acquire) == generation;
  };
  const std::uint32_t generation = resolve::loader_generation();
  if (!known(generation)) {
    const std::uint32_t self = record::epoch();
    if (self == 0) return answer::absent;             // nothing is recorded
    const std::uint64_t mask = sys::block_signals();  // a handler could leave by longjmp
    bool mine = false;
    const bool over = shortly([&]() noexcept {
      std::uint32_t other = looking.load(std::memory_order_relaxed);
      mine =
          other != self && looking.compare_exchange_strong(other, self, std::memory_order_acquire);
      return mine || known(generation);
    });
    if (mine) {
      if (!known(generation)) look();
      looked_at_generation.store(generation, std::memory_order_release);
      looking.store(0, std::memory_order_release);
    }
    sys::restore_signals(mask);
    if (!over) return answer::not_yet;
  }
  return found.load(std::memory_order_acquire) == 1 ? answer::found : answer::absent;
}

// Two chains side by side: a location table of 200 bytes takes some 20 ns.
std::uint64_t hash_of(std::uintptr_t data, std::size_t bytes, std::uint64_t hash) noexcept {
  std::uint64_t a = hash ^ bytes, b = 0x9e3779b97f4a7c15u;
  std::size_t i = 0;
  for (; i + 16 <= bytes; i += 16) {
    a = (a ^ load<std::uint64_t>(data, i)) * 0xff51afd7ed558ccdu;
    b = (b ^ load<std::uint64_t>(data, i + 8)) * 0xc4ceb9fe1a85ec53u;
    a ^= a >> 31;
    b ^= b >> 29;
  }
  for (; i < bytes; ++i) a = (a ^ load<std::uint8_t>(data, i)) * 0x100000001b3u;
  return mix(a, b);
}

struct text_object {
  std::uintptr_t data;
  std::size_t length;
  unsigned kind;  // bytes a character: 1, 2 or 4; 0: not a form that code objects hold
};

text_object text_at(const layout& shape, std::uintptr_t object) noexcept {
  if (object == 0) return {};
  const auto length = load<std::int64_t>(object, shape.unicode_length);
  const auto state = load<std::uint32_t>(object, shape.unicode_state) >> shape.unicode_kind_bit;
  const bool compact = (state & 8) != 0, ascii = (state & 16) != 0;
  if (!compact || length < 0) return {};
  return {object + (ascii ? shape.ascii_data : shape.compact_data),
          static_cast<std::size_t>(length), state & 7};
}

constexpr std::size_t text_hash = 24;  // of PyASCIIObject, in every version; -1: not made yet

std::uint64_t identity_of(const layout& shape, std::uintptr_t code) noexcept {
  const std::uint64_t first_line = load<std::uint32_t>(code, shape.code_first_line);
  if (shape.code_version != 0) {
    // 0 after 2^32 code objects.
    if (const auto version = load<std::uint32_t>(code, shape.code_version); version != 0)
      return first_line << 32 | version;
  }
  std::uint64_t hash = first_line;
  for (const std::uint16_t member : {shape.code_filename, shape.code_qualname}) {
    const auto object = load<std::uintptr_t>(code, member);
    // The interpreter's own hash of the characters, where it has made one.
    if (const auto known = object != 0 ? load<std::uint64_t>(object, text_hash) : ~0ull;
        known != ~0ull) {
      hash = mix(hash, known);
      continue;
    }
    const text_object text = text_at(shape, object);
    hash = hash_of(text.data, text.length * text.kind, hash);
  }
  const auto table = load<std::uintptr_t>(code, shape.code_line_table);
  const auto bytes = load<std::int64_t>(table, shape.bytes_length);
  return hash_of(table + shape.bytes_data, bytes > 0 ? static_cast<std::size_t>(bytes) : 0, hash);
}

// Copies a str object as UTF-8, whole characters only.
void copy_text(const layout& shape, std::uintptr_t object, char* out, std::size_t room) noexcept {
  const text_object text = text_at(shape, object);
  std::size_t used = 0;
  out[0] = '\0';
  for (std::size_t i = 0; i < text.length; ++i) {
    std::uint32_t c = 0;
    if (text.kind == 1)
      c = load<std::uint8_t>(text.data, i);
    else if (text.kind == 2)
      c = load<std::uint16_t>(text.data, i * 2);
    else if (text.kind == 4)
      c = load<std::uint32_t>(text.data, i * 4);
    if (!append_utf8(out, room, used, c)) return;
  }
}

}  // namespace

unsigned capture(raw_frame* out, unsigned limit) noexcept {
  const answer here = find();
  if (here == answer::not_yet) return not_found_yet;
  const interpreter* it = &the_interpreter;
  // Finalization destroys the key that the thread state is found by, and sets "initialized" back
  // before it does.
  if (here == answer::absent || it->is_initialized() == 0) return 0;
  const auto state = reinterpret_cast<std::uintptr_t>(it->this_thread_state());
  if (state == 0) return 0;
  const layout& shape = it->shape;
  auto frame = load<std::uintptr_t>(state, shape.state_frame);
  if (shape.behind_c_frame && frame != 0)
    frame = load<std::uintptr_t>(frame, shape.c_frame_current);
  unsigned n = 0;
  while (frame != 0 && n < limit) {
    const auto code = load<std::uintptr_t>(frame, shape.frame_code) &
                      ~static_cast<std::uintptr_t>(shape.code_tag_bits);
    const bool foreign = load<unsigned char>(frame, shape.frame_owner) >= first_foreign_owner;
    if (!foreign && code != 0) {
      // A layout that is not what it should be (a debug build with longer object heads) shows
      // here, before anything is believed.
      if (load<const void*>(code, 8) != it->code_type) {
        the_note.store(
            "CPython's structures are not laid out as in its release builds: "
            "findings bear native stacks only",
            std::memory_order_relaxed);
        return 0;
      }
      out[n++] = {code, load<std::uintptr_t>(frame, shape.frame_instruction),
                  identity_of(shape, code)};
    }
    frame = load<std::uintptr_t>(frame, shape.frame_previous);
  }
  return n;
}

// Of a frame that capture() gave.
void describe(const raw_frame& frame, frame_text& out) noexcept {
  out = {};
  const layout& shape = the_interpreter.shape;
  copy_text(shape, load<std::uintptr_t>(frame.code, shape.code_filename), out.file,
            sizeof out.file);
  copy_text(shape, load<std::uintptr_t>(frame.code, shape.code_qualname), out.qualname,
            sizeof out.qualname);
  out.first_line = load<std::uint32_t>(frame.code, shape.code_first_line);
  const auto table = load<std::uintptr_t>(frame.code, shape.code_line_table);
  const auto bytes = load<std::int64_t>(table, shape.bytes_length);
  const std::uintptr_t begin = frame.code + shape.code_bytes;
  if (bytes <= 0 || frame.instruction < begin) {
    out.line = out.first_line;  // the frame has not begun to run
    return;
  }
  out.line = line_at(reinterpret_cast<const unsigned char*>(table + shape.bytes_data),
                     static_cast<std::size_t>(bytes), out.first_line, frame.instruction - begin);
}

const char* note() noexcept {
  return the_note.load(std::memory_order_relaxed);
}

}  // namespace hostwait::python
