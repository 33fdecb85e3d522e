// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The table on the terminal.
#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "blocks.hpp"
#include "escape.hpp"
#include "groups.hpp"
#include "report.hpp"
#include "symbols/demangle.hpp"

namespace hostwait {

namespace {

std::string pad_right(const std::string& text, std::size_t width) {
  const std::size_t columns = columns_of(text);
  return columns < width ? text + std::string(width - columns, ' ') : text;
}

std::string plural(std::uint64_t n, const char* one) {
  return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s");
}

std::string native_where(const native_frame& frame) {
  const std::string name = shorten_name(frame.name());
  if (frame.file.empty() || frame.owner != frame_owner::user) return name;
  return fmt::format("{}:{} {}", base_name(frame.file), frame.line, name);
}

std::string programs(const run_report& report) {
  if (report.processes.empty()) return "no process";
  const process_info& first = report.processes.front();
  std::string text = fmt::format("{} ({})", for_terminal(first.program), first.pid);
  if (report.processes.size() > 1)
    text += fmt::format(" and {} more process{}", report.processes.size() - 1,
                        report.processes.size() > 2 ? "es" : "");
  return text;
}

std::string head(const run_report& report) {
  std::string text = "hostwait: " + plural(report.findings.size(), "finding");
  if (report.violations() > 0) text += ", " + plural(report.violations(), "violation");
  text += " in " + programs(report);
  if (report.calls() == 0) {
    text += ": no CUDA driver call seen";
  } else {
    text += ": " + human_time(report.waited_ns()) + " waited";
    std::uint64_t longest = 0;
    for (const process_info& each : report.processes) longest = std::max(longest, each.run_ns);
    if (longest > 0) text += " of " + human_time(longest);
  }
  text += "; driver " + (report.driver.empty() ? "unknown" : for_terminal(report.driver));
  text += "; routes ";
  if (report.routes.empty()) text += "none";
  for (std::size_t i = 0; i < report.routes.size(); ++i)
    text += (i > 0 ? ", " : "") + for_terminal(report.routes[i]);
  return text + '\n';
}

// What the reader must know before trusting the table.
std::string warnings(const run_report& report) {
  std::string text;
  if (report.blind()) {
    text += "blind: some driver calls could not be seen:\n";
    for (const std::string& why : report.why_blind) text += "  " + for_terminal(why) + '\n';
  } else {
    for (const std::string& why : report.why_blind) text += "note: " + for_terminal(why) + '\n';
  }
  for (const process_info& each : report.processes) {
    const std::string who = fmt::format("{} ({})", for_terminal(each.program), each.pid);
    if (each.full)
      text += fmt::format(
          "full: {} had no room for more sites (max_sites, the disk, or a limit on file sizes): {} "
          "fell into \"other\"\n",
          who, plural(each.dropped_sites, "look-up"));
    if (each.config_error)
      text += fmt::format(
          "config error: HOSTWAIT_OPTIONS of {} was wrong and defaults were used; "
          "HOSTWAIT_OPTIONS=help=1 lists the keys\n",
          who);
    if (each.alive) {
      text += fmt::format("{} still runs: these are its figures so far\n", who);
    } else if (!each.sealed) {
      text += fmt::format("{} ended without closing its record (killed, or _exit)\n", who);
    }
    for (const hanging_call& hanging : each.hanging) {
      text += fmt::format("thread {} {} {} {}{}\n", hanging.tid, for_terminal(hanging.thread_name),
                          each.alive ? "is in" : "was at the end in", for_terminal(hanging.call),
                          hanging.ns > 0 ? " for " + human_time(hanging.ns) : "");
      if (!hanging.at.call.empty()) text += "  at " + where_of(hanging.at) + '\n';
    }
  }
  return text;
}

struct widths {
  std::size_t call = 4, kind = 11, calls = 5, waited = 6, latent = 6, refused = 7, total = 8,
              max = 7;
};

std::string row(const widths& w, const std::string& call, const std::string& kind,
                const std::string& calls, const std::string& waited, const std::string& latent,
                const std::string& refused, const std::string& total, const std::string& max,
                const std::string& where) {
  return fmt::format(" {}  {} {:>{}} {:>{}} {:>{}} {:>{}} {:>{}} {:>{}}  {}",
                     pad_right(call, w.call), pad_right(kind, w.kind), calls, w.calls, waited,
                     w.waited, latent, w.latent, refused, w.refused, total, w.total, max, w.max,
                     where);
}

// The holder of most of the time.
std::string held_by(const finding& each) {
  const holding_call& first = each.held_by.front();
  std::string text = fmt::format("{} by {} on thread {}", each.sum.held > 0 ? "" : "  held",
                                 for_terminal(first.call), for_terminal(first.thread_name));
  if (first.site) text += " at " + where_of(*first.site);
  if (each.held_by.size() > 1) text += fmt::format(" and {} more", each.held_by.size() - 1);
  return text;
}

std::string row_of(const widths& w, const finding& each) {
  std::string where = where_of(each);
  if (each.sum.held > 0) where += fmt::format("  held {}", each.sum.held);
  if (!each.held_by.empty()) where += held_by(each);
  if (each.sum.violations > 0) where += fmt::format("  violations {}", each.sum.violations);
  return row(w, for_terminal(each.runtime_call), kind_name(each.kind),
             std::to_string(each.sum.calls), std::to_string(each.sum.waited),
             std::to_string(each.sum.latent), std::to_string(each.sum.refused),
             human_time(each.sum.total_ns), human_time(each.sum.max_ns), where);
}

// What these calls take by themselves is not known, so neither is whether they waited.
bool own_cost_unknown(std::uint32_t kind) {
  return kind == HOSTWAIT_KIND_ALLOC || kind == HOSTWAIT_KIND_MODULE ||
         kind == HOSTWAIT_KIND_CONTEXT;
}

std::string table(const std::vector<const finding*>& rows, const text_style& style) {
  widths w;
  for (const finding* row : rows) {
    const finding& each = *row;
    w.call = std::max(w.call, columns_of(for_terminal(each.runtime_call)));
    w.calls = std::max(w.calls, std::to_string(each.sum.calls).size());
    w.waited = std::max(w.waited, std::to_string(each.sum.waited).size());
    w.latent = std::max(w.latent, std::to_string(each.sum.latent).size());
    w.refused = std::max(w.refused, std::to_string(each.sum.refused).size());
  }
  std::string text;
  const auto add = [&](std::string line, paint how = paint::plain) {
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += painted(style.colour, how, style.width > 0 ? cut_to(line, style.width) : line) + '\n';
  };
  add(row(w, "call", "kind", "calls", "waited", "latent", "refused", "total", "max", "where"),
      paint::bold);
  bool latent = false;
  for (const finding* each : rows) {
    if (each->only_latent() && !latent) {
      latent = true;
      const bool unsure = std::any_of(rows.begin(), rows.end(), [](const finding* of) {
        return of->only_latent() && own_cost_unknown(of->kind);
      });
      add(std::string(" would wait on a busier GPU (nothing to wait for this time") +
              (unsure ? "; of module and context calls that is not known):" : "):"),
          paint::bold);
    }
    add(row_of(w, *each), latent                     ? paint::dim
                          : each->sum.violations > 0 ? paint::red
                                                     : paint::plain);
  }
  return text;
}

// One word for a shell.
std::string quoted(const std::string& path) {
  const std::string safe = for_terminal(path);
  if (safe.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "/._-+=:,@%") == std::string::npos)
    return safe;
  std::string out = "'";
  for (const char c : safe) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string tail(const run_report& report, const text_style& style) {
  std::string text;
  std::string all;
  for (const process_info& each : report.processes) {
    all += ' ' + quoted(each.record);
  }
  const bool one = report.processes.size() == 1;
  if (one) {
    text += "record" + all;
  } else {
    text += fmt::format("{} records:{}", report.processes.size(), all);
  }
  if (style.next_command) text += "    next: hostwait report" + all;
  return text + '\n';
}

}  // namespace

std::vector<const finding*> rows_of(const run_report& report, std::size_t limit) {
  std::vector<const finding*> rows;
  for (const bool latent : {false, true}) {
    for (const finding& each : report.findings) {
      if (each.only_latent() == latent) rows.push_back(&each);
    }
  }
  if (limit != 0 && rows.size() > limit) rows.resize(limit);
  return rows;
}

std::string human_time(std::uint64_t ns) {
  constexpr const char* units[] = {"ns", "us", "ms", "s"};
  if (ns < 1000) return fmt::format("{} ns", ns);
  double value = static_cast<double>(ns);
  std::size_t unit = 0;
  while (unit < 3 && value >= 999.5) {
    value /= 1000;
    ++unit;
  }
  return value < 99.95 ? fmt::format("{:.1f} {}", value, units[unit])
                       : fmt::format("{:.0f} {}", value, units[unit]);
}

std::string where_of(const finding& of) {
  std::string text;
  const native_frame* library = library_frame(of);
  if (const python_frame* python = user_python_frame(of)) {
    text = fmt::format("{}:{} {}", base_name(python->file), python->line, python->function);
    if (library == nullptr) library = user_frame(of);
  } else if (const native_frame* native = user_frame(of)) {
    text = native_where(*native);
  }
  if (library != nullptr) {
    if (!text.empty()) text += " < ";
    text += native_where(*library);
  } else if (text.empty() && !of.native.empty()) {
    text = native_where(of.native.front());
  }
  if (text.empty()) text = of.other ? "no room for the site, or the record was locked" : "no stack";
  if (on_library_thread(of))
    text += "  on a library's thread: the line that caused it is not known";
  if (!of.label.empty()) text += "  label " + of.label;
  if (!of.range.empty()) text += "  range " + of.range;
  return for_terminal(text);
}

std::size_t terminal_width(int descriptor) {
  if (::isatty(descriptor) == 0) return 0;
  if (const char* columns = std::getenv("COLUMNS")) {
    const long n = std::strtol(columns, nullptr, 10);
    if (n > 0) return static_cast<std::size_t>(n);
  }
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool terminal_colour(int descriptor) {
  const char* unwanted = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return ::isatty(descriptor) != 0 && (unwanted == nullptr || *unwanted == '\0') &&
         terminal != nullptr && std::string(terminal) != "dumb";
}

std::string percent(std::uint64_t part, std::uint64_t of) {
  if (of == 0) return "";
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(of));
}

std::string text_report(const run_report& report, const text_style& style) {
  std::string text = painted(style.colour, paint::bold, head(report));
  text += painted(style.colour, paint::red, warnings(report));
  if (style.by != grouping::finding) {
    text += group_table(report, style);
  } else {
    const std::vector<const finding*> rows = rows_of(report, style.limit);
    if (!rows.empty()) text += table(rows, style);
    if (rows.size() < report.findings.size())
      text +=
          fmt::format(" and {} more; --limit 0 shows all\n", report.findings.size() - rows.size());
    if (style.detail) {
      text += details(rows, style);
    } else {
      text += advice_block(rows, style);
    }
  }
  text += captures_block(report, style);
  if (report.calls() == 0) {
    text += "nothing was seen, which does not mean that nothing waited\n";
  }
  for (const std::string& note : report.notes) text += "note: " + for_terminal(note) + '\n';
  if (!report.processes.empty()) text += tail(report, style);
  return text;
}

}  // namespace hostwait
