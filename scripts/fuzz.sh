#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Builds the libFuzzer targets with Clang and runs each for a while from its corpus.
#   scripts/fuzz.sh [SECONDS]     60 by default; a crash leaves its input in build-fuzz/
. "$(dirname "$0")/setup.sh"
need_cuda_headers
seconds=${1:-60}
command -v clang++ >/dev/null || fail "clang++ is not installed"
configure build-fuzz -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_COMPILER=clang \
  -DCMAKE_CXX_COMPILER=clang++ -DHOSTWAIT_BUILD_FUZZERS=ON -DPython3_EXECUTABLE="$venv/bin/python"
mapfile -t targets < <(ninja -C build-fuzz -t targets all | sed -n 's/^\(fuzz_[a-z0-9_]*\): phony$/\1/p' |
  sort -u)
[ ${#targets[@]} -gt 0 ] || fail "no fuzz_* target in build-fuzz"
ninja -C build-fuzz -j "$jobs" "${targets[@]}"
bad=0
for target in "${targets[@]}"; do
  program=$(find build-fuzz -type f -name "$target" -perm -u+x | head -n 1)
  corpus=build-fuzz/corpus/$target
  mkdir -p "$corpus"
  seeds=()
  if [ -d "tests/fuzz/corpus/$target" ]; then seeds=("tests/fuzz/corpus/$target"); fi
  say "$target: $seconds s"
  "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="build-fuzz/$target-" "$corpus" "${seeds[@]}" \
    >"build-fuzz/$target.log" 2>&1 </dev/null || bad=1
  grep -E 'stat::number_of_executed_units|ERROR|SUMMARY' "build-fuzz/$target.log" || true
  if [ "$bad" != 0 ]; then
    tail -n 40 "build-fuzz/$target.log"
    exit 1
  fi
done
