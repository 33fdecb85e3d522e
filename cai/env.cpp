// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Reads the switches once; a spelling that is not understood changes nothing and is told once.
#include "env.hpp"

#include <pthread.h>
#include <strings.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "error.hpp"

namespace hostwait::cai {
namespace {

constexpr char sync_name[] = "HOSTWAIT_CUDA_ARRAY_INTERFACE_SYNC";
constexpr char version_name[] = "HOSTWAIT_CUDA_ARRAY_INTERFACE_EXPORT_VERSION";

pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;
char aliases[256];   // under `reading`
char misspelt[256];  // the first variable not understood, "" for none
std::atomic<bool> tell{false};

// 1, 0, or -1 for a spelling that is neither.
int parse_switch(const char* text) {
  for (const char* word : {"1", "true", "yes", "on"}) {
    if (strcasecmp(text, word) == 0) return 1;
  }
  for (const char* word : {"0", "false", "no", "off"}) {
    if (strcasecmp(text, word) == 0) return 0;
  }
  return -1;
}

void note_misspelt(const char* name) {
  if (misspelt[0] != '\0') return;
  strncpy(misspelt, name, sizeof misspelt - 1);
  tell.store(true, std::memory_order_relaxed);
}

// 1, 0, or -1 where the variable is not set or not understood.
int read_switch(const char* name) {
  const char* text = getenv(name);
  if (text == nullptr) return -1;
  const int on = parse_switch(text);
  if (on < 0) note_misspelt(name);
  return on;
}

// 3, 2, or -1 where the variable is not set or not understood.
int read_version(const char* name) {
  const char* text = getenv(name);
  if (text == nullptr) return -1;
  if (strcmp(text, "2") == 0) return 2;
  if (strcmp(text, "3") == 0) return 3;
  note_misspelt(name);
  return -1;
}

bool is_version_name(const char* name) {
  constexpr char suffix[] = "EXPORT_VERSION";
  const size_t length = strlen(name);
  return length >= sizeof suffix - 1 && strcmp(name + length - (sizeof suffix - 1), suffix) == 0;
}

// The first variable that is set and understood decides; our own stands first.
int first_of(const char* own, bool version) {
  int (*const read)(const char*) = version ? read_version : read_switch;
  int value = read(own);
  char names[sizeof aliases];
  memcpy(names, aliases, sizeof names);
  char* rest = nullptr;
  for (char* name = strtok_r(names, ",", &rest); name != nullptr && value < 0;
       name = strtok_r(nullptr, ",", &rest)) {
    if (is_version_name(name) == version) value = read(name);
  }
  return value;
}

unsigned read_all() {
  misspelt[0] = '\0';
  tell.store(false, std::memory_order_relaxed);
  unsigned bits = env_read;
  if (first_of(sync_name, false) == 0) bits |= env_sync_off;
  if (first_of(version_name, true) == 2) bits |= env_version_2;
  return bits;
}

}  // namespace

std::atomic<unsigned> env_cached{0};

unsigned read_environment() {
  pthread_mutex_lock(&reading);
  unsigned bits = env_cached.load(std::memory_order_relaxed);
  if (bits == 0) {
    bits = read_all();
    env_cached.store(bits, std::memory_order_release);
  }
  pthread_mutex_unlock(&reading);
  return bits;
}

}  // namespace hostwait::cai

using namespace hostwait::cai;

int hostwait_cai_env_get(hostwait_cai_environment* out, hostwait_cai_error* err) {
  clear(err);
  const error_sink sink{err};
  const unsigned bits = environment();
  if (out != nullptr) {
    out->sync = !(bits & env_sync_off);
    out->export_version = static_cast<uint8_t>(bits & env_version_2 ? 2 : 3);
  }
  if (!tell.exchange(false, std::memory_order_relaxed)) return HOSTWAIT_CAI_OK;
  return fail(sink, HOSTWAIT_CAI_ERR_ENV, "", -1, "%s has a value that is not understood",
              misspelt);
}

void hostwait_cai_env_refresh(void) {
  pthread_mutex_lock(&reading);
  env_cached.store(read_all(), std::memory_order_release);
  pthread_mutex_unlock(&reading);
}

int hostwait_cai_env_aliases(const char* names) {
  const size_t length = names != nullptr ? strlen(names) : 0;
  if (length >= sizeof aliases) return HOSTWAIT_CAI_ERR_INVALID;
  pthread_mutex_lock(&reading);
  memset(aliases, 0, sizeof aliases);
  if (length > 0) memcpy(aliases, names, length);
  env_cached.store(read_all(), std::memory_order_release);
  pthread_mutex_unlock(&reading);
  return HOSTWAIT_CAI_OK;
}
