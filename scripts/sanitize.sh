#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Builds the tests with a sanitizer and runs those that mean something under it.
#   scripts/sanitize.sh address,undefined|thread
# The preloaded library itself is never instrumented: it is loaded into foreign programs, and a
# sanitizer's runtime must come first there. tests/preload and tests/routes run it under ASan
# programs in the plain build.
. "$(dirname "$0")/setup.sh"
need_cuda_headers
need_python_tools
case ${1:-} in
  address,undefined)
    folder=build-asan
    areas='cai|policy|record|sim|table|tools|unwind'
    ;;
  thread)
    folder=build-tsan
    areas='cai|policy|record|sim'
    ;;
  *) fail "give address,undefined or thread" ;;
esac
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=0:detect_stack_use_after_return=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}
configure "$folder" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DHOSTWAIT_SANITIZE="$1" -DHOSTWAIT_WERROR=ON \
  -DPython3_EXECUTABLE="$venv/bin/python"
# The Catch2 programs of these areas: test_AREA_WHAT is the CTest test AREA.WHAT. Tests made of
# several programs, of Python or of the preloaded library belong to the plain build.
mapfile -t targets < <(ninja -C "$folder" -t targets all |
  sed -nE "s/^(test_($areas)_[a-z0-9_]+): phony\$/\1/p" | sort -u)
[ ${#targets[@]} -gt 0 ] || fail "no test of $areas in $folder"
ninja -C "$folder" -j "$jobs" "${targets[@]}" hostwait_sim
names=$(printf '%s\n' "${targets[@]}" | sed -E 's/^test_([a-z0-9]+)_/\1./' | paste -sd '|')
# Cases that need a process of their own are tests of their own, AREA.WHAT_PART.
ctest --test-dir "$folder" -R "^($names)(_[a-z]+)?\$" -LE 'gpu|nosanitize' --output-on-failure \
  --no-tests=error --timeout 300 -j "$jobs" </dev/null
