/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 * The policy interface from plain C or C++, with the shim absent or present (argv[1]). */
#include <hostwait/hostwait.h>
#include <stdio.h>
#include <string.h>

int use_api(int want_present);

static int failures;

static void expect(int condition, const char* what) {
  if (!condition) {
    fprintf(stderr, "expected: %s\n", what);
    failures++;
  }
}

static void on_violation(const hostwait_finding* finding, void* user) {
  (void)finding;
  ++*(int*)user;
}

int use_api(int want_present) {
  int calls = 0;
  int outer, inner, process;
  hostwait_stats stats;
  hostwait_finding finding;
  memset(&stats, 0, sizeof stats);
  memset(&finding, 0, sizeof finding);
  stats.size = (uint32_t)sizeof stats;
  finding.size = (uint32_t)sizeof finding;

  expect(hostwait_present() == want_present, "hostwait_present() tells whether the shim is there");
  outer = hostwait_push(HOSTWAIT_ERROR, HOSTWAIT_SYNC);
  inner = hostwait_push_label(HOSTWAIT_ALLOW, HOSTWAIT_COPY, "inner");
  process = hostwait_push_process(HOSTWAIT_FAIL, HOSTWAIT_EXPLICIT, "process");
  if (want_present) {
    expect(outer > 0 && inner > 0 && process > 0, "pushes return tokens");
    expect(hostwait_pop(outer) == HOSTWAIT_INVALID, "a token that is not on top is refused");
    expect(hostwait_push(HOSTWAIT_LOG, HOSTWAIT_POLL) == HOSTWAIT_NOT_ARMED,
           "pushing a kind that is not armed says so");
    expect(hostwait_push((hostwait_action)99, HOSTWAIT_SYNC) == HOSTWAIT_INVALID,
           "an unknown action is invalid");
    expect(hostwait_push(HOSTWAIT_LOG, 0x80000000u) == HOSTWAIT_INVALID,
           "an unknown kind is invalid");
    expect(hostwait_stats_get(&stats) == 0, "statistics are there");
    expect(stats.mismatched_pops >= 1, "the wrong pop was counted");
  } else {
    expect(outer == 0 && inner == 0 && process == 0, "pushes return 0 without the shim");
    expect(hostwait_stats_get(&stats) == HOSTWAIT_NOT_AVAILABLE, "no statistics without the shim");
  }
  expect(hostwait_last_refused(&finding) == HOSTWAIT_NOT_AVAILABLE, "nothing was refused here");
  expect(hostwait_set_callback(on_violation, &calls) == 0, "a callback can be set");
  expect(hostwait_set_callback(NULL, NULL) == 0, "and removed");
  expect(hostwait_pause() == (want_present ? 0 : HOSTWAIT_NOT_AVAILABLE), "it can be paused");
  expect(hostwait_resume() == (want_present ? 0 : HOSTWAIT_NOT_AVAILABLE), "and resumed");
  hostwait_step();
  hostwait_steady();
  expect(hostwait_pop_process(process) == 0, "the process-wide frame is popped");
  expect(hostwait_pop(inner) == 0, "the inner frame is popped");
  expect(hostwait_pop(outer) == 0, "the outer frame is popped");
  if (want_present) {
    expect(hostwait_pop(outer) == HOSTWAIT_INVALID, "a token popped twice is refused");
  }
  expect(calls == 0, "no violation happened");
  return failures;
}

#ifndef HOSTWAIT_USE_API_NO_MAIN
int main(int argc, char** argv) {
  return use_api(argc > 1 && strcmp(argv[1], "present") == 0) == 0 ? 0 : 1;
}
#endif
