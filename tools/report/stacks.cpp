// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Folded stacks and speedscope's format.
#include "stacks.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "escape.hpp"
#include "hostwait/version.h"

namespace hostwait {

namespace {

using json = nlohmann::ordered_json;

std::string folded_name(const std::string& name) {
  std::string text = for_terminal(name);
  std::replace(text.begin(), text.end(), ';', '_');
  return text;
}

}  // namespace

std::vector<stack_frame> frames_of(const finding& of) {
  std::vector<stack_frame> frames;
  for (auto frame = of.python.rbegin(); frame != of.python.rend(); ++frame)
    frames.push_back({frame->function, frame->file, frame->line});
  const auto interpreter = std::find_if(
      of.native.begin(), of.native.end(),
      [](const native_frame& frame) { return frame.owner == frame_owner::interpreter; });
  // Outside of the interpreter's innermost frame the Python frames say it better.
  const auto end = of.python.empty() ? of.native.end() : interpreter;
  for (auto frame = std::make_reverse_iterator(end); frame != of.native.rend(); ++frame) {
    if (frame->owner != frame_owner::system)
      frames.push_back({frame->name(), frame->file, frame->line});
  }
  frames.push_back({of.runtime_call, "", 0});
  return frames;
}

std::string stack_line(const finding& of) {
  std::string text;
  const std::vector<stack_frame> frames = frames_of(of);
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (!text.empty()) text += " < ";
    text += frame->name;
    if (frame->line != 0) text += fmt::format(" ({}:{})", base_name(frame->file), frame->line);
  }
  return for_terminal(text);
}

std::string folded_report(const run_report& report) {
  std::string text;
  for (const finding& of : report.findings) {
    if (of.sum.waited_ns == 0) continue;
    std::string line;
    for (const stack_frame& frame : frames_of(of)) {
      if (!line.empty()) line += ';';
      line += folded_name(frame.name);
      if (frame.line != 0)
        line += fmt::format(" ({}:{})", folded_name(base_name(frame.file)), frame.line);
    }
    text += fmt::format("{} {}\n", line, std::max<std::uint64_t>(1, of.sum.waited_ns / 1000));
  }
  return text;
}

std::string speedscope_report(const run_report& report) {
  json frames = json::array(), profiles = json::array();
  std::map<std::tuple<std::string, std::string, std::uint32_t>, std::size_t> numbers;
  const auto number_of = [&](const stack_frame& frame) {
    const auto [at, fresh] =
        numbers.emplace(std::tuple(frame.name, frame.file, frame.line), numbers.size());
    if (fresh) {
      json entry = {{"name", frame.name}};
      if (!frame.file.empty()) entry["file"] = frame.file;
      if (frame.line != 0) entry["line"] = frame.line;
      frames.push_back(std::move(entry));
    }
    return at->second;
  };
  for (std::size_t process = 0; process < report.processes.size(); ++process) {
    json samples = json::array(), weights = json::array();
    std::uint64_t end = 0;
    for (const finding& of : report.findings) {
      std::uint64_t waited = 0;
      for (const share& part : of.shares)
        waited += part.process == process ? part.sum.waited_ns : 0;
      if (waited == 0) continue;
      json sample = json::array();
      for (const stack_frame& frame : frames_of(of)) sample.push_back(number_of(frame));
      samples.push_back(std::move(sample));
      weights.push_back(waited);
      end += waited;
    }
    // An empty report still is a file that can be opened.
    if (samples.empty() && report.processes.size() > 1) continue;
    const process_info& info = report.processes[process];
    profiles.push_back(
        {{"type", "sampled"},
         {"name", fmt::format("{} ({}): waited for the GPU", info.program, info.pid)},
         {"unit", "nanoseconds"},
         {"startValue", 0},
         {"endValue", end},
         {"samples", std::move(samples)},
         {"weights", std::move(weights)}});
  }
  const json document = {{"$schema", "https://www.speedscope.app/file-format-schema.json"},
                         {"exporter", "hostwait " HOSTWAIT_VERSION_STRING},
                         {"name", report.processes.empty() ? std::string("no process")
                                                           : report.processes.front().program},
                         {"activeProfileIndex", 0},
                         {"shared", {{"frames", std::move(frames)}}},
                         {"profiles", std::move(profiles)}};
  return document.dump(1, ' ', true, json::error_handler_t::replace) + '\n';
}

}  // namespace hostwait
