// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Reads records (format: include/hostwait/record.h), also live, cut or hostile ones.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hostwait/record.h"

namespace hostwait {

// Why a record could not be read: one line for the user.
struct read_error {
  std::string file;
  std::string place;   // "header", "section sites", …; may be empty
  std::string what;    // the fault
  std::string remedy;  // what to do about it
  std::string line() const;
};

// Text in a room of fixed size, which need not end with a zero.
template <std::size_t size>
std::string fixed_text(const char (&text)[size]) {
  return std::string(text, strnlen(text, size));
}

// A copy of one record, checked: no accessor reads outside it, whatever the file says. Structural
// faults (magic, major version, extents outside the file) are errors of load() and parse(). A
// reference out of range inside an entry gives an empty value instead, because the entries of a
// live file may be newer than the copied header.
class record_file {
 public:
  static std::optional<record_file> load(const std::string& path, read_error& error);
  static std::optional<record_file> parse(std::span<const std::byte> bytes, const std::string& name,
                                          read_error& error);

  // The run id alone, without reading the rest; nothing where the file is no record.
  static std::optional<std::string> peek_run_id(const std::string& path);

  const std::string& path() const { return path_; }
  const hostwait_record_header& header() const { return header_; }
  bool has(hostwait_record_flag flag) const { return (header_.flags & flag) != 0; }
  bool sealed() const { return header_.state == HOSTWAIT_RECORD_SEALED; }
  std::string run_id() const { return fixed_text(header_.run_id); }
  std::string driver_text() const { return fixed_text(header_.driver_text); }
  std::string routes() const { return fixed_text(header_.routes); }
  std::string why_blind() const { return fixed_text(header_.why_blind); }
  std::string program() const { return std::string(string(header_.program)); }

  // Entries of a section that are there.
  std::uint64_t count(hostwait_record_section section) const;

  // Calls visit(index) for every entry of a section. Use this, not 0..n: indices follow the
  // extents' capacities, which a hostile file can make as large as it likes.
  template <class visitor>
  void for_each(hostwait_record_section section, visitor visit) const {
    for (const extent& each : sections_[section]) {
      for (std::uint32_t i = 0; i < each.count; ++i) {
        const std::uint64_t index = each.first + i;
        if (index < 0xffffffffu) visit(static_cast<std::uint32_t>(index));
      }
    }
  }

  hostwait_record_call call(std::uint32_t i) const;
  hostwait_record_site site(std::uint32_t i) const;
  hostwait_record_thread thread(std::uint32_t i) const;
  hostwait_record_frame frame(std::uint32_t i) const;
  hostwait_record_python_code python_code(std::uint32_t i) const;
  hostwait_record_module module(std::uint32_t i) const;
  hostwait_record_counters counters(std::uint32_t i) const;
  hostwait_record_histogram histogram(std::uint32_t i) const;
  hostwait_record_range range(std::uint32_t i) const;
  hostwait_record_capture capture(std::uint32_t i) const;
  hostwait_record_holder holder(std::uint32_t i) const;
  bool has_entry(hostwait_record_section section, std::uint32_t i) const;

  // The string at a reference; empty when it is out of range. At most max_string bytes.
  std::string_view string(std::uint32_t reference) const;

  // Frames from `innermost` outward; ends at the root, at a reference that does not point back, or
  // after max_depth frames.
  std::vector<hostwait_record_frame> stack(std::uint32_t innermost) const;

  // Where the control entry lies in the file; 0 when there is none.
  std::uint64_t control_offset() const { return control_offset_; }

  static constexpr std::size_t max_string = 4096;
  static constexpr std::size_t max_depth = 1024;

 private:
  struct extent {
    std::uint64_t first;  // index of its first entry
    std::uint32_t entry_size, count;
    std::vector<std::byte> bytes;
  };
  static constexpr std::size_t section_slots = HOSTWAIT_SECTION_HOLDERS + 1;

  template <class source>
  static std::optional<record_file> read(const source& from, const std::string& name,
                                         read_error& error);

  const extent* find(hostwait_record_section section, std::uint32_t index) const;

  template <class entry>
  entry get(hostwait_record_section section, std::uint32_t index) const {
    entry result{};
    if (const extent* in = find(section, index)) {
      std::memcpy(&result, in->bytes.data() + (index - in->first) * in->entry_size,
                  std::min<std::size_t>(sizeof result, in->entry_size));
    }
    return result;
  }

  std::string path_;
  hostwait_record_header header_{};
  std::array<std::vector<extent>, section_slots> sections_;
  std::uint64_t control_offset_ = 0;
};

const char* kind_name(std::uint32_t kind);
const char* verdict_name(std::uint32_t verdict);
const char* reason_name(std::uint32_t reason);
const char* section_name(std::uint32_t id);

}  // namespace hostwait
