#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Builds hostwait in build/ and runs every test that needs no GPU.
#
#   scripts/test.sh             build and CTest, and the checks of the source tree
#   scripts/test.sh --all       and the sanitizer builds, the fuzzers and, where the cross compiler
#                               is installed, the library for aarch64 (what CI runs)
#   scripts/test.sh --install   install missing packages through apt first
#   scripts/test.sh -R REGEX    only the CTest tests whose name matches; no other check
# HOSTWAIT_JOBS=N limits the build's parallelism. Exit status: 0 passed, 1 failed, 2 not set up.
. "$(dirname "$0")/setup.sh"

all=$ci
only=
while [ $# -gt 0 ]; do
  case $1 in
    --install) install=true ;;
    --all) all=true ;;
    -R) only=${2:?-R needs a regular expression} && shift ;;
    *) fail "unknown option $1 (see the head of $0)" ;;
  esac
  shift
done
[ "$ci" != true ] || all=true

# shellcheck disable=SC2046
need_packages $(packages_to_test) $([ "$ci" != true ] || packages_to_cross)
need_cuda_headers
need_cuda_runtimes
need_python_tools

failures=()
started=$SECONDS
# step NAME COMMAND…: runs it, times it, remembers a failure; the rest goes on.
step() {
  local name=$1 start=$SECONDS
  shift
  say "$name"
  if "$@"; then
    say "$name: ok ($((SECONDS - start)) s)"
  else
    say "$name: FAILED ($((SECONDS - start)) s)"
    failures+=("$name")
  fi
}

# Status 77 of the command says that it was skipped, and why.
or_skipped() {
  local status=0
  "$@" || status=$?
  [ "$status" = 77 ] || return "$status"
}

ctest_in() {
  local folder=$1
  shift
  ctest --test-dir "$folder" -LE gpu --output-on-failure --no-tests=error --timeout 300 -j "$jobs" \
    "$@" </dev/null
}

build_all() {
  configure build -DCMAKE_BUILD_TYPE=RelWithDebInfo -DHOSTWAIT_BUILD_BENCHMARKS=ON \
    -DHOSTWAIT_WERROR="$all" -DPython3_EXECUTABLE="$venv/bin/python" &&
    ninja -C build -j "$jobs"
}

run_tests() {
  # Only the tests' own output goes into the summary that is printed again at the end.
  ctest_in build "$@" 2>&1 | tee build/ctest.log
}

step "build" build_all
if [ ${#failures[@]} -gt 0 ]; then exit 1; fi
if [ -n "$only" ]; then
  run_tests -R "$only"
  exit
fi
step "tests" run_tests
step "checks of the source tree" scripts/checks.sh

if [ "$all" = true ]; then
  step "AddressSanitizer and UndefinedBehaviorSanitizer" scripts/sanitize.sh address,undefined
  step "ThreadSanitizer" scripts/sanitize.sh thread
  step "fuzzers" scripts/fuzz.sh 60
  step "aarch64 under emulation" or_skipped scripts/aarch64.sh
fi

say "$((SECONDS - started)) s"
# The main suite's own last lines, so that they end the output.
sed -n '/tests passed/,$p' build/ctest.log
if [ ${#failures[@]} -gt 0 ]; then
  printf 'test.sh: failed: %s\n' "$(IFS=,; echo "${failures[*]}")" >&2
  exit 1
fi
