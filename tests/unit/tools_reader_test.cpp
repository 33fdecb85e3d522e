// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The record reader on good, newer, growing, cut, foreign and hostile files.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "record/reader.hpp"
#include "support/catch.hpp"
#include "support/record_builder.hpp"

using hostwait::read_error;
using hostwait::record_file;
using hostwait::test::record_builder;

namespace {

std::optional<record_file> parse(const std::vector<std::byte>& bytes, read_error& error) {
  return record_file::parse(bytes, "a.hwr", error);
}

// The line for a file that must be refused.
std::string refusal(const std::vector<std::byte>& bytes) {
  read_error error;
  CHECK_FALSE(parse(bytes, error).has_value());
  CHECK_FALSE(error.remedy.empty());
  CHECK(error.line().find('\n') == std::string::npos);
  return error.line();
}

hostwait_record_header& header_of(std::vector<std::byte>& bytes) {
  return *reinterpret_cast<hostwait_record_header*>(bytes.data());
}

hostwait_record_extent& extent_of(std::vector<std::byte>& bytes, std::uint32_t section) {
  for (hostwait_record_extent& extent : header_of(bytes).extents) {
    if (extent.id == section) return extent;
  }
  throw std::out_of_range("no such section");
}

std::vector<std::byte> sample() {
  return hostwait::test::training_run("0123abcd", 4711).bytes();
}

}  // namespace

TEST_CASE("a record is read back as it was built") {
  read_error error;
  const auto record = parse(sample(), error);
  REQUIRE(record.has_value());
  CHECK(record->run_id() == "0123abcd");
  CHECK(record->program() == "python3");
  CHECK(record->header().pid == 4711);
  CHECK(record->routes() == "dlsym, cuGetProcAddress");
  CHECK(record->driver_text() == "580.159");
  CHECK(record->sealed());
  CHECK(record->count(HOSTWAIT_SECTION_SITES) == 3);
  CHECK(record->string(record->call(0).name) == "cuMemcpyDtoHAsync_v2");
  CHECK(record->counters(1).waited == 40);
  CHECK(record->stack(record->site(0).native).size() == 4);
  CHECK(record->control_offset() % 64 == 0);
  CHECK(record->control_offset() > 0);
}

TEST_CASE("entries are numbered through several extents") {
  record_builder builder = hostwait::test::training_run("", 1);
  builder.resize_entries(HOSTWAIT_SECTION_STRINGS, 1);
  const auto whole = builder.bytes();
  builder.split_extents(64);  // strings cross the borders of their extents
  read_error error;
  const auto one = parse(whole, error), many = parse(builder.bytes(), error);
  REQUIRE(one.has_value());
  REQUIRE(many.has_value());
  for (std::uint32_t i = 0; i < 3; ++i)
    CHECK(one->string(one->call(i).name) == many->string(many->call(i).name));
  CHECK(one->string(one->module(0).path) == many->string(many->module(0).path));
  std::uint32_t visited = 0;
  many->for_each(HOSTWAIT_SECTION_COUNTERS, [&](std::uint32_t i) { CHECK(i == visited++); });
  CHECK(visited == 4);
}

TEST_CASE("longer entries are cut, shorter ones end in zeros, unknown sections are skipped") {
  record_builder builder = hostwait::test::training_run("", 1);
  builder.resize_entries(HOSTWAIT_SECTION_CALLS, sizeof(hostwait_record_call) + 24);
  builder.resize_entries(HOSTWAIT_SECTION_SITES, 24);  // up to and with `label`
  builder.add(77, std::uint64_t{1});
  builder.header.minor = 9;
  read_error error;
  const auto record = parse(builder.bytes(), error);
  REQUIRE(record.has_value());
  CHECK(record->string(record->call(2).name) == "cuMemFree_v2");
  CHECK(record->site(2).verdict == HOSTWAIT_VERDICT_CONTEXT);
  CHECK(record->site(2).native != 0);
  CHECK(record->site(2).bytes == 0);
  CHECK(record->site(2).flags == 0);
}

TEST_CASE("indices out of range give empty values") {
  read_error error;
  const auto record = parse(sample(), error);
  REQUIRE(record.has_value());
  CHECK(record->call(1000000).name == 0);
  CHECK(record->string(0xffffffffu).empty());
  CHECK(record->string(0).empty());
  CHECK(record->stack(0xfffffff0u).empty());
  CHECK_FALSE(record->has_entry(HOSTWAIT_SECTION_SITES, 3));
}

TEST_CASE("stacks that run in circles or forward end") {
  record_builder builder;
  const std::uint32_t a = builder.frame(0, 0x10, 0);
  const std::uint32_t b = builder.frame(a, 0x20, 0);
  builder.at<hostwait_record_frame>(HOSTWAIT_SECTION_FRAMES, a).parent = b;
  read_error error;
  const auto record = parse(builder.bytes(), error);
  REQUIRE(record.has_value());
  CHECK(record->stack(b).size() == 2);
}

TEST_CASE("a deep stack is bounded") {
  record_builder builder;
  std::uint32_t frame = 0;
  for (int i = 0; i < 5000; ++i) frame = builder.frame(frame, 0x10, 0);
  read_error error;
  const auto record = parse(builder.bytes(), error);
  REQUIRE(record.has_value());
  CHECK(record->stack(frame).size() == record_file::max_depth);
}

TEST_CASE("files that are no record are refused with one line") {
  CHECK_THAT(refusal({}), ContainsSubstring("empty"));
  CHECK_THAT(refusal(std::vector<std::byte>(3)), ContainsSubstring("not a record"));
  CHECK_THAT(refusal(std::vector<std::byte>(10000)), ContainsSubstring("not a record"));

  std::vector<std::byte> other = sample();
  header_of(other).major = 2;
  CHECK_THAT(refusal(other), ContainsSubstring("format 2." + std::to_string(HOSTWAIT_RECORD_MINOR) +
                                               ", this tool reads 1.x"));
}

TEST_CASE("a record that was cut short names the section") {
  const std::vector<std::byte> whole = sample();
  std::vector<std::byte> cut(whole.begin(), whole.begin() + 1000);
  CHECK_THAT(refusal(cut), ContainsSubstring("header: cut short"));
  cut.assign(whole.begin(), whole.end() - 10);
  CHECK_THAT(refusal(cut), ContainsSubstring("section"));
  CHECK_THAT(refusal(cut), ContainsSubstring("cut short"));
  cut.assign(whole.begin(), whole.begin() + HOSTWAIT_RECORD_HEADER_BYTES);
  CHECK_THAT(refusal(cut), ContainsSubstring("cut short"));
}

TEST_CASE("every cut of a record is refused or read, never more") {
  const std::vector<std::byte> whole = sample();
  read_error error;
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    const std::vector<std::byte> cut(whole.begin(),
                                     whole.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK_FALSE(parse(cut, error).has_value());
  }
}

TEST_CASE("hostile headers are refused") {
  std::vector<std::byte> bytes = sample();
  SECTION("more extents than the header holds") {
    header_of(bytes).extent_count = 0xffffffffu;
    CHECK_THAT(refusal(bytes), ContainsSubstring("extents"));
  }
  SECTION("count times size overflows") {
    extent_of(bytes, HOSTWAIT_SECTION_SITES).count = 0xffffffffu;
    extent_of(bytes, HOSTWAIT_SECTION_SITES).capacity = 0xffffffffu;
    extent_of(bytes, HOSTWAIT_SECTION_SITES).entry_size = 0xffffffffu;
    CHECK_THAT(refusal(bytes), ContainsSubstring("section sites"));
  }
  SECTION("offset beyond the file") {
    extent_of(bytes, HOSTWAIT_SECTION_SITES).offset = ~std::uint64_t{0} - 8;
    CHECK_THAT(refusal(bytes), ContainsSubstring("section sites"));
  }
  SECTION("an extent inside the header") {
    extent_of(bytes, HOSTWAIT_SECTION_CALLS).offset = 8;
    CHECK_THAT(refusal(bytes), ContainsSubstring("impossible"));
  }
  SECTION("entries without size") {
    extent_of(bytes, HOSTWAIT_SECTION_CALLS).entry_size = 0;
    CHECK_THAT(refusal(bytes), ContainsSubstring("impossible"));
  }
  SECTION("more entries than room") {
    extent_of(bytes, HOSTWAIT_SECTION_CALLS).capacity = 1;
    CHECK_THAT(refusal(bytes), ContainsSubstring("impossible"));
  }
  SECTION("strings that are not bytes") {
    extent_of(bytes, HOSTWAIT_SECTION_STRINGS).entry_size = 2;
    CHECK_THAT(refusal(bytes), ContainsSubstring("section strings"));
  }
  SECTION("extents that overlap, so that a small file costs much memory") {
    hostwait_record_header& header = header_of(bytes);
    for (hostwait_record_extent& extent : header.extents)
      extent = {HOSTWAIT_SECTION_STRINGS, 1, HOSTWAIT_RECORD_HEADER_BYTES,
                static_cast<std::uint32_t>(bytes.size() - HOSTWAIT_RECORD_HEADER_BYTES),
                static_cast<std::uint32_t>(bytes.size() - HOSTWAIT_RECORD_HEADER_BYTES)};
    header.extent_count = HOSTWAIT_RECORD_MAX_EXTENTS;
    CHECK_THAT(refusal(bytes), ContainsSubstring("overlap"));
  }
  SECTION("a short header") {
    header_of(bytes).header_bytes = 16;
    CHECK_THAT(refusal(bytes), ContainsSubstring("length"));
  }
}

TEST_CASE("a capacity as large as can be costs nothing") {
  std::vector<std::byte> bytes = sample();
  for (hostwait_record_extent& extent : header_of(bytes).extents) {
    if (extent.id != 0) extent.capacity = 0xffffffffu;
  }
  read_error error;
  const auto record = parse(bytes, error);
  REQUIRE(record.has_value());
  std::uint32_t visited = 0;
  record->for_each(HOSTWAIT_SECTION_COUNTERS, [&](std::uint32_t) { ++visited; });
  CHECK(visited == 4);
}

TEST_CASE("a string without an end stays inside its extent") {
  record_builder builder;
  const std::uint32_t at = builder.string("unterminated");
  std::vector<std::byte> bytes = builder.bytes();
  --extent_of(bytes, HOSTWAIT_SECTION_STRINGS).count;  // its NUL is not published yet
  read_error error;
  const auto record = parse(bytes, error);
  REQUIRE(record.has_value());
  CHECK(record->string(at) == "unterminated");
}

TEST_CASE("files on disk: missing, folder, pipe, growing") {
  char folder[] = "/tmp/hostwait-reader-XXXXXX";
  REQUIRE(::mkdtemp(folder) != nullptr);
  const std::string base = folder;
  read_error error;
  CHECK_FALSE(record_file::load(base + "/none.hwr", error).has_value());
  CHECK_THAT(error.line(), ContainsSubstring("none.hwr: cannot be read: No such file"));
  CHECK_FALSE(record_file::load(base, error).has_value());
  CHECK_THAT(error.line(), ContainsSubstring("not a regular file"));
  const std::string pipe = base + "/pipe.hwr";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_FALSE(record_file::load(pipe, error).has_value());  // and does not wait for a writer

  // A live file: room is reserved, entries beyond the published count are half written.
  record_builder builder = hostwait::test::training_run("", 1);
  builder.header.state = HOSTWAIT_RECORD_OPEN;
  std::vector<std::byte> bytes = builder.bytes();
  extent_of(bytes, HOSTWAIT_SECTION_SITES).count = 2;
  bytes.resize(bytes.size() + 65536);
  const std::string live = base + "/live.hwr";
  std::ofstream(live, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  const auto record = record_file::load(live, error);
  REQUIRE(record.has_value());
  CHECK_FALSE(record->sealed());
  CHECK(record->count(HOSTWAIT_SECTION_SITES) == 2);
  ::unlink(live.c_str());
  ::unlink(pipe.c_str());
  ::rmdir(folder);
}
