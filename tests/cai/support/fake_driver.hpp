// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A driver table that executes nothing: it keeps the rules of contexts, events and captures and
// writes down what it is asked to order.
#pragma once

#include <hostwait/cai.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace cai_test {

enum : int {
  success = 0,
  invalid_value = 1,
  invalid_context = 201,
  invalid_handle = 400,
  not_ready = 600,
  capture_isolation = 905,
  capture_implicit = 906,
  capture_unsupported = 900
};

struct fake_context {
  std::string name;
  int device = 0;
  bool primary = true;
  uint64_t id = 0;
};

struct fake_stream {
  std::string name;
  uint64_t context = 0;
  bool blocking = false;
};

struct fake_memory {
  uint64_t address = 0, bytes = 0;
  std::string kind;
  int device = 0;
  uint64_t device_address = 0;
  uint64_t range_start = 0, range_bytes = 0;
};

struct fake_event {
  uint64_t context = 0, context_id = 0;
  std::string recorded_on, name;  // name: of a foreign event
  uint64_t capture = 0;           // in which it was recorded; 0 none
};

struct fake_driver {
  std::map<uint64_t, fake_context> contexts;
  std::map<uint64_t, fake_stream> streams;
  std::vector<fake_memory> memory;
  std::map<uint64_t, fake_event> events;
  std::map<std::string, int64_t> captures;  // stream name to capture id; -1 invalidated
  uint64_t initial_context = 0;
  bool peer_access = true, pageable_access = false;
  bool busy = false;                // queries answer "not ready"
  bool captures_elsewhere = false;  // another thread captures in global mode

  // What happened.
  std::vector<std::string> actions, event_contexts, records;
  std::set<uint64_t> captured_events, plain_events;
  std::vector<uint64_t> destroyed;
  bool releasing = false;  // waits are back edges
  bool capture_broken = false;
  int calls = 0, errors = 0, ordering_calls = 0, unsafe_calls = 0;
  std::map<std::string, int> count;

  hostwait_cai_driver table() const;
  void use();  // makes this the driver of the library and of this process's threads
  uint64_t current() const;
  std::string stream_name(uint64_t stream) const;  // "S", "1@ctx0"
};

// The driver in use; the table's functions have no argument for it.
extern fake_driver* in_use;

}  // namespace cai_test
