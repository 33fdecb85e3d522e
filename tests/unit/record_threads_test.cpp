// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Counting from many threads: exact sums, folding, bounded slots, readers of a live file.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "record_memory.hpp"
#include "record_support.hpp"

using namespace hostwait;
using namespace hostwait::test;

TEST_CASE("calls of many threads on shared and own sites sum exactly", "[record]") {
  folder out;
  constexpr unsigned threads = 8, rounds = 2000;
  pid_t pid = 0;
  int status = in_child(
      [&] {
        if (!open_in(out.path)) return 1;
        std::vector<std::thread> all;
        for (unsigned t = 0; t < threads; ++t) {
          all.emplace_back([t] {
            std::uintptr_t shared[] = {0x1000, 0x2000}, own[] = {0x5000 + t, 0x2000};
            for (unsigned i = 0; i < rounds; ++i) {
              one_call(key_of(shared, 2), 1000);
              one_call(key_of(own, 2), 1u << 20, record::outcome::latent);
            }
          });
        }
        for (auto& thread : all) thread.join();
        record::totals sums = record::sum();
        bool right = sums.calls == 2 * threads * rounds && sums.waited == threads * rounds &&
                     sums.latent == threads * rounds;
        record::seal();
        return right ? 0 : 2;
      },
      &pid);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);

  record_reader record(record_of(out.path, pid));
  CHECK(record.header.state == HOSTWAIT_RECORD_SEALED);
  CHECK(record.calls() == 2 * threads * rounds);
  REQUIRE(record.sites().size() == 2 + threads);  // "other", the shared one, each thread's own
  std::map<std::uint32_t, std::uint64_t> by_site = record.calls_by_site();
  // On a busy machine a first sight may meet the lock: that call is at "other", and counted there.
  std::uint64_t missing = 0;
  for (std::uint32_t site = 1; site < record.sites().size(); ++site) {
    bool shared = record.stack(record.sites()[site].native).front() == 0x1000;
    const std::uint64_t made = shared ? threads * rounds : rounds;
    REQUIRE(by_site[site] <= made);
    missing += made - by_site[site];
  }
  CHECK(missing == by_site[0]);
  CHECK(missing == record.header.unseen_locks);
  std::uint64_t in_buckets[32] = {};
  for (const auto& h : record.all<hostwait_record_histogram>(HOSTWAIT_SECTION_HISTOGRAMS))
    for (int i = 0; i < 32; ++i) in_buckets[i] += h.bucket[i];
  CHECK(in_buckets[9] == threads * rounds);  // 512 <= 1000 < 1024
  CHECK(in_buckets[20] == threads * rounds);
}

TEST_CASE("a stack or range that cannot be had now is never kept in part", "[record]") {
  folder out;
  pid_t pid = 0;
  int status = in_child(
      [&] {
        if (!open_in(out.path)) return 1;
        const std::uint32_t code = record::intern_python_code("train.py", "step", 40);
        const std::uint32_t outer = record::intern_python(0, code, 41);
        const std::uint32_t range = record::intern_range("train");
        bool known_is_found = false, new_is_not_now = false;
        {
          record::slow_path held(record::page());
          if (!held) return 2;
          std::thread([&] {
            known_is_found = record::intern_python_code("train.py", "step", 40) == code &&
                             record::intern_python(0, code, 41) == outer &&
                             record::intern_range("train") == range;
            new_is_not_now =
                record::intern_python_code("train.py", "loss", 50) == record::not_now &&
                record::intern_python(outer, code, 42) == record::not_now &&
                record::intern_range("validate") == record::not_now;
          }).join();
        }
        if (!known_is_found) return 3;
        if (!new_is_not_now) return 4;
        std::uintptr_t stack[] = {0x1000, 0x2000};
        one_call(key_of(stack, 2, outer));
        one_call(key_of(stack, 2, record::not_now));
        record::site_key no_range = key_of(stack, 2, outer);
        no_range.range = record::not_now;
        one_call(no_range);
        // A thread that the record has no room for counts the same way.
        record::note(nullptr, no_range, {record::outcome::waited, false, 100});
        return 0;
      },
      &pid);
  REQUIRE(WEXITSTATUS(status) == 0);
  record_reader record(record_of(out.path, pid));
  REQUIRE(record.sites().size() == 2);
  std::map<std::uint32_t, std::uint64_t> by_site = record.calls_by_site();
  CHECK(by_site[1] == 1);
  CHECK(by_site[0] == 3);
  CHECK(record.header.unseen_locks == 3);
}

TEST_CASE("a hundred thousand short threads need a bounded record", "[native][record]") {
#if defined(__SANITIZE_THREAD__)
  constexpr unsigned total = 2000;
#else
  constexpr unsigned total = 100000;
#endif
  folder out;
  pid_t pid = 0;
  int status = in_child(
      [&] {
        if (!open_in(out.path)) return 1;
        for (unsigned i = 0; i < total; ++i) {
          std::thread([] {
            std::uintptr_t stack[] = {0x1000, 0x2000};
            one_call(key_of(stack, 2));
          }).join();
        }
        return 0;
      },
      &pid);
  REQUIRE(WEXITSTATUS(status) == 0);
  record_reader record(record_of(out.path, pid));
  CHECK(record.calls() == total);
  CHECK(record.threads().size() < 32);
  CHECK(record.file_bytes() <= 64 * 1024);
  CHECK(record.sites().size() == 2);
  std::uint64_t recorded = 0;
  for (const auto& thread : record.threads()) recorded += thread.recorded;
  CHECK(recorded == total);
  CHECK(record.threads()[0].recorded > total / 2);
}

TEST_CASE("a reader of the live file never sees a count go back", "[record]") {
  folder out;
  REQUIRE(in_child([&] {
            if (!open_in(out.path)) return 1;
            std::atomic<bool> stop{false};
            std::vector<std::thread> writers;
            for (unsigned t = 0; t < 2; ++t) {
              writers.emplace_back([&stop] {
                std::uintptr_t stack[] = {0x1000, 0x2000};
                for (unsigned i = 0; !stop.load(); ++i) {
                  stack[0] = 0x1000 + i % 700;  // sections grow meanwhile
                  one_call(key_of(stack, 2));
                }
              });
            }
            std::thread spawner([&stop] {
              while (!stop.load()) {
                std::thread([] {
                  std::uintptr_t stack[] = {0x9000};
                  one_call(key_of(stack, 1));
                }).join();
                usleep(2000);
              }
            });
            std::filesystem::path path = record_of(out.path, getpid());
            std::uint64_t before = 0;
            int result = 0;
            const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
            for (unsigned good = 0; good < 50 && std::chrono::steady_clock::now() < deadline;) {
              // A folding thread may have lost its processor: give it ours.
              std::this_thread::yield();
              record_reader now(path);
              if (now.header.fold_sequence % 2 != 0) continue;
              record_reader again(path);  // counts of `now` may be older than its header
              if (again.header.fold_sequence != now.header.fold_sequence) continue;
              std::uint64_t calls = now.calls();
              if (calls < before) result = 2;
              before = calls;
              ++good;
            }
            std::uint64_t summed = record::sum().calls;
            if (summed < before) result = 3;
            stop.store(true);
            for (auto& writer : writers) writer.join();
            spawner.join();
            if (before == 0) result = 4;
            return result;
          }) == 0);
}

TEST_CASE("threads beyond the number of slots still count", "[record]") {
  folder out;
  pid_t pid = 0;
  REQUIRE(in_child(
              [&] {
                if (!open_in(out.path)) return 1;
                std::uintptr_t stack[] = {0x1000};
                record::site_key key = key_of(stack, 1);
                record::note(nullptr, key, {record::outcome::waited, true, 7});
                record::note(nullptr, key, {record::outcome::waited, true, 9});
                record::count_allowed(nullptr, 5);
                return record::sum().violations == 2 ? 0 : 2;
              },
              &pid) == 0);
  record_reader record(record_of(out.path, pid));
  REQUIRE(record.counters().size() == 2);
  CHECK(record.counters()[1].thread == 0);
  CHECK(record.counters()[1].calls == 2);
  CHECK(record.counters()[1].max_ns == 9);
  CHECK(record.threads()[0].allowed == 5);
}

TEST_CASE("the slot says which call a thread is in", "[record]") {
  folder out;
  pid_t pid = 0;
  REQUIRE(in_child(
              [&] {
                if (!open_in(out.path)) return 1;
                record::enter(record::this_thread(), row_id{3}, {}, 4711);
                return 0;
              },
              &pid) == 0);
  record_reader record(record_of(out.path, pid));
  CHECK(record.header.state == HOSTWAIT_RECORD_OPEN);
  REQUIRE(record.threads().size() == 2);
  const hostwait_record_thread thread = record.threads()[1];
  CHECK(thread.state == 1);
  CHECK(thread.in_call_since_ns == 4711);
  auto calls = record.all<hostwait_record_call>(HOSTWAIT_SECTION_CALLS);
  REQUIRE(thread.in_call == calls.size());
  CHECK(record.text(calls.back().name) == rows[3].symbol);
  CHECK(calls.back().kind == rows[3].kind);
}
