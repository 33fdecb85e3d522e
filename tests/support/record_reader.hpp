// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A small reader of records for tests, written from include/hostwait/record.h alone: the tools'
// reader is tested elsewhere.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "hostwait/record.h"

namespace hostwait::test {

class record_reader {
 public:
  explicit record_reader(const std::filesystem::path& path) {
    // A live file may grow between its size and its header.
    for (int attempt = 0; !read(path) && attempt < 100; ++attempt) {
    }
  }

  template <class Entry>
  std::vector<Entry> all(std::uint32_t id) const {
    std::vector<Entry> out;
    for (std::uint32_t i = 0; i < header.extent_count; ++i) {
      const hostwait_record_extent& e = header.extents[i];
      if (e.id != id) continue;
      if (!inside(e)) throw std::runtime_error("extent outside the file");
      for (std::uint32_t n = 0; n < e.count; ++n) {
        Entry entry{};
        std::memcpy(&entry, bytes_.data() + e.offset + std::uint64_t{n} * e.entry_size,
                    e.entry_size < sizeof entry ? e.entry_size : sizeof entry);
        out.push_back(entry);
      }
    }
    return out;
  }
  std::vector<hostwait_record_site> sites() const {
    return all<hostwait_record_site>(HOSTWAIT_SECTION_SITES);
  }
  std::vector<hostwait_record_counters> counters() const {
    return all<hostwait_record_counters>(HOSTWAIT_SECTION_COUNTERS);
  }
  std::vector<hostwait_record_thread> threads() const {
    return all<hostwait_record_thread>(HOSTWAIT_SECTION_THREADS);
  }
  std::vector<hostwait_record_frame> frames() const {
    return all<hostwait_record_frame>(HOSTWAIT_SECTION_FRAMES);
  }
  std::vector<hostwait_record_module> modules() const {
    return all<hostwait_record_module>(HOSTWAIT_SECTION_MODULES);
  }
  std::string text(std::uint32_t at) const {
    std::vector<char> chars = all<char>(HOSTWAIT_SECTION_STRINGS);
    if (at >= chars.size()) throw std::runtime_error("text outside its section");
    return std::string(&chars[at]);
  }
  std::uint64_t calls() const {
    std::uint64_t sum = 0;
    for (const auto& c : counters()) sum += c.calls;
    return sum;
  }
  // Calls by site, over all threads.
  std::map<std::uint32_t, std::uint64_t> calls_by_site() const {
    std::map<std::uint32_t, std::uint64_t> sums;
    for (const auto& c : counters())
      if (c.site != HOSTWAIT_COUNTERS_FREE) sums[c.site] += c.calls;
    return sums;
  }
  // Addresses of a stack, innermost first.
  std::vector<std::uint64_t> stack(std::uint32_t frame) const {
    std::vector<hostwait_record_frame> all_frames = frames();
    std::vector<std::uint64_t> out;
    for (; frame != 0; frame = all_frames.at(frame).parent) {
      if (all_frames.at(frame).parent >= frame) throw std::runtime_error("frames in a circle");
      out.push_back(all_frames.at(frame).where);
    }
    return out;
  }
  std::uint64_t file_bytes() const { return bytes_.size(); }
  // Without the room for further entries.
  std::uint64_t used_bytes() const {
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < header.extent_count; ++i)
      bytes += std::uint64_t{header.extents[i].count} * header.extents[i].entry_size;
    return bytes;
  }

  hostwait_record_header header;

 private:
  bool read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.resize(std::filesystem::file_size(path));
    file.read(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
    bytes_.resize(static_cast<std::size_t>(file.gcount()));
    if (bytes_.size() < sizeof header) throw std::runtime_error("too short: " + path.string());
    std::memcpy(&header, bytes_.data(), sizeof header);
    if (std::memcmp(header.magic, HOSTWAIT_RECORD_MAGIC, 8) != 0)
      throw std::runtime_error("no magic: " + path.string());
    if (header.extent_count > HOSTWAIT_RECORD_MAX_EXTENTS) throw std::runtime_error("extents");
    for (std::uint32_t i = 0; i < header.extent_count; ++i)
      if (!inside(header.extents[i])) return false;
    return true;
  }
  bool inside(const hostwait_record_extent& e) const {
    return e.offset % 64 == 0 && e.count <= e.capacity &&
           e.offset + std::uint64_t{e.capacity} * e.entry_size <= bytes_.size();
  }

  std::vector<char> bytes_;
};

inline std::vector<std::filesystem::path> records_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == HOSTWAIT_RECORD_SUFFIX) out.push_back(entry.path());
  return out;
}

// The one record of a process in a folder.
inline std::filesystem::path record_of(const std::filesystem::path& folder, long pid) {
  for (const auto& path : records_in(folder))
    if (record_reader(path).header.pid == static_cast<std::uint32_t>(pid)) return path;
  throw std::runtime_error("no record of process " + std::to_string(pid));
}

}  // namespace hostwait::test
