// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Parser of HOSTWAIT_OPTIONS.
#include "options.hpp"

#include <cstring>

namespace hostwait {

namespace {

struct word {
  const char* begin;
  std::size_t length;

  bool is(const char* text) const noexcept {
    return std::strlen(text) == length && std::memcmp(begin, text, length) == 0;
  }
};

// Bounded text building without stdio.
struct line {
  char* out;
  std::size_t room, used = 0;

  void add(const char* text, std::size_t n) noexcept {
    for (std::size_t i = 0; i < n && used + 1 < room; ++i) out[used++] = text[i];
    if (room != 0) out[used] = '\0';
  }
  void add(const char* text) noexcept { add(text, std::strlen(text)); }
  void add(word w) noexcept { add(w.begin, w.length); }
};

struct named {
  const char* name;
  std::uint32_t value;
};

constexpr named action_names[] = {{"allow", HOSTWAIT_ALLOW}, {"log", HOSTWAIT_LOG},
                                  {"fail", HOSTWAIT_FAIL},   {"error", HOSTWAIT_ERROR},
                                  {"abort", HOSTWAIT_ABORT}, {"trap", HOSTWAIT_TRAP}};

constexpr named kind_names[] = {{"device_sync", HOSTWAIT_DEVICE_SYNC},
                                {"stream_sync", HOSTWAIT_STREAM_SYNC},
                                {"event_sync", HOSTWAIT_EVENT_SYNC},
                                {"copy", HOSTWAIT_COPY},
                                {"async_copy", HOSTWAIT_ASYNC_COPY},
                                {"memset", HOSTWAIT_MEMSET},
                                {"free", HOSTWAIT_FREE},
                                {"host_free", HOSTWAIT_HOST_FREE},
                                {"alloc", HOSTWAIT_ALLOC},
                                {"module", HOSTWAIT_MODULE},
                                {"context", HOSTWAIT_CONTEXT},
                                {"queue_full", HOSTWAIT_QUEUE_FULL},
                                {"poll", HOSTWAIT_POLL},
                                {"unlisted", HOSTWAIT_UNLISTED},
                                {"explicit", HOSTWAIT_EXPLICIT},
                                {"sync", HOSTWAIT_SYNC},
                                {"all", HOSTWAIT_ALL}};

template <std::size_t N>
bool look_up(const named (&table)[N], word w, std::uint32_t& value) noexcept {
  for (const named& entry : table) {
    if (w.is(entry.name)) {
      value = entry.value;
      return true;
    }
  }
  return false;
}

// Calls f(word) for each part of `text` between `separator`s; stops and returns false if f does.
template <class F>
bool split(word text, char separator, F f) noexcept {
  const char* end = text.begin + text.length;
  for (const char* p = text.begin;;) {
    const char* q = p;
    while (q != end && *q != separator) ++q;
    if (!f(word{p, static_cast<std::size_t>(q - p)})) return false;
    if (q == end) return true;
    p = q + 1;
  }
}

template <class Number>
bool parse_number(word w, Number limit, Number& value) noexcept {
  if (w.length == 0 || w.length > (sizeof limit > 4 ? 15 : 9)) return false;
  Number n = 0;
  for (std::size_t i = 0; i < w.length; ++i) {
    if (w.begin[i] < '0' || w.begin[i] > '9') return false;
    n = n * 10 + static_cast<Number>(w.begin[i] - '0');
  }
  if (n > limit) return false;
  value = n;
  return true;
}

bool parse_choice(word w, const char* on, const char* off, bool& value) noexcept {
  if (w.is(on)) return value = true, true;
  if (w.is(off)) return value = false, true;
  return false;
}

template <std::size_t N>
bool copy_text(word w, char (&out)[N]) noexcept {
  if (w.length >= N) return false;
  std::memcpy(out, w.begin, w.length);
  out[w.length] = '\0';
  return true;
}

bool parse_kinds(word list, std::uint32_t& kinds, word& bad) noexcept {
  kinds = 0;
  return split(list, ',', [&](word w) noexcept {
    std::uint32_t bits = 0;
    if (!look_up(kind_names, w, bits)) {
      bad = w;
      return false;
    }
    kinds |= bits;
    return true;
  });
}

constexpr const char* actions_remedy = "use allow, log, fail, error, abort or trap";
constexpr const char* kinds_remedy =
    "kinds are device_sync stream_sync event_sync copy async_copy memset free host_free alloc "
    "module context queue_full poll unlisted, groups explicit sync all";

// One key=value. Returns null, or the remedy for a wrong one; `bad` is the wrong part.
const char* apply(word key, word value, options& out, word& bad) noexcept {
  bad = value;
  if (key.is("level")) {
    word action = value, list{"all", 3};
    for (std::size_t i = 0; i < value.length; ++i) {
      if (value.begin[i] == '@') {
        action.length = i;
        list = word{value.begin + i + 1, value.length - i - 1};
        break;
      }
    }
    std::uint32_t number = 0, kinds = 0;
    bad = action;
    if (!look_up(action_names, action, number)) return actions_remedy;
    if (!parse_kinds(list, kinds, bad)) return kinds_remedy;
    out.level = policy::lay_over(out.level, policy::fill(kinds, number, policy::unnamed));
    return nullptr;
  }
  if (key.is("arm")) {
    std::uint32_t kinds = 0;
    if (!parse_kinds(value, kinds, bad) || (kinds & ~policy::start_only_kinds) != 0)
      return "use queue_full, poll, unlisted";
    out.armed |= kinds;
    return nullptr;
  }
  if (key.is("own_cost")) {
    std::uint32_t parts[2] = {out.own_cost_us, out.own_cost_gb_per_s};
    unsigned n = 0;
    const bool fine = split(value, ',', [&](word w) noexcept {
      return n < 2 && parse_number(w, 1000000u, parts[n++]);
    });
    if (!fine || parts[1] == 0) return "use MICROSECONDS or MICROSECONDS,GB_PER_S, as 120,1";
    out.own_cost_us = parts[0];
    out.own_cost_gb_per_s = parts[1];
    return nullptr;
  }
  if (key.is("window")) {
    std::uint64_t parts[2] = {0, 0};
    unsigned n = 0;
    const bool fine = split(value, ',', [&](word w) noexcept {
      return n < 2 && parse_number(w, std::uint64_t{999999999999999}, parts[n++]);
    });
    if (!fine || n != 2 || (parts[1] != 0 && parts[1] <= parts[0]))
      return "use BEGIN,END in milliseconds of CLOCK_MONOTONIC, END later than BEGIN or 0";
    out.window_begin_ms = parts[0];
    out.window_end_ms = parts[1];
    return nullptr;
  }
  if (key.is("threshold_us"))
    return parse_number(value, 100000000u, out.threshold_us) ? nullptr : "use 0 to 100000000";
  if (key.is("stacks")) return parse_number(value, 64u, out.stacks) ? nullptr : "use 0 to 64";
  if (key.is("pystacks")) return parse_number(value, 64u, out.pystacks) ? nullptr : "use 0 to 64";
  if (key.is("max_sites"))
    return parse_number(value, 10000000u, out.max_sites) && out.max_sites != 0
               ? nullptr
               : "use 1 to 10000000";
  if (key.is("routes"))
    return parse_choice(value, "all", "nolink", out.link_route) ? nullptr : "use all or nolink";
  if (key.is("deepbind"))
    return parse_choice(value, "strip", "keep", out.strip_deepbind) ? nullptr : "use strip or keep";
  if (key.is("depends"))
    return parse_choice(value, "refuse", "allow", out.refuse_depends) ? nullptr
                                                                      : "use allow or refuse";
  if (key.is("capture_range"))
    return parse_choice(value, "profiler", "all", out.capture_range_profiler)
               ? nullptr
               : "use all or profiler";
  // Known names without a function yet: silence would be taken for obedience.
  if (key.is("trace")) return value.is("0") ? nullptr : "this version keeps sums only: trace=0";
  if (key.is("policy"))
    return value.length == 0 ? nullptr : "this version reads no rules file: leave it out";
  if (key.is("gap")) return parse_choice(value, "1", "0", out.gap) ? nullptr : "use gap=1";
  if (key.is("help")) return parse_choice(value, "1", "0", out.help) ? nullptr : "use help=1";
  if (key.is("output")) return copy_text(value, out.output) ? nullptr : "the path is too long";
  if (key.is("range")) return copy_text(value, out.range) ? nullptr : "at most 511 bytes";
  if (key.is("threads")) return copy_text(value, out.threads) ? nullptr : "at most 511 bytes";
  if (key.is("profile")) return copy_text(value, out.profile) ? nullptr : "the path is too long";
  bad = key;
  return "HOSTWAIT_OPTIONS=help=1 lists the keys";
}

}  // namespace

bool parse_options(const char* text, options& out, char* error, std::size_t error_bytes) noexcept {
  line message{error, error_bytes};
  if (text == nullptr) return true;
  char item[4096 + 64];
  while (*text != '\0') {
    std::size_t length = 0, equals = 0;
    bool have_equals = false, too_long = false;
    for (; *text != '\0' && *text != ':'; ++text) {
      if (*text == '\\' && (text[1] == ':' || text[1] == '\\')) ++text;
      if (*text == '=' && !have_equals) {
        have_equals = true;
        equals = length;
      }
      if (length + 1 < sizeof item) {
        item[length++] = *text;
      } else {
        too_long = true;
      }
    }
    if (*text == ':') ++text;
    if (length == 0) continue;
    word bad{item, length};
    const char* remedy = "write key=value, joined by ':'";
    if (too_long) {
      remedy = "the value is too long";
      bad.length = have_equals ? equals : 32;
    } else if (have_equals) {
      remedy = apply(word{item, equals}, word{item + equals + 1, length - equals - 1}, out, bad);
    }
    if (remedy != nullptr) {
      message.add("HOSTWAIT_OPTIONS: ");
      message.add(word{item, length < 80 ? length : 80});
      message.add(": '");
      message.add(word{bad.begin, bad.length < 80 ? bad.length : 80});
      message.add("' is not understood: ");
      message.add(remedy);
      return false;
    }
  }
  return true;
}

std::size_t describe_options(char* out, std::size_t room) noexcept {
  line text{out, room};
  text.add("hostwait: HOSTWAIT_OPTIONS takes key=value joined by ':' (\\: and \\\\ escape)\n");
#define HW_OPTION(key, type, initial, help) \
  text.add("  " #key "=" #type "  [" initial "]  " help "\n");
#include "options.def"
#undef HW_OPTION
  return text.used;
}

}  // namespace hostwait
