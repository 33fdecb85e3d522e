// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Codes, their names, and the error struct.
#include "error.hpp"

#include <hostwait/version.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "driver.hpp"

namespace hostwait::cai {
namespace {

constexpr const char* code_words[] = {"ok",
#define HOSTWAIT_CAI_WORD(name) #name,
                                      HOSTWAIT_CAI_CODES(HOSTWAIT_CAI_WORD)
#undef HOSTWAIT_CAI_WORD
};
static_assert(sizeof code_words / sizeof *code_words == HOSTWAIT_CAI_CODE_COUNT);

constexpr size_t longest_word() {
  size_t longest = 0;
  for (const char* word : code_words) {
    size_t length = 0;
    while (word[length] != '\0') ++length;
    if (length > longest) longest = length;
  }
  return longest;
}

struct lower_names {
  char text[HOSTWAIT_CAI_CODE_COUNT][longest_word() + 1];
};

constexpr lower_names make_lower_names() {
  lower_names names{};
  for (size_t code = 0; code < HOSTWAIT_CAI_CODE_COUNT; ++code) {
    for (size_t i = 0; code_words[code][i] != '\0'; ++i) {
      const char c = code_words[code][i];
      names.text[code][i] = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  return names;
}

constexpr lower_names names = make_lower_names();

}  // namespace

int fail(const error_sink& sink, int code, const char* key, int32_t index, const char* format,
         ...) {
  hostwait_cai_error* err = sink.target;
  if (err == nullptr || !has(err, offsetof(hostwait_cai_error, text))) return code;
  err->code = code;
  err->driver = 0;
  err->index = index;
  err->array = sink.array;
  err->key = sink.in_mask ? "mask" : key;
  if (!has(err, sizeof *err)) return code;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(err->text, sizeof err->text, format, arguments);
  va_end(arguments);
  return code;
}

int driver_failure(const error_sink& sink, int result, const char* call) {
  const char* name = nullptr;
  const hostwait_cai_driver* driver = loaded_driver();
  if (driver != nullptr && driver->get_error_name != nullptr) driver->get_error_name(result, &name);
  fail(sink, HOSTWAIT_CAI_ERR_DRIVER, "", -1, "%s returned %s (%d)", call,
       name != nullptr ? name : "an error", result);
  if (sink.target != nullptr && has(sink.target, offsetof(hostwait_cai_error, text))) {
    sink.target->driver = result;
  }
  return HOSTWAIT_CAI_ERR_DRIVER;
}

}  // namespace hostwait::cai

using namespace hostwait::cai;

const char* hostwait_cai_code_name(int code) {
  return code >= 0 && code < HOSTWAIT_CAI_CODE_COUNT ? names.text[code] : "";
}

const char* hostwait_cai_version(void) {
  return HOSTWAIT_VERSION_STRING;
}
