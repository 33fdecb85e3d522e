// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Finding, grouping and moving records.
#include "folders.hpp"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "failure.hpp"
#include "log.hpp"
#include "symbols/frames.hpp"

namespace hostwait {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void cannot(const std::string& what, const std::string& path, int error) {
  throw failure(exit_usage, path + ": " + what + ": " + std::strerror(error));
}

class descriptor {
 public:
  explicit descriptor(int fd) : fd_(fd) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

void copy_contents(int from, int to, const std::string& target) {
  struct stat status {};
  if (::fstat(from, &status) != 0) cannot("cannot be read", target, errno);
  off_t offset = 0;
  while (offset < status.st_size) {
    const ssize_t sent =
        ::sendfile(to, from, &offset, static_cast<std::size_t>(status.st_size - offset));
    if (sent <= 0) {
      const int error = sent == 0 ? EIO : errno;
      ::unlink(target.c_str());
      cannot("cannot be written", target, error);
    }
  }
}

}  // namespace

std::vector<std::string> live_folders() {
  std::vector<std::string> folders;
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  for (const char* folder : {"/dev/shm", runtime, "/tmp"}) {
    if (folder != nullptr && *folder == '/' && ::access(folder, R_OK | X_OK) == 0)
      folders.emplace_back(folder);
  }
  return folders;
}

std::vector<std::string> records_in(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (fs::directory_iterator at(folder, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with("hostwait-") || !name.ends_with(HOSTWAIT_RECORD_SUFFIX)) continue;
    // Anyone can put files into a shared folder.
    struct stat status {};
    if (::lstat(at->path().c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_uid == ::geteuid())
      found.push_back(at->path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<record_file> load_named(const std::vector<std::string>& names) {
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    std::error_code ignored;
    if (!fs::is_directory(name, ignored)) {
      paths.push_back(name);
      continue;
    }
    const std::vector<std::string> inside = records_in(name);
    if (inside.empty())
      throw failure(exit_usage, name +
                                    ": no record in this folder; records are named "
                                    "hostwait-*.hwr and must be yours");
    paths.insert(paths.end(), inside.begin(), inside.end());
  }
  std::vector<record_file> records;
  std::set<std::string> seen;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (!seen.insert(fs::weakly_canonical(path, ignored).string()).second) continue;
    read_error error;
    std::optional<record_file> record = record_file::load(path, error);
    if (!record) throw failure(exit_usage, error.line());
    records.push_back(std::move(*record));
  }
  return records;
}

std::vector<record_file> records_of_run(const std::vector<std::string>& folders,
                                        const std::string& run_id) {
  std::vector<record_file> records;
  for (const std::string& folder : folders) {
    for (const std::string& path : records_in(folder)) {
      // Live folders may hold large records of other runs.
      if (record_file::peek_run_id(path) != run_id) continue;
      read_error error;
      std::optional<record_file> record = record_file::load(path, error);
      if (record) {
        records.push_back(std::move(*record));
      } else {
        log_warning(error.line());
      }
    }
  }
  std::sort(records.begin(), records.end(), [](const record_file& a, const record_file& b) {
    return a.header().start_real_ns < b.header().start_real_ns;
  });
  return records;
}

std::vector<std::vector<record_file>> group_by_run(std::vector<record_file> records) {
  std::sort(records.begin(), records.end(), [](const record_file& a, const record_file& b) {
    return std::pair(a.header().start_real_ns, a.path()) <
           std::pair(b.header().start_real_ns, b.path());
  });
  std::vector<std::vector<record_file>> runs;
  std::map<std::string, std::size_t> by_id;
  std::map<std::pair<std::string, std::uint32_t>, std::size_t> by_process;
  for (record_file& record : records) {
    const std::string id = record.run_id();
    const std::string host(record.string(record.header().host));
    std::size_t run = runs.size();
    if (!id.empty()) {
      run = by_id.emplace(id, run).first->second;
    } else if (const auto parent = by_process.find({host, record.header().ppid});
               parent != by_process.end()) {
      run = parent->second;
    }
    if (id.empty()) by_process[{host, record.header().pid}] = run;
    if (run == runs.size()) runs.emplace_back();
    runs[run].push_back(std::move(record));
  }
  return runs;
}

std::vector<record_file> newest_run() {
  std::vector<std::string> folders = live_folders();
  folders.emplace_back(".");
  std::vector<record_file> all;
  std::string first_error;
  for (const std::string& folder : folders) {
    for (const std::string& path : records_in(folder)) {
      read_error error;
      std::optional<record_file> record = record_file::load(path, error);
      if (record) {
        all.push_back(std::move(*record));
      } else if (first_error.empty()) {
        first_error = error.line();
      }
    }
  }
  if (all.empty())
    throw failure(exit_usage, first_error.empty()
                                  ? "no record in the live folders or here; make one with "
                                    "hostwait run -- PROGRAM, or name it"
                                  : first_error);
  std::vector<std::vector<record_file>> runs = group_by_run(std::move(all));
  return std::move(runs.back());
}

std::string move_into(const std::string& path, const std::string& folder) {
  const std::string target = (fs::path(folder) / base_name(path)).string();
  std::error_code ignored;
  if (fs::equivalent(path, target, ignored)) return target;
  // link() and unlink(): rename() would overwrite.
  if (::link(path.c_str(), target.c_str()) == 0) {
    ::unlink(path.c_str());
    return target;
  }
  if (errno == EEXIST)
    throw failure(exit_usage, target + ": is there already; choose another --output folder");
  const descriptor from(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (from.get() < 0) cannot("cannot be read", path, errno);
  const descriptor to(
      ::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (to.get() < 0) cannot("cannot be written", target, errno);
  copy_contents(from.get(), to.get(), target);
  ::unlink(path.c_str());
  return target;
}

}  // namespace hostwait
