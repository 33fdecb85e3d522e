// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Interned values of the record: texts, calls, ranges, Python code and the prefix tree of frames.
#include <cstring>

#include "record.hpp"
#include "record_store.hpp"

namespace hostwait::record {

namespace {

// Those marked true are read without the lock on every call that has such a value.
constinit number_table texts_{true}, ranges_{true}, codes_{true}, python_frames_{true};
constinit number_table native_frames_{false};

constinit std::atomic<std::uint16_t> calls_[row_count]{};  // index + 1

constexpr std::size_t max_text = 4095;  // longer ones are cut

std::uint32_t full() noexcept {
  mark(HOSTWAIT_RECORD_FULL);
  return 0;
}

// One more entry of a section under `hash`, filled by `fill`. absent: no room.
template <class Entry, class Fill>
std::uint32_t add(unsigned id, number_table& table, std::uint64_t hash, Fill fill) noexcept {
  if (!table.reserve()) return number_table::absent;
  auto* entry = static_cast<Entry*>(sections_.next(id));
  if (entry == nullptr) return number_table::absent;
  fill(*entry);
  std::uint32_t number = sections_.publish_next(id);
  table.insert(hash, number);
  return number;
}

std::uint64_t hash_of_text(const char* text, std::size_t size) noexcept {
  return hash_of(text, size);
}

std::size_t size_of(const char* text) noexcept {
  std::size_t size = 0;
  while (size < max_text && text[size] != '\0') ++size;
  return size;
}

number_table& frames_of(std::uint32_t module) noexcept {
  return module == HOSTWAIT_FRAME_PYTHON ? python_frames_ : native_frames_;
}

}  // namespace

std::uint32_t text_number(const char* text, std::size_t size) noexcept {
  if (size == 0) return 0;
  if (size > max_text) size = max_text;
  std::uint64_t hash = hash_of_text(text, size);
  std::uint32_t known = texts_.find(hash);
  if (known != number_table::absent) return known;
  if (!texts_.reserve()) return full();
  auto bytes = static_cast<std::uint32_t>(size + 1);
  char* at = sections_.next_text(bytes);
  if (at == nullptr) return full();
  std::memcpy(at, text, size);  // the terminator is there: the room is zeroed
  std::uint32_t number = sections_.publish_text(bytes);
  texts_.insert(hash, number);
  return number;
}

std::uint32_t known_frame(std::uint32_t parent, std::uint64_t where,
                          std::uint32_t module) noexcept {
  return frames_of(module).find(hash_of(parent, where, module));
}

std::uint32_t frame_number(std::uint32_t parent, std::uint64_t where,
                           std::uint32_t module) noexcept {
  std::uint64_t hash = hash_of(parent, where, module);
  std::uint32_t known = frames_of(module).find(hash);
  if (known != number_table::absent) return known;
  std::uint32_t number = add<hostwait_record_frame>(HOSTWAIT_SECTION_FRAMES, frames_of(module),
                                                    hash, [&](hostwait_record_frame& frame) {
                                                      frame.where = where;
                                                      frame.parent = parent;
                                                      frame.module = module;
                                                    });
  if (number != number_table::absent) return number;
  full();
  return parent;  // the outer part of the stack is better than none
}

std::uint32_t known_call(row_id row) noexcept {
  return calls_[row].load(std::memory_order_acquire);
}

std::uint32_t call_number(row_id row) noexcept {
  std::uint32_t known = known_call(row);
  if (known != 0) return known;
  const char* symbol = rows[row].symbol;
  auto* call = static_cast<hostwait_record_call*>(sections_.next(HOSTWAIT_SECTION_CALLS));
  if (call == nullptr) return full();
  call->name = text_number(symbol, std::strlen(symbol));
  call->kind = static_cast<std::uint16_t>(rows[row].kind);
  call->row = row;
  std::uint32_t number = sections_.publish_next(HOSTWAIT_SECTION_CALLS) + 1;
  calls_[row].store(static_cast<std::uint16_t>(number), std::memory_order_release);
  return number;
}

std::uint32_t intern_string(const char* text) noexcept {
  if (text == nullptr || *text == '\0' || !alive()) return 0;
  std::size_t size = size_of(text);
  std::uint32_t known = texts_.find(hash_of_text(text, size));
  if (known != number_table::absent) return known;
  slow_path inside(page());
  return inside ? text_number(text, size) : 0;
}

std::uint32_t intern_range(const char* path) noexcept {
  if (path == nullptr || *path == '\0' || !alive()) return 0;
  std::uint64_t hash = hash_of_text(path, size_of(path));
  std::uint32_t known = ranges_.find(hash);
  if (known != number_table::absent) return known + 1;
  slow_path inside(page());
  if (!inside) return not_now;
  known = ranges_.find(hash);
  if (known != number_table::absent) return known + 1;
  std::uint32_t text = text_number(path, size_of(path));
  std::uint32_t number =
      add<hostwait_record_range>(HOSTWAIT_SECTION_RANGES, ranges_, hash,
                                 [&](hostwait_record_range& range) { range.path = text; });
  return number == number_table::absent ? full() : number + 1;
}

std::uint32_t intern_python_code(const char* file, const char* qualname,
                                 std::uint32_t first_line) noexcept {
  if (!alive()) return 0;
  if (file == nullptr) file = "";
  if (qualname == nullptr) qualname = "";
  std::uint64_t hash = hash_of(hash_of_text(file, size_of(file)),
                               hash_of_text(qualname, size_of(qualname)), first_line);
  std::uint32_t known = codes_.find(hash);
  if (known != number_table::absent) return known;
  slow_path inside(page());
  if (!inside) return not_now;
  known = codes_.find(hash);
  if (known != number_table::absent) return known;
  std::uint32_t file_text = text_number(file, size_of(file));
  std::uint32_t name_text = text_number(qualname, size_of(qualname));
  std::uint32_t number = add<hostwait_record_python_code>(
      HOSTWAIT_SECTION_PYTHON_CODE, codes_, hash, [&](hostwait_record_python_code& code) {
        code.file = file_text;
        code.qualname = name_text;
        code.first_line = first_line;
      });
  return number == number_table::absent ? full() : number;
}

std::uint32_t intern_python(std::uint32_t parent, std::uint32_t code, std::uint32_t line) noexcept {
  if (!alive()) return 0;
  std::uint64_t where = std::uint64_t{code} << 32 | line;
  std::uint32_t known = known_frame(parent, where, HOSTWAIT_FRAME_PYTHON);
  if (known != number_table::absent) return known;
  slow_path inside(page());
  return inside ? frame_number(parent, where, HOSTWAIT_FRAME_PYTHON) : not_now;
}

void mark(std::uint32_t flags) noexcept {
  std::atomic_ref<std::uint32_t>(sections_.header()->flags)
      .fetch_or(flags, std::memory_order_relaxed);
}

void forget_interned() noexcept {
  texts_.forget();
  ranges_.forget();
  codes_.forget();
  python_frames_.forget();
  native_frames_.forget();
  for (auto& call : calls_) call.store(0, std::memory_order_relaxed);
}

}  // namespace hostwait::record
