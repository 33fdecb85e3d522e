// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Programs and libraries that are linked against the driver (-lcuda).
//
// Why references are rewritten and no driver name is exported. A preloaded object that exports
// cuInit is seen by everybody: a weak reference of a program without the driver finds it, a library
// whose *variable* is called cuInit (CUEW) binds to our function and writes over it, a copy
// relocation copies our code. IFUNC symbols that answer null or the next definition would mend the
// first, but glibc binds most libraries before a preloaded one is relocated, prints "Relink" for
// each such symbol, and does not tell the resolver who asks. So nothing is exported. Instead the
// relocations of loaded objects are read again, and a slot that holds exactly a driver function of
// a row (or is a lazy PLT slot that would bind to it) gets the wrapper. Absence needs no care: what
// did not bind to the driver is not touched, be it null, a variable or another interposer. All
// slots get the same pointer as dlsym and cuGetProcAddress give, so that comparisons stay true; in
// a non-PIE program whose PLT entry is the address of the function, it stays that.
//
// When. Libraries: with our own relocations, after theirs and before any constructor runs (objects
// are relocated from the end of the list; what is not relocated yet holds no driver pointer). The
// executable is relocated last, so from our constructor. Objects of a later dlopen: at the next
// call of dlsym, dlopen or dlclose by anyone. Calls that the constructors of such an object make
// are not seen; the loader offers no place between its relocations and its constructors.
//
// libhostwait_link.so is the switch: without it in the process, or with routes=nolink, nothing here
// happens.
#include <linux/futex.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "resolve_internal.hpp"
#include "sys.hpp"

namespace hostwait::resolve {

namespace {

#if defined(__x86_64__)
constexpr unsigned jump_slot = R_X86_64_JUMP_SLOT, global_data = R_X86_64_GLOB_DAT,
                   absolute = R_X86_64_64;
#elif defined(__aarch64__)
constexpr unsigned jump_slot = R_AARCH64_JUMP_SLOT, global_data = R_AARCH64_GLOB_DAT,
                   absolute = R_AARCH64_ABS64;
#endif

enum class access : std::uint8_t { writable, closed, unknown };

// Adds zero to the word: the kernel says whether that could be written, and no value changes.
access access_to(const void* at) noexcept {
  std::uint32_t nobody = 0;
  constexpr long efault = 14;
  const long operation = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0);
  const long result =
      sys::call(SYS_futex, reinterpret_cast<long>(&nobody), FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0,
                0, reinterpret_cast<long>(at), operation);
  if (!sys::failed(result)) return access::writable;
  return result == -efault ? access::closed : access::unknown;
}

// One object's slots. Its RELRO pages are opened at most once, only where they are closed, that is
// where the loader is done with the object.
struct object {
  const elf::module& m;
  const elf::image& in;
  link_pass pass;
  bool opened = false;
  std::uintptr_t relro_start = 0, relro_end = 0;

  bool store(void** slot, void* value) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(slot);
    const std::uintptr_t page = getauxval(AT_PAGESZ);
    relro_start = m.relro_start & -page;
    relro_end = m.relro_end & -page;
    const bool inside = relro_start <= at && at < relro_end;
    if (!(inside && opened)) {
      const access now = access_to(slot);
      if (now == access::closed && !inside) return false;
      if (now != access::writable && inside) {
        if (!protect(PROT_READ | PROT_WRITE)) return false;
        opened = true;
      }
    }
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
    return true;
  }
  void close() noexcept {
    if (opened) protect(PROT_READ);
  }

 private:
  bool protect(int protection) noexcept {
    return sys::call(SYS_mprotect, static_cast<long>(relro_start),
                     static_cast<long>(relro_end - relro_start), protection) == 0;
  }
};

// Before the options can be read all rows count as armed that are so by default; the pass of the
// constructor puts back what is not.
void* wanted_for(const target& t, link_pass pass) noexcept {
  if (!t.known()) return nullptr;
  if (pass == link_pass::early) {
    if (t.row == row_count) return replacement(t);
    const row_type type = rows[t.row].type;
    const bool by_default = type != row_type::pressure && type != row_type::audit;
    return by_default ? entry::wrapper(t.row, t.copy) : nullptr;
  }
  return link_route() ? replacement(t) : nullptr;
}

target named_target(const char* name, unsigned copy) noexcept {
  target t;
  t.copy = copy;
  t.row = row_of_symbol(name);
  for (unsigned form = 0; form < proc_address_forms; ++form)
    if (elf::same(name, proc_address_names[form])) t.form = form;
  return t;
}

void* real_of(const target& t) noexcept {
  return t.row != row_count ? real(t.row, t.copy) : real_proc_address(t.form, t.copy);
}

// What a lazy slot of `from` would bind to, if that is certainly the driver: the first definition
// among the objects of start-up, whose order is the global scope's; else the driver, if nobody
// else defines the name.
void* lazy_binding(const elf::image& from, const char* name) noexcept {
  void* found = nullptr;
  bool foreign = false;
  elf::for_each_module([&](const elf::module& m) {
    elf::image in;
    if (!elf::open(m.bias, m.dynamic, in)) return false;
    const auto* symbol = elf::find(in, name);
    if (symbol == nullptr) return false;
    foreign = !is_driver(in);
    if (!foreign && (found == nullptr || elf::needs(from, in.soname)))
      found = elf::address(in, *symbol);
    return foreign || m.index < startup_count();
  });
  return foreign ? nullptr : found;
}

void point_to_ours(object& o, void** slot, const target& t) noexcept {
  void* ours = wanted_for(t, o.pass);
  if (ours != nullptr && o.store(slot, ours) && o.pass != link_pass::early) seen(route_linked);
}

void look_at_slot(object& o, const ElfW(Rela) & relocation) noexcept {
  const unsigned type = ELF64_R_TYPE(relocation.r_info);
  if (type != jump_slot && type != global_data && type != absolute) return;
  const ElfW(Sym)& symbol = o.in.symbols[ELF64_R_SYM(relocation.r_info)];
  if (symbol.st_shndx != SHN_UNDEF || relocation.r_addend != 0) return;
  const char* name = o.in.strings + symbol.st_name;
  if (!driver_name(name)) return;
  auto** slot = reinterpret_cast<void**>(o.m.bias + relocation.r_offset);
  if (!o.m.holds(slot)) return;
  void* value = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
  if (value == nullptr) return;
  for (unsigned copy = 0; copy < copy_count(); ++copy) {
    if (const target t = target_of(value, copy, name); t.known()) {
      point_to_ours(o, slot, t);
      return;
    }
    // Ours already: from the early pass, which did not know the options.
    const target t = named_target(name, copy);
    void* ours = t.row != row_count ? entry::wrapper(t.row, copy) : replacement(t);
    if (ours == nullptr || value != ours) continue;
    if (wanted_for(t, o.pass) == nullptr) {
      o.store(slot, real_of(t));
    } else if (o.pass != link_pass::early) {
      seen(route_linked);
    }
    return;
  }
  if (type != jump_slot || !o.m.holds(value)) return;
  void* function = lazy_binding(o.in, name);
  if (function == nullptr) return;
  point_to_ours(o, slot, target_of(function, copy_of(function), name));
}

// Whether the object has undefined driver names at all: they stand before the hashed ones. Where
// the table does not say, its relocations are read.
bool mentions_driver(const elf::module& m, const elf::image& in) noexcept {
  if (m.index == 0) return true;
  std::uint32_t count = 0;
  if (in.gnu_hash != nullptr) {
    count = in.gnu_hash[1];
  } else if (in.sysv_hash != nullptr) {
    count = in.sysv_hash[1];
  }
  if (count <= 1) return true;
  for (std::uint32_t i = 1; i < count; ++i)
    if (in.symbols[i].st_shndx == SHN_UNDEF && driver_name(in.strings + in.symbols[i].st_name))
      return true;
  return false;
}

void look_at_object(const elf::module& m, link_pass pass) noexcept {
  elf::image in;
  if (m.dynamic == elf::own_dynamic() || !elf::open(m.bias, m.dynamic, in) || is_driver(in) ||
      !mentions_driver(m, in))
    return;
  object o{m, in, pass};
  for (std::size_t i = in.relative_count; i < in.relocation_count; ++i)
    look_at_slot(o, in.relocations[i]);
  for (std::size_t i = 0; i < in.plt_relocation_count; ++i) look_at_slot(o, in.plt_relocations[i]);
  o.close();
}

// Guarded by the loader's list lock.
struct {
  bool running;
  unsigned copies;       // of the driver, at the last pass
  unsigned known, done;  // objects counted, objects looked at
  unsigned long long unloads;
  const link_map* last;  // the newest object known; valid while `unloads` has not moved
} progress;

// Looks for copies of the driver among the objects that are new since the last time. Returns how
// many objects there are.
unsigned see_new_drivers(unsigned long long unloads) noexcept {
  const r_debug* list = elf::loader_list();
  if (list == nullptr) return 0;
  const bool go_on = progress.last != nullptr && progress.unloads == unloads;
  if (!go_on) progress.known = 0;
  const link_map* m = go_on ? progress.last->l_next : list->r_map;
  bool found = false;
  for (; m != nullptr; m = m->l_next) {
    elf::image in;
    ++progress.known;
    progress.last = m;
    found |= elf::open(m->l_addr, m->l_ld, in) && is_driver(in);
  }
  progress.unloads = unloads;
  if (found) {
    elf::for_each_module([](const elf::module& each) {
      elf::image in;
      if (elf::open(each.bias, each.dynamic, in) && is_driver(in)) see(each, in);
      return false;
    });
  }
  return progress.known;
}

void look_at_list(link_pass pass, unsigned limit) noexcept {
  elf::for_each_module([&](const elf::module& m) {
    if (m.index >= progress.done && m.index < limit && (pass != link_pass::early || m.index != 0))
      look_at_object(m, pass);
    return m.index >= limit;
  });
  progress.done = limit;
}

}  // namespace

void look_at_links(link_pass pass) noexcept {
  // Cleared before the list is read: a dlopen that begins now is looked at next time.
  if (pass == link_pass::later) {
    __atomic_fetch_and(&hostwait_dl_attention, ~attention_modules, __ATOMIC_ACQ_REL);
    if (!link_route()) return;
  }
  unsigned limit = 0;
  unsigned long long unloads = 0;
  bool nothing_new = true;
  elf::for_each_module([&](const elf::module& m) {
    if (m.unloads != progress.unloads || pass != link_pass::later) progress.done = 0;
    limit = see_new_drivers(unloads = m.unloads);
    if (copy_count() != progress.copies) progress.done = 0;
    progress.copies = copy_count();
    if (progress.copies == 0) progress.done = limit;
    // A thread of another constructor may be inside dlopen: what it loads has its turn later.
    if (pass != link_pass::later && limit > startup_count()) limit = startup_count();
    nothing_new = limit <= progress.done;
    return true;
  });
  if (nothing_new) return;  // without the driver it ends here
  if (pass == link_pass::later) {
    // dladdr waits until no other thread is inside dlopen: then every object counted above is
    // relocated. (The real dlsym, where we come from, takes the same lock.)
    using dladdr_function = int (*)(const void*, void*);
    void* info[4];
    if (auto* wait = reinterpret_cast<dladdr_function>(libc_symbol("dladdr")))
      wait(reinterpret_cast<const void*>(&look_at_links), info);
  }
  elf::for_each_module([&](const elf::module& m) {
    if (progress.running || m.unloads != unloads) {
      __atomic_fetch_or(&hostwait_dl_attention, attention_modules, __ATOMIC_ACQ_REL);
      return true;
    }
    progress.running = true;
    look_at_list(pass, limit);
    progress.running = false;
    return true;
  });
}

}  // namespace hostwait::resolve
