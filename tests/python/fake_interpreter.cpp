// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A program that exports what an interpreter exports and holds one made-up stack in CPython's
// structures, so that versions and builds that are not installed can be looked at: the layout of
// 3.14 by published offsets (which differ here from any real build), builds without the GIL,
// offsets that are not understood, objects with longer heads. Then it waits once.
#include <cstdint>
#include <cstring>
#include <string_view>

#include "hostwait/hostwait.h"
#include "support/driver.hpp"

namespace {

// Structures of the fake; offsets as they are published below.
struct object {
  std::uint64_t references = 1;
  const void* type = nullptr;
};
struct text {
  object head;
  std::int64_t length = 0;
  std::uint64_t hash = ~0ull;  // not made yet
  std::uint32_t state = 0, padding = 0;
  char ascii[64] = {};
};
struct wide_text {  // compact, beyond ASCII, two bytes a character
  object head;
  std::int64_t length = 0;
  std::uint64_t hash = ~0ull;  // not made yet
  std::uint32_t state = 0, padding = 0;
  std::uint64_t utf8_length = 0;
  const char* utf8 = nullptr;
  char16_t characters[32] = {};
};
struct bytes {
  object head;
  std::int64_t length = 0;
  std::uint64_t hash = ~0ull;  // not made yet
  unsigned char data[16] = {};
};
struct code {
  object head;
  std::uint32_t first_line = 0, padding = 0;
  const void* qualname = nullptr;
  std::uint64_t between[3] = {};
  const void* line_table = nullptr;
  const void* filename = nullptr;
  unsigned char instructions[32] = {};
};
struct frame {
  frame* previous = nullptr;
  std::uint64_t between = 0;
  std::uintptr_t executable = 0;  // tagged
  const void* instruction = nullptr;
  std::uint16_t return_offset = 0;
  char owner = 0;
};
struct thread_state {
  std::uint64_t between[5] = {};
  frame* current = nullptr;
};

thread_state state;
int initialized = 1;

void fill(text& into, const char* ascii) {
  into.length = static_cast<std::int64_t>(std::strlen(ascii));
  into.state = 1 << 2 | 1 << 5 | 1 << 6;  // kind 1, compact, ascii
  std::memcpy(into.ascii, ascii, static_cast<std::size_t>(into.length));
}

void fill(wide_text& into, std::u16string_view characters) {
  into.length = static_cast<std::int64_t>(characters.size());
  into.state = 2 << 2 | 1 << 5;  // kind 2, compact
  std::memcpy(into.characters, characters.data(), characters.size() * 2);
}

}  // namespace

extern "C" {
#define EXPORTED __attribute__((visibility("default")))
EXPORTED unsigned long Py_Version;
EXPORTED std::uint64_t _PyRuntime[128];
EXPORTED object PyCode_Type;
EXPORTED void* PyGILState_GetThisThreadState() {
  return &state;
}
EXPORTED int Py_IsInitialized() {
  return initialized;
}
}

namespace {

std::uint64_t* put(std::uint64_t* at, std::initializer_list<std::uint64_t> words) {
  for (const std::uint64_t word : words) *at++ = word;
  return at;
}

void publish(unsigned long version, bool free_threaded, bool shifted) {
  std::memcpy(_PyRuntime, "xdebugpy", 8);
  std::uint64_t* at = put(_PyRuntime + 1, {version, free_threaded ? 1u : 0u});
  at = put(at, {1000, 1, 2});                                              // runtime
  at = put(at, {900, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});  // interpreter
  if (shifted) at = put(at, {1});                                          // one member more
  at = put(at, {sizeof(thread_state), 0, 0, 0, offsetof(thread_state, current), 8, 16, 24, 32});
  at = put(at, {sizeof(frame), offsetof(frame, previous), offsetof(frame, executable),
                offsetof(frame, instruction), 0, offsetof(frame, owner), 0, 0});
  at = put(at, {sizeof(code), offsetof(code, filename), 0, offsetof(code, qualname),
                offsetof(code, line_table), offsetof(code, first_line), 0, 0, 0,
                offsetof(code, instructions), 0});
  at = put(at, {sizeof(object), offsetof(object, type)});
  at = put(at, {400, 24, 88, 168});                                     // type
  at = put(at, {32, 24, 16, 40, 24, 16, 200, 24, 32, 40, 48, 24, 32});  // tuple, list, set, dict
  at = put(at, {24, 16, 32, 16, 24});                                   // float, long
  at = put(at, {40, offsetof(bytes, length), offsetof(bytes, data)});
  put(at, {64, offsetof(text, state), offsetof(text, length), offsetof(text, ascii)});
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  static text file;
  static text outer_name;
  static wide_text inner_name;
  static bytes table;
  static code inner, outer;
  static frame frames[3];
  fill(file, "/x/made_up.py");
  fill(outer_name, "outer");
  fill(inner_name, u"Größe.länge→");
  // Two entries of four code units: line +4, then +2.
  const unsigned char entries[] = {0x80 | 13 << 3 | 3, 8, 0x80 | 13 << 3 | 3, 4};
  table.length = sizeof entries;
  std::memcpy(table.data, entries, sizeof entries);
  for (code* each : {&inner, &outer}) {
    each->head.type = &PyCode_Type;
    each->filename = &file;
    each->line_table = &table;
  }
  inner.qualname = &inner_name;
  inner.first_line = 10;
  outer.qualname = &outer_name;
  outer.first_line = 100;
  state.current = &frames[0];
  frames[0].executable = reinterpret_cast<std::uintptr_t>(&inner) | 1;
  frames[0].instruction = inner.instructions + 2;
  frames[0].previous = &frames[1];
  frames[1].executable = 1;  // the interpreter's own frame: no code
  frames[1].owner = 3;
  frames[1].previous = &frames[2];
  frames[2].executable = reinterpret_cast<std::uintptr_t>(&outer);
  frames[2].instruction = outer.instructions + 8;

  unsigned long version = 0x030e00f0;
  if (mode == "3.13t") version = 0x030d00f0;
  if (mode == "3.15") version = 0x030f00a1;
  if (mode == "3.10") version = 0x030a00f0;
  Py_Version = version;
  publish(version, mode == "3.14t" || mode == "3.13t", mode == "shifted");
  if (mode == "longer heads") inner.head.type = &inner;
  if (mode == "not started") initialized = 0;

  CUcontext context = nullptr;
  if (DRIVER(cuInit)(0) != CUDA_SUCCESS ||
      DRIVER(cuDevicePrimaryCtxRetain)(&context, 0) != CUDA_SUCCESS ||
      DRIVER(cuCtxSetCurrent)(context) != CUDA_SUCCESS)
    return 3;
  const int token = hostwait_push_label(HOSTWAIT_LOG, HOSTWAIT_SYNC, "made up");
  const CUresult result = DRIVER(cuCtxSynchronize)();
  hostwait_pop(token);
  return result == CUDA_SUCCESS ? 0 : 3;
}
