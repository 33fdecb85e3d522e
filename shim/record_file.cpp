// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The file behind the record: where it lies, how it is made and how it grows.
#include "record_file.hpp"

#include <errno.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <time.h>

#include <cstdlib>
#include <cstring>

#include "hostwait/record.h"
#include "record.hpp"
#include "record_text.hpp"
#include "sys.hpp"

namespace hostwait::record {

namespace {

// What one process may write, so that a program with endless new (thread, site) pairs cannot fill
// the machine's memory.
constexpr std::uint64_t max_file_bytes = std::uint64_t{512} << 20;

// The device and inode of descriptor 2 at start; a daemon that puts its own file there later must
// not find our lines in it.
struct stderr_identity {
  bool known;
  dev_t device;
  ino_t inode;
};
constinit stderr_identity stderr_at_start{};

constexpr std::uint64_t local_types[] = {
    0x01021994,  // tmpfs
    0x858458f6,  // ramfs
    0xef53,      // ext2, ext3, ext4
    0x58465342,  // xfs
    0x9123683e,  // btrfs
    0xf2f52010,  // f2fs
    0x794c7630,  // overlayfs
    0x2fc12fc1,  // zfs
    0xca451a4e,  // bcachefs
    0x3153464a,  // jfs
    0x52654973,  // reiserfs
    0x3434,      // nilfs2
    0x4d44,      // vfat
    0x2011bab0,  // exfat
    0x7366746e,  // ntfs3
    0x61756673,  // aufs
};

const char* reason_of(int error) noexcept {
  switch (-error) {
    case ENOENT:
      return "it does not exist";
    case ENOTDIR:
      return "it is no folder";
    case EACCES:
    case EPERM:
      return "not permitted";
    case EROFS:
      return "read-only file system";
    case ENOSPC:
    case EDQUOT:
      return "no space left";
    case EFBIG:
      return "the limit on file sizes (ulimit -f) is too small";
    case EXDEV:
      return "not a local file system";
    case EMFILE:
    case ENFILE:
      return "too many open files";
    default:
      return "the system refused";
  }
}

// Room for the bytes [from, from + bytes), or -errno. Never raises SIGXFSZ.
int reserve(int fd, std::uint64_t from, std::size_t bytes) noexcept {
  struct rlimit limit;
  if (sys::call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, reinterpret_cast<long>(&limit)) == 0 &&
      limit.rlim_cur != RLIM_INFINITY && from + bytes > limit.rlim_cur)
    return -EFBIG;
  long result;
  do result = sys::call(SYS_fallocate, fd, 0, static_cast<long>(from), static_cast<long>(bytes));
  while (result == -EINTR);
  if (result == -EOPNOTSUPP || result == -ENOSYS) {
    // What posix_fallocate does there: a written block is an allocated block.
    static constexpr char zeros[4096] = {};
    result = 0;
    for (std::size_t done = 0; done < bytes && result >= 0; done += sizeof zeros) {
      result = sys::pwrite(fd, zeros, sizeof zeros, from + done);
      if (result >= 0 && result != static_cast<long>(sizeof zeros)) result = -ENOSPC;
    }
    if (result > 0) result = 0;
  }
  if (result < 0) sys::call(SYS_ftruncate, fd, static_cast<long>(from));
  return static_cast<int>(result);
}

std::uint32_t random_word() noexcept {
  std::uint32_t word = 0;
  constexpr long non_blocking = 1;
  if (sys::call(SYS_getrandom, reinterpret_cast<long>(&word), sizeof word, non_blocking) ==
      static_cast<long>(sizeof word))
    return word;
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint32_t>(now.tv_nsec) * 0x9e3779b9u;  // O_EXCL guards, this only spreads
}

}  // namespace

std::size_t system_page_bytes() noexcept {
  unsigned long bytes = getauxval(AT_PAGESZ);
  return bytes != 0 ? bytes : 4096;
}

bool is_local_file_system(std::uint64_t magic) noexcept {
  for (std::uint64_t type : local_types)
    if (type == magic) return true;
  return false;
}

void remember_stderr() noexcept {
  struct stat now;
  if (stderr_at_start.known || sys::fstat(2, &now) != 0) return;
  stderr_at_start.device = now.st_dev;
  stderr_at_start.inode = now.st_ino;
  stderr_at_start.known = true;
}

bool say_line(const char* line) noexcept {
  struct stat now;
  if (!stderr_at_start.known || sys::fstat(2, &now) != 0 || now.st_dev != stderr_at_start.device ||
      now.st_ino != stderr_at_start.inode)
    return false;
  text<1024> whole;
  whole << "hostwait: " << line;
  char end = '\n';
  // One write, so that lines of several processes do not mix.
  char out[1025];
  std::memcpy(out, whole.c_str(), whole.size());
  out[whole.size()] = end;
  return sys::write(2, out, whole.size() + 1) > 0;
}

int live_file::create_in(const char* folder, std::size_t bytes) noexcept {
  struct statfs kind;
  long result =
      sys::call(SYS_statfs, reinterpret_cast<long>(folder), reinterpret_cast<long>(&kind));
  if (result < 0) return static_cast<int>(result);
  if (!is_local_file_system(static_cast<std::uint32_t>(kind.f_type))) return -EXDEV;

  text<sizeof path_> path;
  if (folder[0] != '/') {  // growth opens the file again by name, after any chdir
    char here[512];
    if (sys::call(SYS_getcwd, reinterpret_cast<long>(here), sizeof here) <= 0) return -ENOENT;
    path << here << "/";
  }
  utsname machine{};
  sys::call(SYS_uname, reinterpret_cast<long>(&machine));
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  path << folder << "/hostwait-";
  path.name(program_invocation_short_name, 32) << "-";
  path.name(machine.nodename, 64) << "-" << static_cast<std::uint64_t>(sys::getpid()) << "-"
                                  << static_cast<std::uint64_t>(now.tv_sec) << "-";
  path.hex(random_word()) << HOSTWAIT_RECORD_SUFFIX;
  if (path.size() + 1 >= sizeof path_) return -ENAMETOOLONG;

  int fd = sys::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return fd;
  struct stat made;
  int error = sys::fstat(fd, &made);
  if (error == 0) error = reserve(fd, 0, bytes);
  void* mapped = nullptr;
  if (error == 0) {
    mapped = sys::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == nullptr) error = -ENOMEM;
  }
  sys::close(fd);
  if (error != 0) {
    sys::unlink(path.c_str());
    return error;
  }
  std::memcpy(path_, path.c_str(), path.size() + 1);
  device_ = made.st_dev;
  inode_ = made.st_ino;
  keep(mapped, bytes);
  return 0;
}

void* live_file::keep(void* mapped, std::size_t bytes) noexcept {
  mappings_[mapping_count_].at = mapped;
  mappings_[mapping_count_].bytes = bytes;
  ++mapping_count_;
  bytes_ += bytes;
  return mapped;
}

void* live_file::create(const char* output_dir, std::size_t bytes) noexcept {
  bytes_ = 0;
  anonymous_ = false;
  mapping_count_ = 0;
  path_[0] = '\0';
  int refused = 0;
  const bool named = output_dir != nullptr && *output_dir != '\0';
  if (named) {
    refused = create_in(output_dir, bytes);
    if (refused == 0) return mappings_[0].at;
  }
  const char* folders[] = {"/dev/shm", getenv("XDG_RUNTIME_DIR"), "/tmp"};
  text<1024> line;
  for (const char* folder : folders) {
    if (folder == nullptr || folder[0] != '/') continue;
    const int error = create_in(folder, bytes);
    if (error != 0) {
      if (refused == 0) refused = error;
      continue;
    }
    if (named) {
      line << "cannot record in " << output_dir << " (" << reason_of(refused) << "): the record is "
           << path_;
      say_line(line.c_str());
    }
    return mappings_[0].at;
  }
  void* mapped = sys::mmap_anonymous(bytes);
  if (mapped == nullptr) return nullptr;
  anonymous_ = true;
  line << "no folder for the record (" << (named ? output_dir : folders[0]) << ": "
       << reason_of(refused) << "; " << (named ? "/dev/shm, " : "")
       << "$XDG_RUNTIME_DIR and /tmp failed, too): it is kept in memory and ends with the process; "
          "give output=DIR";
  say_line(line.c_str());
  return keep(mapped, bytes);
}

void* live_file::grow(std::size_t bytes, std::uint64_t* offset) noexcept {
  if (mapping_count_ == max_mappings || bytes_ + bytes > max_file_bytes) return nullptr;
  *offset = bytes_;
  if (anonymous_) {
    void* mapped = sys::mmap_anonymous(bytes);
    return mapped == nullptr ? nullptr : keep(mapped, bytes);
  }
  int fd = sys::open(path_, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return nullptr;
  void* mapped = nullptr;
  struct stat now;
  if (sys::fstat(fd, &now) == 0 && now.st_dev == device_ && now.st_ino == inode_ &&
      reserve(fd, bytes_, bytes) == 0) {
    mapped = sys::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, bytes_);
    if (mapped == nullptr) sys::call(SYS_ftruncate, fd, static_cast<long>(bytes_));
  }
  sys::close(fd);
  return mapped == nullptr ? nullptr : keep(mapped, bytes);
}

void live_file::forget() noexcept {
  for (unsigned i = 0; i < mapping_count_; ++i) sys::munmap(mappings_[i].at, mappings_[i].bytes);
  mapping_count_ = 0;
}

}  // namespace hostwait::record
