// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The offsets that CPython publishes for debuggers, and what follows from an interpreter's version.
#include <cstring>

#include "python_layout.hpp"

namespace hostwait::python {

namespace {

// Where the structures of interest begin among the published words, per version. Inside each the
// order did not change between the two; new members were added at the ends.
struct index {
  std::uint32_t version;
  unsigned thread_state, interpreter_frame, code_object, object, bytes, unicode;
};
constexpr index indices[] = {
    {0x30d, 16, 25, 31, 41, 61, 64},
    {0x30e, 19, 28, 36, 47, 71, 74},
};

struct reader {
  const std::uint64_t* words;
  bool good = true;

  // Word `which` of the structure at `begin`; word 0 is its size, and no offset reaches beyond it.
  std::uint16_t offset(unsigned begin, unsigned which) noexcept {
    const std::uint64_t value = words[begin + which];
    if (value >= words[begin] || value > 0xffff) good = false;
    return static_cast<std::uint16_t>(value);
  }
  void must(unsigned begin, unsigned which, std::uint64_t value) noexcept {
    if (words[begin + which] != value) good = false;
  }
};

void append(char (&room)[128], const char* text) noexcept {
  const std::size_t used = std::strlen(room);
  std::strncat(room, text, sizeof room - 1 - used);
}

void append_number(char (&room)[128], unsigned number) noexcept {
  char digits[4] = {};
  unsigned n = 0;
  if (number >= 100) digits[n++] = static_cast<char>('0' + number / 100 % 10);
  if (number >= 10) digits[n++] = static_cast<char>('0' + number / 10 % 10);
  digits[n] = static_cast<char>('0' + number % 10);
  append(room, digits);
}

}  // namespace

bool published_layout(const published& from, std::uint32_t version, layout& out) noexcept {
  if (std::memcmp(from.cookie, "xdebugpy", 8) != 0 || from.version >> 16 != version) return false;
  const index* at = nullptr;
  for (const index& each : indices)
    if (each.version == version) at = &each;
  if (at == nullptr) return false;
  reader in{from.words};
  out = {};
  out.version = version;
  out.state_frame = in.offset(at->thread_state, 4);
  out.frame_previous = in.offset(at->interpreter_frame, 1);
  out.frame_code = in.offset(at->interpreter_frame, 2);
  out.frame_instruction = in.offset(at->interpreter_frame, 3);
  out.frame_owner = in.offset(at->interpreter_frame, 5);
  out.code_filename = in.offset(at->code_object, 1);
  out.code_qualname = in.offset(at->code_object, 3);
  out.code_line_table = in.offset(at->code_object, 4);
  out.code_first_line = in.offset(at->code_object, 5);
  out.code_bytes = in.offset(at->code_object, 9);
  out.bytes_length = in.offset(at->bytes, 1);
  out.bytes_data = in.offset(at->bytes, 2);
  out.unicode_state = in.offset(at->unicode, 1);
  out.unicode_length = in.offset(at->unicode, 2);
  out.ascii_data = static_cast<std::uint16_t>(in.words[at->unicode + 3]);
  // Not published: two more words stand before the characters of a string beyond ASCII, and two
  // bits before its kind.
  out.compact_data = static_cast<std::uint16_t>(out.ascii_data + 16);
  out.unicode_kind_bit = 2;
  out.code_tag_bits = version >= 0x30e ? 3 : 0;
  // The same in every build with a global lock so far: a shift of the words shows here.
  in.must(at->object, 0, 16);
  in.must(at->object, 1, 8);
  in.must(at->bytes, 1, 16);
  in.must(at->bytes, 2, 32);
  in.must(at->unicode, 1, 32);
  in.must(at->unicode, 2, 16);
  in.must(at->unicode, 3, 40);
  return in.good;
}

verdict_on_build choose_layout(std::uint64_t version, const published* runtime,
                               bool free_threaded_symbols, layout& out,
                               char (&room)[128]) noexcept {
  const auto number = static_cast<std::uint32_t>(version >> 16);
  std::memset(room, 0, sizeof room);
  append(room, "CPython ");
  append_number(room, (number >> 8) & 0xff);
  append(room, ".");
  append_number(room, number & 0xff);
  const bool publishes =
      runtime != nullptr && number >= 0x30d && std::memcmp(runtime->cookie, "xdebugpy", 8) == 0;
  if (free_threaded_symbols || (publishes && runtime->free_threaded != 0)) {
    append(room, " without the GIL (free-threaded): findings bear native stacks only");
    return {false, room};
  }
  for (const layout& shape : layouts) {
    if (shape.version != number) continue;
    out = shape;
    return {true, ""};
  }
  if (number == 0x30e && publishes && published_layout(*runtime, number, out)) {
    append(room, " is read by the offsets that it publishes, which is untested");
    return {true, room};
  }
  append(room, " is not known to hostwait: findings bear native stacks only");
  return {false, room};
}

}  // namespace hostwait::python
