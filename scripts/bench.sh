#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Benchmarks on the simulated driver's empty calls; on a GPU: scripts/gpu.sh bench.
#   scripts/bench.sh [--install] [--out FILE.json] [--rounds N]
# Ends with `bench: allowed_ns=… recorded_ns=… …`; the figures go to build/bench/bench.json.
. "$(dirname "$0")/setup.sh"
out=$root/build/bench/bench.json
rounds=3
while [ $# -gt 0 ]; do
  case $1 in
    --install) install=true ;;
    --out) out=${2:?--out needs a file} && shift ;;
    --rounds) rounds=${2:?--rounds needs a number} && shift ;;
    *) fail "unknown option $1 (see the head of $0)" ;;
  esac
  shift
done
# shellcheck disable=SC2046
need_packages $(packages_to_build) libbenchmark-dev
need_cuda_headers
configure build -DCMAKE_BUILD_TYPE=RelWithDebInfo -DHOSTWAIT_BUILD_BENCHMARKS=ON
mkdir -p build/bench
ninja -C build -j "$jobs" hostwait_tool hostwait_shim hostwait_link hostwait_sim \
  hostwait_bench_calls hostwait_bench_startup >build/bench/build.log 2>&1 || {
  tail -n 40 build/bench/build.log >&2
  exit 1
}
LD_LIBRARY_PATH=$root/build/lib/sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
  python3 tests/bench/figures.py --build build --out "$out" --rounds "$rounds"
