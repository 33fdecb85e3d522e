// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What the exported dlsym, dlvsym, dlopen and dlclose (resolve_*.S) decide before they jump.
//
// A wrapper that calls the real dlsym would change what RTLD_NEXT and RTLD_DEFAULT mean for its
// callers: libc looks at the return address. So every name that is none of the driver's is left to
// the real function by a jump, at every optimisation level. A driver name with a true handle does
// not depend on the caller: the real function is called and its answer replaced. With RTLD_NEXT and
// RTLD_DEFAULT the answer is worked out here only where it is certain to be libc's; in all other
// cases the real function is jumped to, which can cost sight but never changes the program.
#include <dlfcn.h>

#include "resolve_internal.hpp"

extern "C" {
__attribute__((visibility("hidden"))) void* hostwait_dlsym(void*, const char*);
__attribute__((visibility("hidden"))) void* hostwait_dlvsym(void*, const char*, const char*);
}

namespace hostwait::resolve {

namespace {

using dlsym_function = void* (*)(void*, const char*, const char*);

// One look-up: dlsym where `versioned` is false. The real dlsym ignores a third argument.
struct lookup {
  void* function;  // the next dlsym or dlvsym
  const char* name;
  const char* version;

  void* with(void* handle) const noexcept {
    return reinterpret_cast<dlsym_function>(function)(handle, name, version);
  }
};

// The caller's own scope, for an object that was linked against the driver and opened with
// RTLD_LOCAL: certain only where nobody but the driver defines the name.
void* linked_by(const void* caller, const lookup& what) noexcept {
  elf::image from;
  bool known = false;
  void* found = nullptr;
  bool ambiguous = false;
  elf::for_each_module([&](const elf::module& m) {
    known = m.holds(caller) && elf::open(m.bias, m.dynamic, from);
    return known;
  });
  if (!known) return nullptr;
  elf::for_each_module([&](const elf::module& m) {
    elf::image in;
    if (!elf::open(m.bias, m.dynamic, in)) return false;
    const auto* symbol = elf::find(in, what.name, what.version);
    if (symbol == nullptr) return false;
    ambiguous = !is_driver(in);
    if (!ambiguous && found == nullptr && elf::needs(from, in.soname))
      found = elf::address(in, *symbol);
    return ambiguous;
  });
  return ambiguous ? nullptr : found;
}

// A look-up of ours that failed left its text behind; the program's look-up succeeds.
void clear_error() noexcept {
  if (auto* dlerror = reinterpret_cast<char* (*)()>(libc_symbol("dlerror"))) dlerror();
}

void* by_default(const void* caller, const lookup& what) noexcept {
  // The global scope comes first for everybody.
  if (void* found = what.with(RTLD_DEFAULT)) return found;
  void* found = linked_by(caller, what);
  if (found != nullptr) clear_error();
  return found;
}

void* by_next(const void* caller, const lookup& what) noexcept {
  constexpr unsigned nowhere = ~0u;
  unsigned caller_index = nowhere, own_index = nowhere;
  void* found = nullptr;
  bool foreign = false;
  const unsigned at_start = startup_count();
  elf::for_each_module([&](const elf::module& m) {
    if (m.index >= at_start) return true;
    if (m.dynamic == elf::own_dynamic()) own_index = m.index;
    if (m.holds(caller)) {
      caller_index = m.index;
      return false;
    }
    if (caller_index == nowhere) return false;
    elf::image in;
    if (!elf::open(m.bias, m.dynamic, in)) return false;
    const auto* symbol = elf::find(in, what.name, what.version);
    if (symbol == nullptr) return false;
    foreign = !is_driver(in);
    found = elf::address(in, *symbol);
    return true;
  });
  if (foreign) return nullptr;
  if (found != nullptr) return found;
  if (caller_index == nowhere) return linked_by(caller, what);
  // Nothing that was there at start-up. From us on, libc also knows what RTLD_GLOBAL added.
  return own_index != nowhere && caller_index < own_index ? what.with(RTLD_NEXT) : nullptr;
}

void* decide(void* handle, const lookup& what, const void* caller, route by,
             void** result) noexcept {
  *result = nullptr;
  if (what.function == nullptr || !driver_name(what.name)) return what.function;
  if (!elf::relocated()) {
    note_early();
    return what.function;
  }
  void* found = nullptr;
  if (handle == RTLD_DEFAULT) {
    found = by_default(caller, what);
  } else if (handle == RTLD_NEXT) {
    found = by_next(caller, what);
  } else {
    found = what.with(handle);
    if (found == nullptr) return nullptr;
  }
  if (found == nullptr) return what.function;
  *result = substitute(found, what.name, by);
  return nullptr;
}

// An interposer in front of us that wants the dlsym behind it with a version (all do: they cannot
// call dlsym for it) would pass over every unversioned one, ours too, and all look-ups of the
// program with it. It gets the one that a look-up without version would give: ours.
void* own_for_interposer(void* handle, const char* name, const void* caller) noexcept {
  if (handle != RTLD_NEXT || name == nullptr || !elf::relocated()) return nullptr;
  void* ours = elf::same(name, "dlsym")    ? reinterpret_cast<void*>(&hostwait_dlsym)
               : elf::same(name, "dlvsym") ? reinterpret_cast<void*>(&hostwait_dlvsym)
                                           : nullptr;
  if (ours == nullptr) return nullptr;
  bool in_front = false;
  elf::for_each_module([&](const elf::module& m) {
    in_front = m.holds(caller);
    return in_front || m.dynamic == elf::own_dynamic();
  });
  return in_front ? ours : nullptr;
}

void catch_up() noexcept {
  const std::uint32_t due = __atomic_load_n(&hostwait_dl_attention, __ATOMIC_ACQUIRE);
  if ((due & attention_next) != 0) find_next();
  if ((due & attention_modules) != 0 && elf::relocated()) look_at_links(link_pass::later);
}

}  // namespace

// Called by the assembly. The function to jump to, or null: then *result is the answer.
extern "C" {

__attribute__((visibility("hidden"))) void* hostwait_on_dlsym(void* handle, const char* name,
                                                              const char*, const void* caller,
                                                              void** result) noexcept {
  catch_up();
  return decide(handle, {hostwait_next_dlsym, name, nullptr}, caller, route_dlsym, result);
}

__attribute__((visibility("hidden"))) void* hostwait_on_dlvsym(void* handle, const char* name,
                                                               const char* version,
                                                               const void* caller,
                                                               void** result) noexcept {
  catch_up();
  *result = own_for_interposer(handle, name, caller);
  if (*result != nullptr) return nullptr;
  return decide(handle, {hostwait_next_dlvsym, name, version}, caller, route_dlvsym, result);
}

// The flags to go on with. A library opened with RTLD_DEEPBIND would bind its own dlsym to libc's.
__attribute__((visibility("hidden"))) int hostwait_on_dlopen(const char* file, int flags) noexcept {
  catch_up();
  note_load();
  if ((flags & RTLD_DEEPBIND) == 0 || file == nullptr || !elf::relocated()) return flags;
  const bool strip = strip_deepbind();
  take_note(strip ? note::deepbind_stripped : note::deepbind_kept, "", file);
  return strip ? flags & ~RTLD_DEEPBIND : flags;
}

// dlclose is interposed for the generation alone: addresses may be reused from now on. It moves
// before the object is unmapped; that is no harm, since what is mapped there next comes with a
// dlopen, which moves it again.
__attribute__((visibility("hidden"))) void hostwait_on_dlclose() noexcept {
  catch_up();
  note_unload();
}

}  // extern "C"

}  // namespace hostwait::resolve
