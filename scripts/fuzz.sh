#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Builds the libFuzzer targets with Clang and runs each for a while from its corpus.
#   scripts/fuzz.sh [SECONDS]     60 by default; a crash leaves its input in build-fuzz/
. "$(dirname "$0")/setup.sh"
need_cuda_headers
need_python_tools
seconds=${1:-60}
command -v clang++ >/dev/null || fail "clang++ is not installed"
configure build-fuzz -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_COMPILER=clang \
  -DCMAKE_CXX_COMPILER=clang++ -DHOSTWAIT_BUILD_FUZZERS=ON -DPython3_EXECUTABLE="$venv/bin/python"
mapfile -t targets < <(ninja -C build-fuzz -t targets all | sed -n 's/^\(fuzz_[a-z0-9_]*\): phony$/\1/p' |
  sort -u)
[ ${#targets[@]} -gt 0 ] || fail "no fuzz_* target in build-fuzz"
ninja -C build-fuzz -j "$jobs" "${targets[@]}"
# All at once: each is one thread.
say "${targets[*]}: $seconds s"
pids=()
for target in "${targets[@]}"; do
  program=$(find build-fuzz -type f -name "$target" -perm -u+x | head -n 1)
  mkdir -p "build-fuzz/corpus/$target"
  "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="build-fuzz/$target-" "build-fuzz/corpus/$target" \
    >"build-fuzz/$target.log" 2>&1 </dev/null &
  pids+=($!)
done
bad=0
for i in "${!targets[@]}"; do
  target=${targets[$i]}
  if wait "${pids[$i]}"; then
    executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "build-fuzz/$target.log")
    if [ "${executed:-0}" -gt 0 ]; then
      say "$target: ok, $executed inputs"
      continue
    fi
  fi
  bad=1
  say "$target: FAILED"
  tail -n 40 "build-fuzz/$target.log"
done
exit $bad
