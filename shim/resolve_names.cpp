// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Driver names: two tables sorted at compile time, by symbol and by base name.
#include <algorithm>
#include <string_view>

#include "resolve_internal.hpp"

namespace hostwait::resolve {

namespace {

constexpr std::uint32_t hash_of(std::string_view text) noexcept {
  std::uint32_t hash = 2166136261u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

constexpr bool digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

// cuMemcpyHtoDAsync_v2_ptsz → cuMemcpyHtoDAsync
constexpr std::string_view base_of(std::string_view symbol) noexcept {
  if (symbol.ends_with("_ptsz") || symbol.ends_with("_ptds")) symbol.remove_suffix(5);
  std::size_t end = symbol.size();
  while (end > 0 && digit(symbol[end - 1])) --end;
  if (end != symbol.size() && symbol.substr(0, end).ends_with("_v"))
    symbol = symbol.substr(0, end - 2);
  return symbol;
}

struct named {
  std::uint32_t hash;
  std::uint16_t row;
};
struct sorted_names {
  named entries[row_count];
};

constexpr std::string_view symbols[row_count] = {
#define HW_ROW(symbol, type, kind, rule, roles) #symbol,
#define HW_AUDIT(symbol, reason) #symbol,
#include "table.def"
#undef HW_ROW
#undef HW_AUDIT
};

template <class Key>
constexpr sorted_names sorted_by(Key key) noexcept {
  sorted_names out{};
  for (std::uint16_t i = 0; i < row_count; ++i) out.entries[i] = {hash_of(key(symbols[i])), i};
  std::sort(out.entries, out.entries + row_count,
            [](const named& a, const named& b) { return a.hash < b.hash; });
  return out;
}

constexpr sorted_names by_symbol = sorted_by([](std::string_view s) { return s; });
constexpr sorted_names by_base = sorted_by(base_of);

std::string_view view(const char* text) noexcept {
  std::size_t n = 0;
  while (text[n] != '\0') ++n;
  return {text, n};
}

template <class Match>
row_id search(const sorted_names& in, std::string_view name, Match match) noexcept {
  const std::uint32_t hash = hash_of(name);
  std::size_t low = 0, high = row_count;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (in.entries[middle].hash < hash) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  for (; low < row_count && in.entries[low].hash == hash; ++low)
    if (match(static_cast<row_id>(in.entries[low].row)))
      return static_cast<row_id>(in.entries[low].row);
  return row_count;
}

}  // namespace

const char* const proc_address_names[proc_address_forms] = {
    "cuGetProcAddress", "cuGetProcAddress_v2", "cuGetProcAddress_v2_ptsz"};

row_id row_of_symbol(const char* symbol) noexcept {
  return search(by_symbol, view(symbol),
                [&](row_id row) { return elf::same(rows[row].symbol, symbol); });
}

bool catalogue_base(const char* base, bool (*accept)(row_id) noexcept) noexcept {
  return search(by_base, view(base), [&](row_id row) {
           return form_of(rows[row].symbol, base) &&
                  (accept != nullptr ? accept(row) : rows[row].type != row_type::audit);
         }) != row_count;
}

bool form_of(const char* symbol, const char* base) noexcept {
  return elf::begins(symbol, base) && base_of(view(symbol)).size() <= view(base).size();
}

}  // namespace hostwait::resolve
