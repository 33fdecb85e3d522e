#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Benchmarks on the simulated driver's empty calls; on a GPU: scripts/gpu.sh bench.
#   scripts/bench.sh [--install] [--out FILE.json] [--rounds N]
# Ends with `cai: same_stream_ns=… pair_ratio=… view_vs_cuda_core=… busy_vs_cupy=…`, the exchange library's
# figures (build/bench/cai), and `bench: allowed_ns=… recorded_ns=… …` (build/bench/bench.json). The first are
# measured on a GPU where there is one. Without one the simulated driver stands in: its calls cost next to
# nothing, so pair_ratio is the library's own cost and no ratio to a driver's, and what needs a kernel or
# cuda.core is n/a.
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
  hostwait_bench_calls hostwait_bench_startup hostwait_bench_stacks hostwait_cai \
  hostwait_cai_bench >build/bench/build.log 2>&1 || {
  tail -n 40 build/bench/build.log >&2
  exit 1
}
rm -rf build/bench/cai
mkdir -p build/bench/cai
if [ -e /dev/nvidiactl ] || [ -e /dev/dxg ]; then
  build/bin/hostwait_cai_bench >build/bench/cai/bench.jsonl
  # cuda.core and CuPy are the neighbours here; the glue needs Python's headers.
  if ninja -C build -j "$jobs" hostwait_cai_glue >>build/bench/build.log 2>&1; then
    HOSTWAIT_TEST_BUILD=$root/build HOSTWAIT_CAI_LIBRARY=$root/build/lib/libhostwait_cai.so \
      PYTHONPATH=$root/python python3 tests/cai/python/gpu_cost.py >build/bench/cai/cost.jsonl ||
      say "the costs beside cuda.core and CuPy: see build/bench/cai/cost.jsonl"
  fi
else
  say "no GPU here: the exchange library's figures are those of the simulated driver"
  LD_LIBRARY_PATH=$root/build/lib/sim build/bin/hostwait_cai_bench >build/bench/cai/bench.jsonl
fi
python3 scripts/gpu_cai_figures.py --line build/bench/cai
LD_LIBRARY_PATH=$root/build/lib/sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
  python3 tests/bench/figures.py --build build --out "$out" --rounds "$rounds"
