// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The checked reader: every offset, count and index of the file is tested before it is used.
#include "reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace hostwait {

static_assert(sizeof(hostwait_record_header) <= HOSTWAIT_RECORD_HEADER_BYTES);

namespace {

constexpr std::uint64_t max_file_bytes = std::uint64_t{1} << 32;

// A file is read, never mapped: a mapping of a file that shrinks meanwhile kills its reader.
class file_source {
 public:
  explicit file_source(int descriptor) : descriptor_(descriptor) {}
  // Asked after the header was read: the writer makes room before it publishes an extent.
  std::optional<std::uint64_t> size() const {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) return std::nullopt;
    return static_cast<std::uint64_t>(status.st_size);
  }
  bool read(std::uint64_t offset, void* to, std::size_t bytes) const {
    auto* out = static_cast<char*>(to);
    while (bytes > 0) {
      const ssize_t got = ::pread(descriptor_, out, bytes, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      out += got;
      offset += static_cast<std::uint64_t>(got);
      bytes -= static_cast<std::size_t>(got);
    }
    return true;
  }

 private:
  int descriptor_;
};

class memory_source {
 public:
  explicit memory_source(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::optional<std::uint64_t> size() const { return bytes_.size(); }
  bool read(std::uint64_t offset, void* to, std::size_t bytes) const {
    if (offset > bytes_.size() || bytes > bytes_.size() - offset) return false;
    if (bytes > 0) std::memcpy(to, bytes_.data() + offset, bytes);  // `to` is null for no bytes
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
};

bool moved_meanwhile(const file_source& from, const hostwait_record_header& before) {
  std::uint64_t now = 0;
  constexpr std::size_t place = offsetof(hostwait_record_header, fold_sequence);
  return (before.fold_sequence & 1) != 0 ||
         (from.read(place, &now, sizeof now) && now != before.fold_sequence);
}

std::string known_section(std::uint32_t id, std::uint32_t number) {
  return std::string("section ") + section_name(id) + " (extent " + std::to_string(number) + ")";
}

}  // namespace

std::string read_error::line() const {
  std::string text = file + ": ";
  if (!place.empty()) text += place + ": ";
  text += what;
  if (!remedy.empty()) text += "; " + remedy;
  return text;
}

template <class source>
std::optional<record_file> record_file::read(const source& from, const std::string& name,
                                             read_error& error) {
  const auto fail = [&](std::string place, std::string what, std::string remedy) {
    error = {name, std::move(place), std::move(what), std::move(remedy)};
    return std::nullopt;
  };
  const char* const not_one = "give files that end in .hwr, or the folder they lie in";
  const char* const again = "copy it again from where it was written";

  record_file result;
  result.path_ = name;
  const std::optional<std::uint64_t> first_size = from.size();
  if (!first_size) return fail("", "its size cannot be read", not_one);
  if (*first_size == 0) return fail("", "the file is empty", not_one);
  char magic[sizeof result.header_.magic] = {};
  if (!from.read(0, magic, sizeof magic) ||
      std::memcmp(magic, HOSTWAIT_RECORD_MAGIC, sizeof magic) != 0) {
    return fail("header", "not a record (no HOSTWAIT magic)", not_one);
  }
  hostwait_record_header& header = result.header_;
  if (!from.read(0, &header, sizeof header)) {
    return fail("header",
                "cut short: " + std::to_string(*first_size) + " bytes of " +
                    std::to_string(HOSTWAIT_RECORD_HEADER_BYTES),
                again);
  }
  if (header.major != HOSTWAIT_RECORD_MAJOR) {
    return fail("header",
                "format " + std::to_string(header.major) + "." + std::to_string(header.minor) +
                    ", this tool reads " + std::to_string(HOSTWAIT_RECORD_MAJOR) + ".x",
                "use the hostwait that wrote it");
  }
  if (header.header_bytes < HOSTWAIT_RECORD_HEADER_BYTES) {
    return fail("header", "its length is given as " + std::to_string(header.header_bytes),
                "the file is damaged: " + std::string(again));
  }
  const std::uint64_t size = from.size().value_or(0);
  if (size > max_file_bytes) return fail("", "larger than 4 GiB", "the file is damaged");
  if (header.extent_count > HOSTWAIT_RECORD_MAX_EXTENTS) {
    return fail("header",
                "claims " + std::to_string(header.extent_count) + " extents, at most " +
                    std::to_string(HOSTWAIT_RECORD_MAX_EXTENTS) + " are possible",
                "the file is damaged: " + std::string(again));
  }

  std::uint64_t total = 0;
  std::array<std::uint64_t, section_slots> next{};
  for (std::uint32_t i = 0; i < header.extent_count; ++i) {
    const hostwait_record_extent& from_table = header.extents[i];
    if (from_table.id == 0 || from_table.id >= section_slots) continue;
    const std::uint64_t bytes = std::uint64_t{from_table.count} * from_table.entry_size;
    if (from_table.entry_size == 0 || from_table.count > from_table.capacity ||
        from_table.offset < header.header_bytes ||
        (from_table.id == HOSTWAIT_SECTION_STRINGS && from_table.entry_size != 1)) {
      return fail(known_section(from_table.id, i), "impossible size or place",
                  "the file is damaged: " + std::string(again));
    }
    if (from_table.offset > size || bytes > size - from_table.offset) {
      return fail(known_section(from_table.id, i),
                  "cut short: " + std::to_string(bytes) + " bytes at " +
                      std::to_string(from_table.offset) + " of a file of " + std::to_string(size),
                  again);
    }
    total += bytes;
    if (total > size) {
      return fail(known_section(from_table.id, i), "extents overlap",
                  "the file is damaged: " + std::string(again));
    }
    std::vector<extent>& section = result.sections_[from_table.id];
    // A text may go on in the next extent of a full one: both become one here.
    const bool joins = from_table.id == HOSTWAIT_SECTION_STRINGS && !section.empty() &&
                       section.back().first + section.back().count == next[from_table.id];
    if (!joins) section.push_back({next[from_table.id], from_table.entry_size, 0, {}});
    extent& copy = section.back();
    next[from_table.id] += from_table.capacity;
    copy.count += from_table.count;
    const std::size_t old_bytes = copy.bytes.size();
    copy.bytes.resize(old_bytes + bytes);
    if (!from.read(from_table.offset, copy.bytes.data() + old_bytes, bytes)) {
      return fail(known_section(from_table.id, i), "cannot be read", again);
    }
    if (from_table.id == HOSTWAIT_SECTION_CONTROL && result.control_offset_ == 0 &&
        from_table.count > 0 && from_table.entry_size >= sizeof(hostwait_record_control)) {
      result.control_offset_ = from_table.offset;
    }
  }
  return result;
}

std::optional<record_file> record_file::load(const std::string& path, read_error& error) {
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) {
    error = {path, "", std::string("cannot be read: ") + std::strerror(errno),
             "give files that end in .hwr, or the folder they lie in"};
    return std::nullopt;
  }
  struct stat status {};
  std::optional<record_file> result;
  if (::fstat(descriptor, &status) == 0 && !S_ISREG(status.st_mode)) {
    error = {path, "", "not a regular file", "give files that end in .hwr"};
  } else {
    const file_source source(descriptor);
    // A live process may be folding an ended thread's counters into thread 0 meanwhile.
    for (int tries = 0; tries < 4; ++tries) {
      result = read(source, path, error);
      if (!result || !moved_meanwhile(source, result->header())) break;
    }
  }
  ::close(descriptor);
  return result;
}

std::optional<std::string> record_file::peek_run_id(const std::string& path) {
  hostwait_record_header header{};
  const int descriptor =
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
  if (descriptor < 0) return std::nullopt;
  constexpr std::size_t bytes = offsetof(hostwait_record_header, pid);
  const bool whole = file_source(descriptor).read(0, &header, bytes);
  ::close(descriptor);
  if (!whole || std::memcmp(header.magic, HOSTWAIT_RECORD_MAGIC, sizeof header.magic) != 0)
    return std::nullopt;
  return fixed_text(header.run_id);
}

std::optional<record_file> record_file::parse(std::span<const std::byte> bytes,
                                              const std::string& name, read_error& error) {
  const memory_source source(bytes);
  return read(source, name, error);
}

const record_file::extent* record_file::find(hostwait_record_section section,
                                             std::uint32_t index) const {
  for (const extent& candidate : sections_[section]) {
    if (index >= candidate.first && index - candidate.first < candidate.count) return &candidate;
  }
  return nullptr;
}

bool record_file::has_entry(hostwait_record_section section, std::uint32_t i) const {
  return find(section, i) != nullptr;
}

std::uint64_t record_file::count(hostwait_record_section section) const {
  std::uint64_t entries = 0;
  for (const extent& each : sections_[section]) entries += each.count;
  return entries;
}

hostwait_record_call record_file::call(std::uint32_t i) const {
  return get<hostwait_record_call>(HOSTWAIT_SECTION_CALLS, i);
}
hostwait_record_site record_file::site(std::uint32_t i) const {
  return get<hostwait_record_site>(HOSTWAIT_SECTION_SITES, i);
}
hostwait_record_thread record_file::thread(std::uint32_t i) const {
  return get<hostwait_record_thread>(HOSTWAIT_SECTION_THREADS, i);
}
hostwait_record_frame record_file::frame(std::uint32_t i) const {
  return get<hostwait_record_frame>(HOSTWAIT_SECTION_FRAMES, i);
}
hostwait_record_python_code record_file::python_code(std::uint32_t i) const {
  return get<hostwait_record_python_code>(HOSTWAIT_SECTION_PYTHON_CODE, i);
}
hostwait_record_module record_file::module(std::uint32_t i) const {
  return get<hostwait_record_module>(HOSTWAIT_SECTION_MODULES, i);
}
hostwait_record_counters record_file::counters(std::uint32_t i) const {
  return get<hostwait_record_counters>(HOSTWAIT_SECTION_COUNTERS, i);
}
hostwait_record_histogram record_file::histogram(std::uint32_t i) const {
  return get<hostwait_record_histogram>(HOSTWAIT_SECTION_HISTOGRAMS, i);
}
hostwait_record_range record_file::range(std::uint32_t i) const {
  return get<hostwait_record_range>(HOSTWAIT_SECTION_RANGES, i);
}

hostwait_record_capture record_file::capture(std::uint32_t i) const {
  return get<hostwait_record_capture>(HOSTWAIT_SECTION_CAPTURES, i);
}
hostwait_record_holder record_file::holder(std::uint32_t i) const {
  return get<hostwait_record_holder>(HOSTWAIT_SECTION_HOLDERS, i);
}

std::string_view record_file::string(std::uint32_t reference) const {
  if (reference == 0) return {};
  const extent* in = find(HOSTWAIT_SECTION_STRINGS, reference);
  if (in == nullptr) return {};
  const std::size_t at = reference - in->first;
  const auto* text = reinterpret_cast<const char*>(in->bytes.data()) + at;
  return {text, strnlen(text, std::min<std::size_t>(in->bytes.size() - at, max_string))};
}

std::vector<hostwait_record_frame> record_file::stack(std::uint32_t innermost) const {
  std::vector<hostwait_record_frame> frames;
  std::uint32_t at = innermost;
  while (at != 0 && frames.size() < max_depth && has_entry(HOSTWAIT_SECTION_FRAMES, at)) {
    frames.push_back(frame(at));
    // A parent is always older than its child: anything else is damage, and could be a circle.
    if (frames.back().parent >= at) break;
    at = frames.back().parent;
  }
  return frames;
}

}  // namespace hostwait
