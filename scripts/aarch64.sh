#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# The preloaded library for aarch64: cross-built into build-aarch64/, its route, policy, record and
# preload tests run under qemu's user emulation, on the simulated driver.
#
#   scripts/aarch64.sh [REGEX]     only the CTest tests whose name matches
# Status: 0 passed, 1 failed, 77 the cross compiler or the emulator is missing (Debian:
# g++-aarch64-linux-gnu, qemu-user-static), 2 not set up.
. "$(dirname "$0")/setup.sh"
if ! command -v aarch64-linux-gnu-g++ >/dev/null || ! command -v qemu-aarch64-static >/dev/null; then
  say "aarch64: SKIP, not installed: g++-aarch64-linux-gnu or qemu-user-static"
  exit 77
fi
# A Catch2 that is a compiled library (3.x) is the build machine's; version 2 is a header.
catch=/usr/lib/cmake/Catch2
if ! grep -qs 'PACKAGE_VERSION "2\.' "$catch/Catch2ConfigVersion.cmake"; then
  say "aarch64: SKIP, no Catch2 2.x in $catch: another version has no library for aarch64 here"
  exit 77
fi
need_cuda_headers
folder=build-aarch64
# No tool (its libraries are the build machine's) and no CUDA runtime (the wheel is x86-64's).
configure $folder -DCMAKE_TOOLCHAIN_FILE="$root/cmake/aarch64-linux-gnu.cmake" \
  -DCMAKE_BUILD_TYPE=RelWithDebInfo -DHOSTWAIT_WERROR=ON -DCatch2_DIR="$catch" \
  -DHOSTWAIT_BUILD_TOOLS=OFF -DHOSTWAIT_BUILD_CAI=OFF -DHOSTWAIT_CUDART=OFF \
  -DHOSTWAIT_CUDART_STATIC=OFF -DHOSTWAIT_CUDART_SHARED=OFF
mapfile -t targets < <(ninja -C $folder -t targets all |
  sed -nE 's/^(routes_[A-Za-z0-9_]*|test_(routes|policy|preload|record)_[a-z0-9_]*|hostwait_stress_plain): phony$/\1/p' |
  sort -u)
[ ${#targets[@]} -gt 0 ] || fail "no route, policy or record test in $folder"
ninja -C $folder -j "$jobs" hostwait_shim hostwait_link hostwait_sim "${targets[@]}" \
  >$folder/build.log 2>&1 || {
  grep -m 1 -A 20 FAILED $folder/build.log >&2
  exit 1
}
ctest --test-dir $folder -R "${1:-^(routes|policy|record|preload)\\.}" -LE 'gpu|native' \
  --output-on-failure --no-tests=error --timeout 120 -j "$jobs" </dev/null
