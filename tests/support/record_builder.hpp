// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Builds record files in memory for tests of their readers. Independent of the shim's writer, so
// that a mistake shared by writer and reader cannot hide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hostwait/record.h"

namespace hostwait::test {

struct counts {
  std::uint64_t calls = 0, waited = 0;
  std::uint32_t latent = 0, refused = 0, held = 0, violations = 0;
  std::uint64_t total_ns = 0, max_ns = 0, waited_ns = 0;
};

class record_builder {
 public:
  record_builder();

  hostwait_record_header header{};

  std::uint32_t string(std::string_view text);
  std::uint32_t call(std::string_view symbol, hostwait_kind_number kind);
  std::uint32_t module(std::string_view path, std::uint64_t start, std::uint64_t end,
                       std::uint64_t bias, std::uint32_t flags = 0);
  std::uint32_t frame(std::uint32_t parent, std::uint64_t where, std::uint32_t module);
  std::uint32_t python(std::uint32_t parent, std::string_view file, std::string_view function,
                       std::uint32_t line);
  std::uint32_t range(std::string_view path);  // the index plus one, as sites hold it
  std::uint32_t thread(std::uint32_t tid, std::string_view name);
  std::uint32_t site(const hostwait_record_site& site);
  void count(std::uint32_t thread, std::uint32_t site, const counts& what);

  // Any entry of any section, appended as it is; returns its index.
  template <class entry>
  std::uint32_t add(std::uint32_t section, const entry& value) {
    return append(section, &value, sizeof value);
  }
  template <class entry>
  entry& at(std::uint32_t section, std::uint32_t index) {
    return *reinterpret_cast<entry*>(sections_.at(section).bytes.data() + index * sizeof(entry));
  }

  // Entries of one extent at most; 0 = one extent for each section.
  void split_extents(std::uint32_t entries) { split_ = entries; }
  // Bytes after each entry that a newer writer may have added (strings have none), or fewer than
  // the struct has.
  void resize_entries(std::uint32_t section, std::uint32_t entry_size) {
    sizes_[section] = entry_size;
  }

  std::vector<std::byte> bytes() const;
  void write(const std::string& path) const;

 private:
  struct section {
    std::uint32_t entry_size = 0;
    std::vector<std::byte> bytes;
  };
  std::uint32_t append(std::uint32_t section, const void* entry, std::uint32_t size);

  std::map<std::uint32_t, section> sections_;
  std::map<std::uint32_t, std::uint32_t> sizes_;
  std::map<std::string, std::uint32_t, std::less<>> strings_;
  std::uint32_t split_ = 0;
};

// The two findings of INTERFACES' example: train.py under Python, a copy with its stream wait and
// a free. `run_id` and `pid` as given.
record_builder training_run(std::string_view run_id, std::uint32_t pid);

}  // namespace hostwait::test
