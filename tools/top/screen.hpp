// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// One frame of hostwait top as text.
#pragma once

#include <map>
#include <string>

#include "report/report.hpp"

namespace hostwait {

// What the rows are sorted by; the key that chooses it is its first letter.
enum class top_order : std::uint8_t { waited, total, calls, max, latent, now };

struct screen_style {
  std::size_t width = 0, height = 0;  // of the terminal; 0 = do not cut
  top_order order = top_order::waited;
  bool colour = false;
  bool keys = false;   // the last line says which keys there are
  bool fresh = false;  // `before` is the frame before: the column "now" has figures
  bool paused = false;
  std::string news;  // a line on top of the table: the record went away, …
};

// Waited time of each finding when the last frame was drawn, for the column "now".
struct screen_state {
  std::map<std::string, std::uint64_t> waited_ns;
  std::uint64_t mono_ns = 0;
};

// Draws `report` and leaves its figures in `state`, whose old ones are the base of "now".
std::string draw_screen(const run_report& report, const screen_style& style, screen_state& state,
                        std::uint64_t now_mono_ns);

// The orders by name; the first letters differ.
const std::map<std::string, top_order>& top_orders();

}  // namespace hostwait
