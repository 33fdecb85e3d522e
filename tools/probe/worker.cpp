// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
#include "worker.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "stage.hpp"

namespace hostwait::probe {

using json = nlohmann::ordered_json;

std::string to_line(const job& j) {
  std::string line = j.id + '\t';
  for (stream_kind k : j.busy) line += std::string(name_of(k)) + ',';
  return line + '\t' + std::to_string(j.spin_ns) + '\t' + std::to_string(j.idle_ns) + '\t' +
         (j.idle_only ? "idle" : "all");
}

bool from_line(const std::string& line, job& j) {
  std::istringstream fields(line);
  std::string streams, spin, idle, which;
  if (!std::getline(fields, j.id, '\t') || !std::getline(fields, streams, '\t') ||
      !std::getline(fields, spin, '\t') || !std::getline(fields, idle, '\t') ||
      !std::getline(fields, which, '\t'))
    return false;
  std::istringstream names(streams);
  for (std::string name; std::getline(names, name, ',');) {
    stream_kind k;
    if (!stream_named(name, k)) return false;
    j.busy.push_back(k);
  }
  j.spin_ns = std::strtoull(spin.c_str(), nullptr, 10);
  j.idle_ns = std::strtoull(idle.c_str(), nullptr, 10);
  j.idle_only = which == "idle";
  return true;
}

namespace {

class worker {
 public:
  worker(int fd, int device) : fd_(fd) {
    std::string why;
    driver* d = driver::load(why);
    if (d == nullptr) fail(why);
    try {
      stage_ = new stage(*d, device);
    } catch (const unsupported& missing) {
      fail(missing.why);
    }
    say({{"device", stage_->device_name},
         {"devices", stage_->devices},
         {"compute_capability", stage_->compute_capability},
         {"driver_version", stage_->driver_version},
         {"driver", d->path()},
         {"simulated", d->simulated()}});
  }

  void run(const job& j) {
    const experiment* e = find_experiment(j.id);
    if (e == nullptr) return;
    std::uint64_t idle = j.idle_ns, idle_max = j.idle_ns;
    if (e->idle && j.idle_ns == 0 && !measure_idle(*e, idle, idle_max)) return;
    if (j.idle_only) return;
    // A call that takes long by itself needs a kernel that outlasts it clearly.
    constexpr std::uint64_t longest = 1'000'000'000;
    const std::uint64_t spin =
        std::min(std::max(j.spin_ns, 4 * idle), std::max(longest, j.spin_ns));
    for (stream_kind busy : j.busy) measure_busy(*e, busy, spin, idle, idle_max);
  }

 private:
  [[noreturn]] void fail(const std::string& why) {
    say({{"failure", why}});
    ::_exit(2);
  }

  void say(const json& object) { say(object.dump()); }
  void say(std::string line) {
    line += '\n';
    for (std::size_t done = 0; done < line.size();) {
      const ssize_t n = ::write(fd_, line.data() + done, line.size() - done);
      if (n <= 0) ::_exit(1);
      done += static_cast<std::size_t>(n);
    }
  }

  void play(const experiment& e, stream_kind busy, std::uint64_t spin, result& out) {
    const bool alive = stage_->play(e, busy, spin, out);
    for (const limit& l : stage_->limits) say(to_line(l));
    stage_->limits.clear();
    if (alive) return;
    if (busy == stream_kind::none) out.idle_ns = out.idle_max_ns = out.ns;
    compare(out);
    if (!e.searches) say(to_line(out));
    ::_exit(3);
  }

  void begin(const experiment& e, stream_kind busy) {
    say({{"begin", e.id}, {"busy", name_of(busy)}});
  }

  bool measure_idle(const experiment& e, std::uint64_t& idle, std::uint64_t& idle_max) {
    begin(e, stream_kind::none);
    std::vector<std::uint64_t> times;
    result r;
    const int repeats = e.fresh || e.searches ? 1 : 3;
    for (int i = 0; i < repeats; ++i) {
      r = {};
      play(e, stream_kind::none, 0, r);
      if (r.what != outcome::measured) break;
      times.push_back(r.ns);
    }
    if (!times.empty()) {
      std::sort(times.begin(), times.end());
      r.ns = r.idle_ns = idle = times[times.size() / 2];
      r.idle_max_ns = idle_max = times.back();
    }
    if (!e.searches || r.what != outcome::measured) say(to_line(r));
    return r.what == outcome::measured;
  }

  // A measurement that disagrees with the verdict is made three times; what came twice stands.
  void measure_busy(const experiment& e, stream_kind busy, std::uint64_t spin, std::uint64_t idle,
                    std::uint64_t idle_max) {
    begin(e, busy);
    std::vector<result> seen;
    for (int tries = 0; tries < 6 && seen.size() < 3; ++tries) {
      result r;
      r.idle_ns = idle;
      r.idle_max_ns = idle_max;
      play(e, busy, spin, r);
      if (e.searches) {
        if (r.what != outcome::measured) say(to_line(r));
        return;
      }
      compare(r);
      if (r.late && r.what == outcome::measured && tries < 3) continue;
      seen.push_back(r);
      if (r.agree != agreement::no && seen.size() == 1) break;
      if (e.fresh) break;
      if (seen.size() == 2 && seen[0].agree == seen[1].agree) break;
    }
    std::size_t chosen = seen.size() - 1;
    if (seen.size() == 3)
      chosen = seen[2].agree == seen[0].agree ? 0 : seen[2].agree == seen[1].agree ? 1 : 2;
    say(to_line(seen[chosen]));
  }

  int fd_;
  stage* stage_ = nullptr;
};

}  // namespace

void run_worker(int out_fd, int device) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Kernels of the experiments print.
  const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null >= 0) ::dup2(null, STDOUT_FILENO);
  std::vector<job> jobs;
  for (std::string line; std::getline(std::cin, line);) {
    job j;
    if (from_line(line, j)) jobs.push_back(j);
  }
  worker w(out_fd, device);
  for (const job& j : jobs) w.run(j);
  // The driver's destructors are not ours to test.
  ::_exit(0);
}

}  // namespace hostwait::probe
