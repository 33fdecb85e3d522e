// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The copies of libcuda in this process, and whose function a driver pointer is.
//
// Registration takes no lock: a slot is claimed by its base address, and whoever meets a slot that
// is claimed but not ready fills it, too. All of them write the same values to the same places, so
// it does not matter who comes last.
#include "resolve_internal.hpp"

namespace hostwait::resolve {

namespace {

constexpr unsigned helper_count = static_cast<unsigned>(helper_id::count);
constexpr const char* helper_names[helper_count] = {"cuPointerGetAttributes", "cuStreamIsCapturing",
                                                    "cuDriverGetVersion", "cuDeviceGetAttribute"};

constexpr unsigned buckets_for(unsigned entries) noexcept {
  unsigned n = 64;
  while (n < 2 * entries) n *= 2;
  return n;
}
constexpr unsigned entry_count = unsigned{row_count} + unsigned{proc_address_forms};
constexpr unsigned bucket_count = buckets_for(entry_count);

struct copy_slot {
  std::atomic<std::uintptr_t> base;  // 0: free
  std::atomic<std::uintptr_t> end;   // 0: unloaded since
  std::atomic<const void*> dynamic;  // its dynamic section
  std::atomic<bool> ready;
  std::atomic<std::uint32_t> checked;  // unload_count() when it was last known to be there
  std::atomic<void*> proc_address[proc_address_forms];
  std::atomic<void*> helpers[helper_count];
  std::atomic<std::uint16_t> buckets[bucket_count];  // entry number + 1, 0: free
  char path[512]{};
};
// A dynamic initialiser would clear what was registered before it ran.
constinit copy_slot slots[max_copies];

unsigned bucket_of(const void* function) noexcept {
  const auto value = reinterpret_cast<std::uintptr_t>(function) >> 4;
  return static_cast<unsigned>((value * 0x9e3779b97f4a7c15ull) >> 32) & (bucket_count - 1);
}

// Entries are the rows, then the forms of cuGetProcAddress.
void* entry_address(unsigned entry, unsigned copy) noexcept {
  return entry < row_count
             ? real(static_cast<row_id>(entry), copy)
             : slots[copy].proc_address[entry - row_count].load(std::memory_order_relaxed);
}

void insert(copy_slot& slot, unsigned entry, const void* function) noexcept {
  for (unsigned b = bucket_of(function);; b = (b + 1) & (bucket_count - 1)) {
    std::uint16_t there = slot.buckets[b].load(std::memory_order_relaxed);
    if (there == 0) slot.buckets[b].store(there = entry + 1, std::memory_order_relaxed);
    if (there == entry + 1) return;
  }
}

void* exported(const elf::image& in, const char* name) noexcept {
  const auto* symbol = elf::find(in, name);
  return symbol != nullptr ? elf::address(in, *symbol) : nullptr;
}

void fill(unsigned copy, const elf::module& m, const elf::image& in) noexcept {
  copy_slot& slot = slots[copy];
  std::size_t i = 0;
  for (; m.path[i] != '\0' && i + 1 < sizeof slot.path; ++i) slot.path[i] = m.path[i];
  slot.path[i] = '\0';
  for (unsigned row = 0; row < row_count; ++row) {
    void* function = exported(in, rows[row].symbol);
    real_table[copy][row].store(function, std::memory_order_relaxed);
    if (function != nullptr) insert(slot, row, function);
  }
  for (unsigned form = 0; form < proc_address_forms; ++form) {
    void* function = exported(in, proc_address_names[form]);
    slot.proc_address[form].store(function, std::memory_order_relaxed);
    if (function != nullptr) insert(slot, row_count + form, function);
  }
  for (unsigned h = 0; h < helper_count; ++h)
    slot.helpers[h].store(exported(in, helper_names[h]), std::memory_order_relaxed);
  slot.dynamic.store(m.dynamic, std::memory_order_relaxed);
  slot.end.store(m.end, std::memory_order_relaxed);
  slot.checked.store(unload_count(), std::memory_order_relaxed);
  slot.ready.store(true, std::memory_order_release);
}

// Another file may be mapped where a copy was unloaded: then the real functions lie elsewhere in
// it. Enough of them at the same place mean the same library.
bool still_same(unsigned copy, const elf::module& m, const elf::image& in) noexcept {
  const copy_slot& slot = slots[copy];
  if (slot.dynamic.load(std::memory_order_relaxed) != m.dynamic) return false;
  for (unsigned form = 0; form < proc_address_forms; ++form)
    if (slot.proc_address[form].load(std::memory_order_relaxed) !=
        exported(in, proc_address_names[form]))
      return false;
  for (unsigned row = 0; row < row_count; row += 16)
    if (real(static_cast<row_id>(row), copy) != exported(in, rows[row].symbol)) return false;
  return elf::same(slot.path, m.path);
}

}  // namespace

constinit std::atomic<void*> real_table[max_copies][row_count];

void* helper(helper_id what, unsigned copy) noexcept {
  return slots[copy].helpers[static_cast<unsigned>(what)].load(std::memory_order_relaxed);
}

unsigned copy_count() noexcept {
  unsigned n = 0;
  while (n < max_copies && slots[n].ready.load(std::memory_order_acquire)) ++n;
  return n;
}

copy_info copy_at(unsigned copy) noexcept {
  const copy_slot& slot = slots[copy];
  return {slot.path, slot.base.load(std::memory_order_relaxed),
          slot.end.load(std::memory_order_relaxed)};
}

void* real_proc_address(unsigned form, unsigned copy) noexcept {
  return slots[copy].proc_address[form].load(std::memory_order_relaxed);
}

bool is_driver(const elf::image& in) noexcept {
  if (!elf::begins(in.soname, "libcuda.so")) return false;
  const auto* init = elf::find(in, "cuInit");
  if (init == nullptr || ELF64_ST_TYPE(init->st_info) == STT_OBJECT) return false;
  return elf::find(in, "cuDriverGetVersion") != nullptr ||
         elf::find(in, "cuGetProcAddress") != nullptr ||
         elf::find(in, "cuGetProcAddress_v2") != nullptr;
}

unsigned see(const elf::module& m, const elf::image& in) noexcept {
  for (unsigned copy = 0; copy < max_copies; ++copy) {
    copy_slot& slot = slots[copy];
    std::uintptr_t base = 0;
    if (slot.base.compare_exchange_strong(base, m.start, std::memory_order_acq_rel)) base = m.start;
    if (base != m.start) continue;
    if (!slot.ready.load(std::memory_order_acquire)) {
      fill(copy, m, in);
      return copy;
    }
    if (slot.end.load(std::memory_order_relaxed) == 0) continue;
    const std::uint32_t now = unload_count();
    if (slot.checked.load(std::memory_order_relaxed) == now) return copy;
    if (still_same(copy, m, in)) {
      slot.checked.store(now, std::memory_order_relaxed);
      return copy;
    }
    slot.end.store(0, std::memory_order_relaxed);
  }
  take_note(note::copy_beyond, "", m.path);
  return max_copies;
}

unsigned copy_of(const void* function) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(function);
  for (unsigned copy = 0; copy < max_copies; ++copy) {
    const copy_slot& slot = slots[copy];
    if (!slot.ready.load(std::memory_order_acquire)) break;
    if (slot.base.load(std::memory_order_relaxed) <= at &&
        at < slot.end.load(std::memory_order_relaxed)) {
      // After a dlclose something else may lie there.
      if (slot.checked.load(std::memory_order_relaxed) == unload_count()) return copy;
      break;
    }
  }
  unsigned found = max_copies;
  elf::for_each_module([&](const elf::module& m) {
    if (!m.holds(function)) return false;
    elf::image in;
    if (elf::open(m.bias, m.dynamic, in) && is_driver(in)) found = see(m, in);
    return true;
  });
  return found;
}

target target_of(const void* function, unsigned copy, const char* name) noexcept {
  target best;
  if (copy >= max_copies) return best;
  const copy_slot& slot = slots[copy];
  for (unsigned b = bucket_of(function);; b = (b + 1) & (bucket_count - 1)) {
    const unsigned there = slot.buckets[b].load(std::memory_order_relaxed);
    if (there == 0) return best;
    const unsigned entry = there - 1;
    if (entry_address(entry, copy) != function) continue;
    const bool row = entry < row_count;
    const char* symbol = row ? rows[entry].symbol : proc_address_names[entry - row_count];
    if (best.known() && !form_of(symbol, name)) continue;
    best.copy = copy;
    best.row = row ? static_cast<row_id>(entry) : row_count;
    best.form = row ? proc_address_forms + 0u : entry - row_count;
    if (elf::same(symbol, name)) return best;
  }
}

}  // namespace hostwait::resolve
