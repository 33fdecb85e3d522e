// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
#include "runner.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <nlohmann/json.hpp>

#include "failure.hpp"
#include "stage.hpp"
#include "worker.hpp"

namespace hostwait::probe {

using json = nlohmann::ordered_json;

namespace {

constexpr std::uint64_t second = 1'000'000'000;

// A child that reads jobs from us and writes lines to us.
class child {
 public:
  child(const std::vector<std::pair<std::string, std::string>>& environment, int device) {
    int to[2], from[2];
    if (::pipe2(to, O_CLOEXEC) != 0) throw_errno("pipe");
    if (::pipe2(from, O_CLOEXEC) != 0) throw_errno("pipe");
    const std::string number = std::to_string(device);
    pid_ = ::fork();
    if (pid_ == 0) {
      for (const auto& [key, value] : environment) ::setenv(key.c_str(), value.c_str(), 1);
      ::dup2(to[0], STDIN_FILENO);
      // dup2() onto itself would keep the close-on-exec flag.
      if (from[1] == 3)
        ::fcntl(3, F_SETFD, 0);
      else
        ::dup2(from[1], 3);
      ::execl("/proc/self/exe", "hostwait", "probe", "--worker", "3", "--device", number.c_str(),
              static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
    in_ = to[1];
    out_ = from[0];
    if (pid_ < 0) throw_errno("fork");
  }
  ~child() {
    if (in_ >= 0) ::close(in_);
    ::close(out_);
    if (pid_ > 0) end(), wait();
  }
  child(const child&) = delete;
  child& operator=(const child&) = delete;

  void send(const std::deque<job>& jobs) {
    std::string text;
    for (const job& j : jobs) text += to_line(j) + '\n';
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t n = ::write(in_, text.data() + done, text.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;  // it ended: reading will tell
      done += static_cast<std::size_t>(n);
    }
    ::close(in_);
    in_ = -1;
  }

  enum class got { line, end, timeout };
  got read(std::string& line, std::uint64_t deadline_ns) {
    for (;;) {
      if (const std::size_t at = buffer_.find('\n'); at != std::string::npos) {
        line = buffer_.substr(0, at);
        buffer_.erase(0, at + 1);
        return got::line;
      }
      const std::uint64_t now = now_ns();
      if (now >= deadline_ns) return got::timeout;
      pollfd waiting{out_, POLLIN, 0};
      const int ready = ::poll(&waiting, 1, static_cast<int>((deadline_ns - now) / 1'000'000 + 1));
      if (ready <= 0) continue;
      char chunk[4096];
      const ssize_t n = ::read(out_, chunk, sizeof chunk);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return got::end;
      buffer_.append(chunk, static_cast<std::size_t>(n));
    }
  }

  void end() { ::kill(pid_, SIGKILL); }
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

 private:
  [[noreturn]] static void throw_errno(const char* what) {
    throw failure(exit_not_working, std::string("probe: ") + what + ": " + std::strerror(errno));
  }
  pid_t pid_ = -1;
  int in_ = -1, out_ = -1;
  std::string buffer_;
};

class session {
 public:
  session(const run_options& options, report& out)
      : options_(options),
        out_(out),
        started_(now_ns()),
        deadline_(started_ + (options.quick ? 18 : 230) * second),
        spin_ns_(std::uint64_t{options.kernel_ms ? options.kernel_ms
                               : options.quick   ? 20u
                                                 : 30u} *
                 1'000'000) {}

  void run() {
    const std::vector<const experiment*> all = chosen(options_);
    if (all.empty())
      throw failure(exit_usage, "probe: no experiment's name has '" + options_.only + "'");
    of_ = static_cast<unsigned>(all.size());
    std::deque<job> together;
    for (const experiment* e : all)
      if (!e->fresh) together.push_back({e->id, e->busy, spin_ns_, 0, false});
    run_jobs(std::move(together), {});
    for (const experiment* e : all)
      if (e->fresh) run_fresh(*e);
    out_.seconds = static_cast<double>(now_ns() - started_) / 1e9;
    out_.mode = options_.quick ? "quick" : "full";
  }

 private:
  void told(const std::string& id) {
    if (id == last_) return;
    last_ = id;
    ++done_;
    if (options_.progress) options_.progress(std::min(done_, of_), of_, id);
  }

  void give_up(const std::string& id, stream_kind busy, outcome what, const std::string& note) {
    result r;
    r.id = id;
    if (const experiment* e = find_experiment(id)) r.call = e->call;
    r.busy = busy;
    r.what = what;
    r.note = note;
    out_.rows.push_back(r);
  }

  // The idle time in a process of its own, then each stream in another.
  void run_fresh(const experiment& e) {
    job j{e.id, e.busy, spin_ns_, 0, true};
    if (e.idle) {
      const std::size_t before = out_.rows.size();
      run_jobs({j}, e.environment);
      if (out_.rows.size() == before || out_.rows.back().what != outcome::measured) return;
      j.idle_ns = std::max<std::uint64_t>(out_.rows.back().ns, 1);
    } else {
      j.idle_ns = 1;
    }
    j.idle_only = false;
    for (stream_kind busy : e.busy) {
      j.busy = {busy};
      std::vector<result> seen;
      const std::size_t before = out_.rows.size();
      for (int tries = 0; tries < 3; ++tries) {
        run_jobs({j}, e.environment);
        if (out_.rows.size() == before) break;  // a search: it has no row
        seen.push_back(out_.rows.back());
        out_.rows.resize(before);
        if (seen.back().agree != agreement::no) {
          if (tries != 1) break;
        } else if (tries == 1) {
          break;
        }
      }
      if (!seen.empty()) out_.rows.push_back(seen.back());
    }
  }

  void run_jobs(std::deque<job> jobs, const std::vector<std::pair<std::string, std::string>>& env) {
    while (!jobs.empty()) {
      if (now_ns() >= deadline_) {
        for (const job& j : jobs)
          give_up(j.id, stream_kind::none, outcome::skipped, "no time left");
        return;
      }
      run_child(jobs, env);
    }
  }

  // Takes off `jobs` what was done, at least one where the child could start.
  void run_child(std::deque<job>& jobs,
                 const std::vector<std::pair<std::string, std::string>>& env) {
    child c(env, options_.device);
    c.send(jobs);
    std::string line, id;
    stream_kind busy = stream_kind::none;
    bool hello = false;
    const auto finish = [&](bool lost_rest) {
      // Everything before the job that was begun last is done; that one is not tried again.
      while (!jobs.empty() && jobs.front().id != id) jobs.pop_front();
      if (jobs.empty()) return;
      job rest = jobs.front();
      jobs.pop_front();
      const auto at = std::find(rest.busy.begin(), rest.busy.end(), busy);
      if (lost_rest || busy == stream_kind::none || at == rest.busy.end()) return;
      rest.busy.erase(rest.busy.begin(), at + 1);
      if (!rest.busy.empty()) jobs.push_front(rest);
    };
    for (;;) {
      if (hello && now_ns() >= deadline_) {
        c.end();
        c.wait();
        finish(true);
        if (!id.empty()) give_up(id, busy, outcome::skipped, "no time left");
        return;
      }
      const std::uint64_t patience = hello ? 25 * second : 60 * second;
      const auto got = c.read(line, std::min(now_ns() + patience, deadline_ + 8 * second));
      if (got == child::got::line) {
        take(line, hello, id, busy);
        continue;
      }
      if (got == child::got::timeout) {
        c.end();
        c.wait();
        if (!hello)
          throw failure(exit_not_working, "probe: the driver did not start within a minute");
        give_up(id, busy, outcome::hung, "no answer; the process was ended");
        finish(false);
        return;
      }
      const int status = c.wait();
      if (!hello)
        throw failure(exit_not_working, "probe: the process that loads the driver ended early");
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        jobs.clear();
        return;
      }
      if (!(WIFEXITED(status) && WEXITSTATUS(status) == 3))
        give_up(id, busy, outcome::crashed,
                WIFSIGNALED(status) ? std::string("signal ") + ::strsignal(WTERMSIG(status))
                                    : "status " + std::to_string(WEXITSTATUS(status)));
      if (id.empty()) {
        jobs.pop_front();
        return;
      }
      finish(false);
      return;
    }
  }

  void take(const std::string& line, bool& hello, std::string& id, stream_kind& busy) {
    const json said = json::parse(line, nullptr, false);
    if (!said.is_object()) return;
    if (said.contains("failure"))
      throw failure(exit_not_working, "probe: " + said.at("failure").get<std::string>());
    if (said.contains("device")) {
      hello = true;
      out_.device = said.at("device");
      out_.devices = said.at("devices");
      out_.compute_capability = said.at("compute_capability");
      out_.driver_version = said.at("driver_version");
      out_.driver_path = said.at("driver");
      out_.simulated = said.at("simulated");
      return;
    }
    if (said.contains("begin")) {
      id = said.at("begin");
      stream_named(said.at("busy"), busy);
      told(id);
      return;
    }
    result r;
    limit l;
    bool is_limit = false;
    if (!from_line(line, r, is_limit, l)) return;
    if (is_limit) {
      out_.limits.push_back(l);
    } else {
      r.around.driver_version = out_.driver_version;
      r.around.compute_capability = out_.compute_capability;
      out_.rows.push_back(r);
    }
  }

  const run_options& options_;
  report& out_;
  std::uint64_t started_, deadline_, spin_ns_;
  unsigned done_ = 0, of_ = 0;
  std::string last_;
};

}  // namespace

std::vector<const experiment*> chosen(const run_options& options) {
  std::vector<const experiment*> out;
  for (const experiment& e : experiments())
    if ((!options.quick || e.quick) &&
        (options.only.empty() || e.id.find(options.only) != e.id.npos))
      out.push_back(&e);
  return out;
}

report run_experiments(const run_options& options) {
  ::signal(SIGPIPE, SIG_IGN);
  report all;
  session(options, all).run();
  return all;
}

}  // namespace hostwait::probe
