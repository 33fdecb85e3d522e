// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The record builder.
#include "record_builder.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace hostwait::test {

record_builder::record_builder() {
  std::memcpy(header.magic, HOSTWAIT_RECORD_MAGIC, sizeof header.magic);
  header.major = HOSTWAIT_RECORD_MAJOR;
  header.minor = HOSTWAIT_RECORD_MINOR;
  header.header_bytes = HOSTWAIT_RECORD_HEADER_BYTES;
  header.state = HOSTWAIT_RECORD_SEALED;
  header.rank = header.world = -1;
  header.max_extents = HOSTWAIT_RECORD_MAX_EXTENTS;
  const char empty = '\0';
  append(HOSTWAIT_SECTION_STRINGS, &empty, 1);
  hostwait_record_frame root{0, 0, HOSTWAIT_FRAME_NO_MODULE};
  add(HOSTWAIT_SECTION_FRAMES, root);
  hostwait_record_thread folded{};
  add(HOSTWAIT_SECTION_THREADS, folded);
  add(HOSTWAIT_SECTION_CONTROL, hostwait_record_control{});
}

std::uint32_t record_builder::append(std::uint32_t id, const void* entry, std::uint32_t size) {
  section& in = sections_[id];
  in.entry_size = id == HOSTWAIT_SECTION_STRINGS ? 1 : size;
  const auto index = static_cast<std::uint32_t>(in.bytes.size() / in.entry_size);
  const auto* bytes = static_cast<const std::byte*>(entry);
  in.bytes.insert(in.bytes.end(), bytes, bytes + size);
  return index;
}

std::uint32_t record_builder::string(std::string_view text) {
  if (text.empty()) return 0;
  if (const auto known = strings_.find(text); known != strings_.end()) return known->second;
  std::string terminated(text);
  terminated += '\0';
  const std::uint32_t at = append(HOSTWAIT_SECTION_STRINGS, terminated.data(),
                                  static_cast<std::uint32_t>(terminated.size()));
  strings_.emplace(text, at);
  return at;
}

std::uint32_t record_builder::call(std::string_view symbol, hostwait_kind_number kind) {
  hostwait_record_call entry{};
  entry.name = string(symbol);
  entry.kind = static_cast<std::uint16_t>(kind);
  return add(HOSTWAIT_SECTION_CALLS, entry);
}

std::uint32_t record_builder::module(std::string_view path, std::uint64_t start, std::uint64_t end,
                                     std::uint64_t bias, std::uint32_t flags) {
  hostwait_record_module entry{};
  entry.start = start;
  entry.end = end;
  entry.bias = bias;
  entry.path = string(path);
  entry.flags = flags;
  return add(HOSTWAIT_SECTION_MODULES, entry);
}

std::uint32_t record_builder::frame(std::uint32_t parent, std::uint64_t where,
                                    std::uint32_t module) {
  return add(HOSTWAIT_SECTION_FRAMES, hostwait_record_frame{where, parent, module});
}

std::uint32_t record_builder::python(std::uint32_t parent, std::string_view file,
                                     std::string_view function, std::uint32_t line) {
  hostwait_record_python_code code{};
  code.file = string(file);
  code.qualname = string(function);
  const std::uint64_t index = add(HOSTWAIT_SECTION_PYTHON_CODE, code);
  return frame(parent, index << 32 | line, HOSTWAIT_FRAME_PYTHON);
}

std::uint32_t record_builder::range(std::string_view path) {
  hostwait_record_range entry{};
  entry.path = string(path);
  return add(HOSTWAIT_SECTION_RANGES, entry) + 1;
}

std::uint32_t record_builder::thread(std::uint32_t tid, std::string_view name) {
  hostwait_record_thread entry{};
  entry.tid = tid;
  entry.state = 1;
  std::memcpy(entry.name, name.data(), std::min(name.size(), sizeof entry.name));
  return add(HOSTWAIT_SECTION_THREADS, entry);
}

std::uint32_t record_builder::site(const hostwait_record_site& site) {
  return add(HOSTWAIT_SECTION_SITES, site);
}

void record_builder::count(std::uint32_t thread, std::uint32_t site, const counts& what) {
  hostwait_record_counters entry{};
  entry.thread = thread;
  entry.site = site;
  entry.calls = what.calls;
  entry.waited = what.waited;
  entry.latent = what.latent;
  entry.refused = what.refused;
  entry.held = what.held;
  entry.violations = what.violations;
  entry.total_ns = what.total_ns;
  entry.max_ns = what.max_ns;
  entry.waited_ns = what.waited_ns;
  add(HOSTWAIT_SECTION_COUNTERS, entry);
  hostwait_record_histogram histogram{};
  unsigned bucket = 0;
  while (bucket < 31 && (std::uint64_t{2} << bucket) <= what.max_ns) ++bucket;
  histogram.bucket[bucket] = static_cast<std::uint32_t>(what.calls);
  add(HOSTWAIT_SECTION_HISTOGRAMS, histogram);
}

std::vector<std::byte> record_builder::bytes() const {
  std::vector<std::byte> file(HOSTWAIT_RECORD_HEADER_BYTES);
  hostwait_record_header head = header;
  for (const auto& [id, in] : sections_) {
    const auto chosen = sizes_.find(id);
    const std::uint32_t size = chosen == sizes_.end() ? in.entry_size : chosen->second;
    const auto total = static_cast<std::uint32_t>(in.bytes.size() / in.entry_size);
    const std::uint32_t step = split_ == 0 ? std::max(total, 1u) : split_;
    for (std::uint32_t first = 0; first < total; first += step) {
      if (head.extent_count == HOSTWAIT_RECORD_MAX_EXTENTS)
        throw std::length_error("record_builder: too many extents");
      const std::uint32_t count = std::min(step, total - first);
      file.resize((file.size() + 63) / 64 * 64);
      head.extents[head.extent_count++] = {id, size, file.size(), count, step};
      for (std::uint32_t i = first; i < first + count; ++i) {
        const std::byte* from = in.bytes.data() + std::size_t{i} * in.entry_size;
        const std::size_t at = file.size();
        file.resize(at + size, std::byte{0xee});
        std::copy_n(from, std::min(size, in.entry_size),
                    file.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
  }
  head.file_bytes = file.size();
  std::memcpy(file.data(), &head, sizeof head);
  return file;
}

void record_builder::write(const std::string& path) const {
  const std::vector<std::byte> file = bytes();
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  if (!out.flush()) throw std::runtime_error("record_builder: cannot write " + path);
}

record_builder training_run(std::string_view run_id, std::uint32_t pid) {
  record_builder record;
  hostwait_record_header& header = record.header;
  std::memcpy(header.run_id, run_id.data(), std::min(run_id.size(), sizeof header.run_id));
  header.pid = pid;
  header.ppid = 1;
  header.start_real_ns = 1700000000000000000u + pid;
  header.start_mono_ns = 1000000000;
  header.end_mono_ns = 10800000000;
  header.driver_version = 13000;
  std::strcpy(header.driver_text, "580.159");
  std::strcpy(header.routes, "dlsym, cuGetProcAddress");
  header.program = record.string("python3");
  header.host = record.string("HOST");

  const std::uint64_t torch_bias = 0x7f0000000000, runtime_bias = 0x7e0000000000;
  const std::uint32_t torch =
      record.module("/venv/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so", torch_bias,
                    torch_bias + 0x10000000, torch_bias);
  const std::uint32_t runtime = record.module("/usr/local/cuda/lib64/libcudart.so.13", runtime_bias,
                                              runtime_bias + 0x100000, runtime_bias);
  const std::uint32_t python = record.module("/usr/bin/python3.11", 0x400000, 0x900000, 0);
  const std::uint32_t interpreter = record.frame(0, 0x412345, python);
  const std::uint32_t item = record.frame(interpreter, torch_bias + 0x1234, torch);
  const std::uint32_t copy_stack =
      record.frame(record.frame(item, runtime_bias + 0x100, runtime), runtime_bias + 0x40, runtime);
  const std::uint32_t wait_stack = record.frame(item, runtime_bias + 0x200, runtime);
  const std::uint32_t free_stack = record.frame(
      record.frame(interpreter, torch_bias + 0x9999, torch), runtime_bias + 0x300, runtime);

  const std::uint32_t module_frame = record.python(0, "/home/me/train.py", "<module>", 90);
  const std::uint32_t step = record.python(module_frame, "/home/me/train.py", "step", 42);
  const std::uint32_t tensor =
      record.python(step, "/venv/lib/python3.11/site-packages/torch/_tensor.py", "item", 7);
  const std::uint32_t main_line = record.python(module_frame, "/home/me/train.py", "main", 77);

  hostwait_record_site copy{};
  copy.call = record.call("cuMemcpyDtoHAsync_v2", HOSTWAIT_KIND_ASYNC_COPY);
  copy.verdict = HOSTWAIT_VERDICT_STREAM;
  copy.direction = HOSTWAIT_DIRECTION_D2H;
  copy.native = copy_stack;
  copy.python = tensor;
  hostwait_record_site wait{};
  wait.call = record.call("cuStreamSynchronize", HOSTWAIT_KIND_STREAM_SYNC);
  wait.verdict = HOSTWAIT_VERDICT_STREAM;
  wait.native = wait_stack;
  wait.python = tensor;
  hostwait_record_site free_site{};
  free_site.call = record.call("cuMemFree_v2", HOSTWAIT_KIND_FREE);
  free_site.verdict = HOSTWAIT_VERDICT_CONTEXT;
  free_site.native = free_stack;
  free_site.python = main_line;

  const std::uint32_t main_thread = record.thread(pid, "python3");
  const std::uint32_t worker = record.thread(pid + 1, "pt_autograd_0");
  const std::uint32_t copy_index = record.site(copy);
  const std::uint32_t wait_index = record.site(wait);
  const std::uint32_t free_index = record.site(free_site);
  record.count(main_thread, copy_index,
               {.calls = 60,
                .waited = 60,
                .total_ns = 230000000,
                .max_ns = 4100000,
                .waited_ns = 230000000});
  record.count(worker, copy_index,
               {.calls = 40,
                .waited = 40,
                .total_ns = 167000000,
                .max_ns = 4000000,
                .waited_ns = 167000000});
  record.count(main_thread, wait_index,
               {.calls = 100, .latent = 100, .total_ns = 1000000, .max_ns = 12000});
  record.count(main_thread, free_index,
               {.calls = 8,
                .waited = 1,
                .latent = 7,
                .total_ns = 4000000,
                .max_ns = 3980000,
                .waited_ns = 3980000});
  return record;
}

}  // namespace hostwait::test
