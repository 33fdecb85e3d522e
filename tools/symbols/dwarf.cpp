// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The symbolizer on libdw: each module is opened offline, on its own, at its own bias.
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include "demangle.hpp"
#include "symbolizer.hpp"

namespace hostwait {

namespace {

struct dwfl_closer {
  void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
};

struct opened_module {
  std::unique_ptr<Dwfl, dwfl_closer> dwfl;
  Dwfl_Module* module = nullptr;  // null: no symbols can be had
  GElf_Addr bias = 0;             // libdwfl's address - ELF address
  bool without_lines = false;     // it has no debug information
};

// Functions without external linkage have no linkage name: their scopes give the full one.
std::string qualified_name(Dwarf_Die die) {
  Dwarf_Attribute attribute;
  for (const unsigned origin : {DW_AT_abstract_origin, DW_AT_specification}) {
    if (dwarf_attr(&die, origin, &attribute) != nullptr) dwarf_formref_die(&attribute, &die);
  }
  const char* name = dwarf_diename(&die);
  if (name == nullptr) return "";
  std::string result = name;
  Dwarf_Die* scopes = nullptr;
  const int depth = dwarf_getscopes_die(&die, &scopes);
  for (int i = 1; i < depth; ++i) {
    const int tag = dwarf_tag(&scopes[i]);
    const char* scope = dwarf_diename(&scopes[i]);
    if (tag == DW_TAG_namespace) {
      result = std::string(scope != nullptr ? scope : "(anonymous namespace)") + "::" + result;
    } else if (tag == DW_TAG_class_type || tag == DW_TAG_structure_type) {
      result = std::string(scope != nullptr ? scope : "{lambda}") + "::" + result;
    } else if (tag == DW_TAG_subprogram && scope != nullptr) {
      result = std::string(scope) + "::" + result;
    }
  }
  std::free(scopes);
  return strip_signature(result);
}

std::string function_name(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    if (dwarf_attr_integrate(die, name, &attribute) != nullptr) {
      if (const char* text = dwarf_formstring(&attribute)) return readable_name(text);
    }
  }
  return qualified_name(*die);
}

// File and line from which an inlined function was called.
std::pair<std::string, std::uint32_t> call_site(Dwarf_Die* cu, Dwarf_Die* inlined) {
  Dwarf_Attribute attribute;
  Dwarf_Word file = 0, line = 0;
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) != 0) line = 0;
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) != 0)
    return {"", static_cast<std::uint32_t>(line)};
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  const char* name = nullptr;
  if (dwarf_getsrcfiles(cu, &files, &count) == 0 && file < count)
    name = dwarf_filesrc(files, file, nullptr, nullptr);
  return {name != nullptr ? name : "", static_cast<std::uint32_t>(line)};
}

class dwarf_symbolizer final : public symbolizer {
 public:
  explicit dwarf_symbolizer(bool ask_servers) : ask_servers_(ask_servers) {
    // libdw asks a server for every module without debug information.
    if (!ask_servers) {
      ::unsetenv("DEBUGINFOD_URLS");
    } else {
      // Seconds without progress, and in all, for one module. The user's own settings stay.
      ::setenv("DEBUGINFOD_TIMEOUT", "5", 0);
      ::setenv("DEBUGINFOD_MAXTIME", "20", 0);
      ::setenv("DEBUGINFOD_RETRY_LIMIT", "1", 0);
    }
  }

  std::vector<native_frame> resolve(const std::string& path, const hostwait_record_module& module,
                                    std::uint64_t return_address) override {
    const auto key = std::make_tuple(path, id_of(module), return_address - module.bias);
    if (const auto known = cache_.find(key); known != cache_.end()) return known->second;
    native_frame plain;
    plain.module = path;
    plain.offset = return_address - module.bias;
    std::vector<native_frame> frames;
    bool without_lines = false;
    if (!path.empty()) {
      const opened_module& in = open(path, module);
      // A return address is the one after the call: the call itself ends one byte before it.
      if (in.module != nullptr) frames = look_up(in, plain.offset - 1 + in.bias, plain);
      without_lines = in.without_lines;
    }
    if (frames.empty()) frames.push_back(plain);
    for (native_frame& each : frames) each.owner = owner_of(path, each.function, module.flags);
    if (without_lines && frames.back().owner == frame_owner::user)
      notes_.insert(path +
                    ": no debug information: no lines from it (build with -g, or put its "
                    "debug file beside it)");
    return cache_.emplace(key, std::move(frames)).first->second;
  }

  std::set<std::string> notes() const override { return notes_; }

 private:
  static std::string id_of(const hostwait_record_module& module) {
    return std::string(reinterpret_cast<const char*>(module.build_id),
                       std::min<std::size_t>(module.build_id_bytes, sizeof module.build_id));
  }

  const opened_module& open(const std::string& path, const hostwait_record_module& module) {
    // By build id too: a library may have been replaced and loaded again during the run.
    const auto [at, fresh] = modules_.try_emplace({path, id_of(module)});
    opened_module& result = at->second;
    if (!fresh) return result;
    static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_build_id_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
        .section_address = dwfl_offline_section_address,
        .debuginfo_path = nullptr,
    };
    if (path.front() != '/') return result;  // [vdso] and the like
    result.dwfl.reset(dwfl_begin(&callbacks));
    if (result.dwfl == nullptr) return result;
    dwfl_report_begin(result.dwfl.get());
    Dwfl_Module* reported = dwfl_report_offline(result.dwfl.get(), path.c_str(), path.c_str(), -1);
    dwfl_report_end(result.dwfl.get(), nullptr, nullptr);
    if (reported == nullptr) {
      notes_.insert(fmt::format("{}: no names: {}", path, dwfl_errmsg(-1)));
      return result;
    }
    if (dwfl_module_getelf(reported, &result.bias) == nullptr) return result;
    const unsigned char* id = nullptr;
    GElf_Addr id_address = 0;
    const int id_bytes = dwfl_module_build_id(reported, &id, &id_address);
    if (module.build_id_bytes > 0 && module.build_id_bytes <= sizeof module.build_id &&
        id_bytes > 0 &&
        (static_cast<std::uint32_t>(id_bytes) < module.build_id_bytes ||
         std::memcmp(id, module.build_id, module.build_id_bytes) != 0)) {
      notes_.insert(path + ": changed since the run (other build id): no names from it");
      return result;
    }
    result.module = reported;
    // Here libdw looks for a separate debug file, and asks the servers if it may.
    const auto start = std::chrono::steady_clock::now();
    Dwarf_Addr bias = 0;
    result.without_lines = dwfl_module_getdwarf(reported, &bias) == nullptr;
    constexpr std::chrono::seconds in_all{60};
    if (ask_servers_ && (asking_ += std::chrono::steady_clock::now() - start) > in_all) {
      notes_.insert("the debuginfod servers took longer than 60 s: not asked for further modules");
      ::unsetenv("DEBUGINFOD_URLS");
      ask_servers_ = false;
    }
    return result;
  }

  std::vector<native_frame> look_up(const opened_module& in, GElf_Addr address,
                                    const native_frame& plain) {
    std::vector<native_frame> frames = from_dwarf(in, address, plain);
    // The symbol table names the function as it was linked; debug information may be absent or
    // partial.
    GElf_Off offset = 0;
    GElf_Sym symbol;
    const char* name =
        dwfl_module_addrinfo(in.module, address, &offset, &symbol, nullptr, nullptr, nullptr);
    if (frames.empty()) {
      if (name == nullptr) return frames;
      frames.push_back(plain);
      set_line(in, address, frames.front());
    }
    if (frames.back().function.empty() && name != nullptr)
      frames.back().function = readable_name(name);
    return frames;
  }

  static void set_line(const opened_module& in, GElf_Addr address, native_frame& frame) {
    int line = 0;
    if (Dwfl_Line* at = dwfl_module_getsrc(in.module, address)) {
      if (const char* file = dwfl_lineinfo(at, nullptr, &line, nullptr, nullptr, nullptr)) {
        frame.file = file;
        frame.line = line > 0 ? static_cast<std::uint32_t>(line) : 0;
      }
    }
  }

  static std::vector<native_frame> from_dwarf(const opened_module& in, GElf_Addr address,
                                              const native_frame& plain) {
    std::vector<native_frame> frames;
    Dwarf_Addr bias = 0;
    Dwarf_Die* cu = dwfl_module_addrdie(in.module, address, &bias);
    if (cu == nullptr) return frames;
    Dwarf_Die* scopes = nullptr;
    const int found = dwarf_getscopes(cu, address - bias, &scopes);
    Dwarf_Die* chain = nullptr;
    int depth = 0;
    for (int i = 0; i < found && chain == nullptr; ++i) {
      const int tag = dwarf_tag(&scopes[i]);
      if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine) continue;
      // Scopes of a concrete inlined instance, without those of its abstract definition.
      depth = dwarf_getscopes_die(&scopes[i], &chain);
      if (depth <= 0) break;
    }
    native_frame frame = plain;
    set_line(in, address, frame);
    for (int i = 0; i < depth; ++i) {
      const int tag = dwarf_tag(&chain[i]);
      if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine) continue;
      frame.function = function_name(&chain[i]);
      frame.inlined = tag == DW_TAG_inlined_subroutine;
      frames.push_back(frame);
      if (tag == DW_TAG_subprogram) break;
      frame = plain;
      std::tie(frame.file, frame.line) = call_site(cu, &chain[i]);
    }
    std::free(chain);
    std::free(scopes);
    return frames;
  }

  bool ask_servers_;
  std::chrono::steady_clock::duration asking_{};
  std::map<std::pair<std::string, std::string>, opened_module> modules_;
  std::map<std::tuple<std::string, std::string, std::uint64_t>, std::vector<native_frame>> cache_;
  std::set<std::string> notes_;
};

}  // namespace

std::unique_ptr<symbolizer> make_dwarf_symbolizer(bool ask_servers) {
  return std::make_unique<dwarf_symbolizer>(ask_servers);
}

}  // namespace hostwait
