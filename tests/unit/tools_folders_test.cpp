// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Finding, grouping and moving of records; the composed LD_PRELOAD.
#include "folders.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "failure.hpp"
#include "run/preload.hpp"
#include "support/catch.hpp"
#include "support/record_builder.hpp"

using namespace hostwait;
namespace fs = std::filesystem;

namespace {

class scratch {
 public:
  explicit scratch(const char* parent = "/tmp") : path_(std::string(parent) + "/hw-test-XXXXXX") {
    REQUIRE(::mkdtemp(path_.data()) != nullptr);
  }
  ~scratch() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + '/' + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

record_file loaded(const std::string& path) {
  read_error error;
  auto record = record_file::load(path, error);
  INFO(error.line());
  REQUIRE(record.has_value());
  return std::move(*record);
}

}  // namespace

TEST_CASE("only own regular files with a record's name count") {
  const scratch folder;
  test::training_run("", 1).write(folder / "hostwait-a-h-1-1-1.hwr");
  test::training_run("", 2).write(folder / "other.hwr");
  fs::create_directory(folder / "hostwait-dir.hwr");
  fs::create_symlink(folder / "other.hwr", folder / "hostwait-link.hwr");
  CHECK(records_in(folder.path()) == std::vector<std::string>{folder / "hostwait-a-h-1-1-1.hwr"});
  CHECK(records_in(folder / "none").empty());
}

TEST_CASE("named input: files, folders, each once, and one line for what is wrong") {
  const scratch folder;
  const std::string path = folder / "hostwait-a.hwr";
  test::training_run("", 1).write(path);
  CHECK(load_named({path, folder.path(), path}).size() == 1);
  CHECK_THROWS_WITH(load_named({folder / "none"}), ContainsSubstring("none: cannot be read"));
  const scratch empty;
  CHECK_THROWS_WITH(load_named({empty.path()}), ContainsSubstring("no record in this folder"));
  std::ofstream(folder / "hostwait-b.hwr") << "junk";
  CHECK_THROWS_WITH(load_named({folder.path()}), ContainsSubstring("hostwait-b.hwr: header"));
}

TEST_CASE("records are grouped by run id, or by parent and child") {
  const scratch folder;
  const auto write = [&](const char* run, std::uint32_t pid, std::uint32_t ppid) {
    auto record = test::training_run(run, pid);
    record.header.ppid = ppid;
    const std::string path = folder / ("hostwait-" + std::to_string(pid) + ".hwr");
    record.write(path);
    return loaded(path);
  };
  std::vector<record_file> records;
  records.push_back(write("aa", 10, 1));
  records.push_back(write("", 20, 1));
  records.push_back(write("aa", 30, 1));
  records.push_back(write("", 40, 20));
  records.push_back(write("", 50, 1));
  const auto runs = group_by_run(std::move(records));
  REQUIRE(runs.size() == 3);
  CHECK(runs[0].size() == 2);
  CHECK(runs[1].size() == 2);
  CHECK(runs[2].front().header().pid == 50);
}

TEST_CASE("a record is moved within and across file systems, never over another") {
  const scratch here, there("/dev/shm");
  const std::string path = there / "hostwait-a.hwr";
  test::training_run("", 1).write(path);
  const std::string moved = move_into(path, here.path());
  CHECK(moved == here / "hostwait-a.hwr");
  CHECK_FALSE(fs::exists(path));
  CHECK(loaded(moved).header().pid == 1);
  struct stat status {};
  REQUIRE(::stat(moved.c_str(), &status) == 0);
  CHECK((status.st_mode & 0077) == 0);

  test::training_run("", 2).write(path);
  CHECK_THROWS_WITH(move_into(path, here.path()), ContainsSubstring("is there already"));
  CHECK(loaded(path).header().pid == 2);
  CHECK(loaded(moved).header().pid == 1);
  CHECK(move_into(moved, here.path()) == moved);
  fs::create_directory(here / "sub");
  CHECK(loaded(move_into(moved, here / "sub")).header().pid == 1);
}

TEST_CASE("existing preloads are kept, sanitizers stay first, nothing comes twice") {
  CHECK(combine_preloads("", "/l/a.so:/l/b.so") == "/l/a.so:/l/b.so");
  CHECK(combine_preloads("/x.so", "/l/a.so") == "/l/a.so:/x.so");
  CHECK(combine_preloads("/u/libasan.so.8 /x.so", "/l/a.so") == "/u/libasan.so.8:/l/a.so:/x.so");
  CHECK(combine_preloads("/x.so:/u/libasan.so.8", "/l/a.so") == "/l/a.so:/x.so:/u/libasan.so.8");
  CHECK(combine_preloads("/c/libclang_rt.tsan-x86_64.so", "/l/a.so") ==
        "/c/libclang_rt.tsan-x86_64.so:/l/a.so");
  CHECK(combine_preloads("/l/a.so:/x.so", "/l/a.so") == "/l/a.so:/x.so");
}

TEST_CASE("a library path with a space or colon goes through a link that is removed again") {
  const scratch folder;
  fs::create_directory(folder / "a b:c");
  const std::string library = folder / "a b:c/lib.so";
  std::ofstream(library) << "library";
  std::string link;
  {
    const preload_path path(library);
    link = path.text();
    CHECK(link.find_first_of(" :") == std::string::npos);
    CHECK(fs::equivalent(link, library));
    CHECK((fs::status(fs::path(link).parent_path()).permissions() & fs::perms::others_all) ==
          fs::perms::none);
  }
  CHECK_FALSE(fs::exists(fs::path(link).parent_path()));
  CHECK(preload_path("/plain/lib.so").text() == "/plain/lib.so");
}
