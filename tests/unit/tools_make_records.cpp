// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Writes sample records.
//   hostwait_make_records corpus DIR   seeds of the record fuzzer
//   hostwait_make_records as-shim [violation] [blind] [config_error] [exit N] [folder DIR]
//                                      plays a program under the shim: a record with the run's id
//   hostwait_make_records live DIR     keeps a record mapped until stdin ends, then prints its
//                                      control entry: paused, actions, generation
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "support/record_builder.hpp"

using hostwait::test::record_builder;

namespace {

std::string record_name(const std::string& folder) {
  return folder + "/hostwait-sample-HOST-" + std::to_string(::getpid()) + "-1-" +
         std::to_string(::getppid()) + HOSTWAIT_RECORD_SUFFIX;
}

void write_bytes(const std::string& path, const std::vector<std::byte>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

int corpus(const std::string& folder) {
  record_builder split = hostwait::test::training_run("", 2);
  split.split_extents(48);
  record_builder blind = hostwait::test::training_run("ff", 3);
  blind.header.flags = HOSTWAIT_RECORD_BLIND | HOSTWAIT_RECORD_FULL;
  std::snprintf(blind.header.why_blind, sizeof blind.header.why_blind,
                "dlmopen\ncuX: 2 look-ups gave an unknown function in y");
  record_builder newer = hostwait::test::training_run("", 4);
  newer.resize_entries(HOSTWAIT_SECTION_SITES, sizeof(hostwait_record_site) + 16);
  newer.resize_entries(HOSTWAIT_SECTION_COUNTERS, 24);
  hostwait::test::training_run("0123", 1).write(folder + "/training");
  split.write(folder + "/split");
  blind.write(folder + "/blind");
  newer.write(folder + "/newer");
  record_builder().write(folder + "/nothing");
  std::vector<std::byte> cut = hostwait::test::training_run("", 5).bytes();
  cut.resize(cut.size() - 100);
  write_bytes(folder + "/cut", cut);
  return 0;
}

int as_shim(const std::vector<std::string>& words) {
  const char* run = std::getenv("HOSTWAIT_RUN_ID");
  record_builder record = hostwait::test::training_run(run != nullptr ? run : "",
                                                       static_cast<std::uint32_t>(::getpid()));
  std::string folder = "/dev/shm";
  int status = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "violation")
      record.at<hostwait_record_counters>(HOSTWAIT_SECTION_COUNTERS, 0).violations = 60;
    if (words[i] == "blind") record.header.flags |= HOSTWAIT_RECORD_BLIND;
    if (words[i] == "config_error") record.header.flags |= HOSTWAIT_RECORD_CONFIG_ERROR;
    if (words[i] == "exit") status = std::atoi(words.at(++i).c_str());
    if (words[i] == "folder") folder = words.at(++i);
  }
  record.write(record_name(folder));
  return status;
}

int live(const std::string& folder) {
  record_builder record = hostwait::test::training_run("", static_cast<std::uint32_t>(::getpid()));
  record.header.state = HOSTWAIT_RECORD_OPEN;
  const std::vector<std::byte> bytes = record.bytes();
  const std::string path = record_name(folder);
  write_bytes(path, bytes);
  const int descriptor = ::open(path.c_str(), O_RDWR);
  void* mapped = ::mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (mapped == MAP_FAILED) return 1;
  std::puts(path.c_str());
  std::fflush(stdout);
  while (std::getchar() != EOF) continue;
  const auto& header = *static_cast<const hostwait_record_header*>(mapped);
  for (const hostwait_record_extent& extent : header.extents) {
    if (extent.id != HOSTWAIT_SECTION_CONTROL) continue;
    hostwait_record_control control;
    std::memcpy(&control, static_cast<const char*>(mapped) + extent.offset, sizeof control);
    std::printf("%u %" PRIx64 " %u\n", control.paused, control.actions, control.generation);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 2 && words[0] == "corpus") return corpus(words[1]);
  if (words.size() == 2 && words[0] == "live") return live(words[1]);
  if (!words.empty() && words[0] == "as-shim") return as_shim(words);
  std::fprintf(stderr, "usage: see the head of tools_make_records.cpp\n");
  return 2;
}
