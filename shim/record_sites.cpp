// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A thread's hash table of the sites that it knows.
#include "record_threads.hpp"

namespace hostwait::record {

namespace {
constexpr hostwait_record_counters* no_counters = nullptr;
}

void site_table::put(table* into, const hash128& key, const tally& to) noexcept {
  std::uint64_t i = (key.a >> 20) & into->mask;
  while (into->places[i].to.counters != nullptr) i = (i + 1) & into->mask;
  place& here = into->places[i];
  store(here.a, key.a);
  store(here.b, key.b);
  store(here.to.histogram, to.histogram);
  publish(here.to.counters, to.counters);
  ++into->used;
}

bool site_table::insert(const hash128& key, const tally& to) noexcept {
  if (table_ == nullptr || (table_->used + 1) * 4 > (table_->mask + 1) * 3) {
    std::uint64_t places = table_ == nullptr ? 64 : (table_->mask + 1) * 2;
    std::size_t bytes = sizeof(table) + (places - 1) * sizeof(place);
    auto* larger = static_cast<table*>(allocate_mapped(bytes));
    if (larger == nullptr) return false;  // the site stays slow, and counted
    larger->bytes = bytes;
    larger->mask = places - 1;
    larger->outgrown = table_;
    if (table_ != nullptr) {
      for (std::uint64_t i = 0; i <= table_->mask; ++i) {
        const place& old = table_->places[i];
        if (old.to.counters != nullptr) put(larger, hash128{old.a, old.b}, old.to);
      }
    }
    table_ = larger;
  }
  put(table_, key, to);
  return true;
}

void site_table::clear() noexcept {
  if (table_ == nullptr || table_->used == 0) return;
  for (std::uint64_t i = 0; i <= table_->mask; ++i)
    store(table_->places[i].to.counters, no_counters);
  table_->used = 0;
}

void site_table::take_over() noexcept {
  if (table_ == nullptr) return;
  for (table* old = table_->outgrown; old != nullptr;) {
    table* before = old->outgrown;
    release_mapped(old, old->bytes);
    old = before;
  }
  table_->outgrown = nullptr;
  clear();
}

}  // namespace hostwait::record
