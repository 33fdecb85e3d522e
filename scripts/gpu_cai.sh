#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# The exchange library on a real GPU: probes, proofs with other libraries, costs.
#
#   scripts/gpu_cai.sh OUTDIR    never more than HOSTWAIT_GPU_SECONDS (350)
#   scripts/gpu_cai.sh two OUTDIR         with two GPUs: streams 1 and 2 across devices; under a minute
#   scripts/gpu_cai.sh probe NAME OUTDIR  one probe of tests/cai/gpu_probes.py, such as reverse_wait
#   scripts/gpu_cai.sh carry     on a build machine: builds all that it needs into build-carry-cai/,
#                                to be carried to the GPU machine with the working tree
#
# Without build-carry-cai/ it builds on the GPU machine (CMake, Ninja, g++, Python's headers).
# OUTDIR gets the output of each step and one measurement file, <date>-<gpu>-cai.json. The last line
# is `cai: same_stream_ns=… pair_ratio=… view_vs_cuda_core=… busy_vs_cupy=…` (the last two are
# factors by which the other library is slower; of several arrays the smallest). Status: 0 all holds,
# 1 something does not, 77 no GPU.
. "$(dirname "$0")/setup.sh"

built=build-carry-cai

# The modules of tests/cai/python, compiled as its CMakeLists.txt does, for a machine without Catch2.
build_modules() {
  local include library=$built/lib
  include=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
  [ -f "$include/Python.h" ] || fail "no Python.h in $include: carry a build (see the head of $0)"
  local flags=(-std=c++20 -O2 -fPIC -shared -fvisibility=hidden -Iinclude -Iexamples/saxpy
    "-isystem$cuda_include" "-I$include")
  module() { # FOLDER NAME SOURCE OPTION…
    local folder=$built/tests/cai_python/$1 name=$2 source=$3
    shift 3
    mkdir -p "$folder"
    g++ "${flags[@]}" "$@" "$source" "$library/libhostwait_cai.so" -ldl -o "$folder/$name.abi3.so"
  }
  local abi=-DPy_LIMITED_API=0x030B0000 mutant
  module . hostwait_cai_glue tests/cai/python/glue.cpp "$abi"
  module . saxpy examples/saxpy/saxpy.cpp "$abi"
  for mutant in no_wait no_back_edge; do
    module "$mutant" saxpy examples/saxpy/saxpy.cpp -include tests/cai/python/mutant.hpp \
      "-DMUTANT_${mutant^^}"
  done
}

build() {
  need_cuda_headers
  configure build-gpu-cai -DCMAKE_BUILD_TYPE=RelWithDebInfo -DHOSTWAIT_BUILD_TESTS=OFF \
    -DHOSTWAIT_BUILD_TOOLS=OFF
  ninja -C build-gpu-cai -j "$jobs" hostwait_cai hostwait_cai_static hostwait_shim
  rm -rf "$built"
  mkdir -p "$built/bin" "$built/lib"
  cp build-gpu-cai/lib/libhostwait_cai.so build-gpu-cai/lib/libhostwait.so "$built/lib/"
  local program source
  for program in hostwait_cai_bench:tests/bench/cai_bench.cpp \
    hostwait_cai_probes:tests/cai/gpu_probes.cpp; do
    source=${program#*:}
    g++ -std=c++20 -O2 -DHOSTWAIT_CAI_STATIC -Iinclude -Itests "-isystem$cuda_include" "$source" \
      build-gpu-cai/lib/libhostwait_cai.a -ldl -lpthread -o "$built/bin/${program%%:*}"
  done
  build_modules
  git rev-parse HEAD >"$built/commit" 2>/dev/null || echo unknown >"$built/commit"
}

if [ "${1:-}" = carry ]; then
  build
  find "$built" -type f -name '*.so' -exec strip --strip-debug {} +
  du -sh "$built"
  say "carry $built to the GPU machine"
  exit 0
fi
only=()
case ${1:-} in
  two) only=(two) && shift ;;
  probe) only=(probe "${2:-}") && shift && shift ;;
esac
[ $# -eq 1 ] || fail "give a folder for the results (see the head of $0)"
mkdir -p "$1"
out=$(cd "$1" && pwd)
limit=${HOSTWAIT_GPU_SECONDS:-350}
if [ ! -e /dev/nvidiactl ] && [ ! -e /dev/dxg ] && ! ldconfig -p | grep -q 'libcuda\.so\.1'; then
  echo "gpu_cai: skipped, no GPU here"
  exit 77
fi
[ -f "$built/commit" ] || build
export HOSTWAIT_TEST_BUILD=$root/$built PYTHONPATH=$root/python${PYTHONPATH:+:$PYTHONPATH}
export HOSTWAIT_CAI_LIBRARY=$root/$built/lib/libhostwait_cai.so
export XLA_PYTHON_CLIENT_PREALLOCATE=false PYTHONDONTWRITEBYTECODE=1
unset HOSTWAIT_CUDA_ARRAY_INTERFACE_SYNC HOSTWAIT_CUDA_ARRAY_INTERFACE_EXPORT_VERSION

failed=()
# step NAME SECONDS COMMAND…: output to OUTDIR/NAME.jsonl and .err; a step that runs out of time, its
# own or the whole script's, has failed.
step() {
  local name=$1 seconds=$2 status=0 left=$((limit - SECONDS))
  shift 2
  if [ "$left" -lt 5 ]; then
    echo "gpu_cai: $name: not run, no time left"
    failed+=("$name")
    return
  fi
  if [ "$seconds" -gt "$left" ]; then seconds=$left; fi
  local begin=$SECONDS
  timeout --kill-after=5 "$seconds" "$@" >"$out/$name.jsonl" 2>"$out/$name.err" </dev/null || status=$?
  echo "gpu_cai: $name: status $status after $((SECONDS - begin)) s"
  { grep -E '"ok": null|"could not run' "$out/$name.jsonl" || true; } | head -n 12
  if [ "$status" = 0 ] || [ "$status" = 77 ]; then return; fi
  failed+=("$name")
  { grep -E '"ok": false|does not hold|"inconclusive"' "$out/$name.jsonl" || true; } | head -n 12
  tail -n 6 "$out/$name.err"
}

proofs=tests/cai/python
if [ ${#only[@]} -gt 0 ]; then
  if [ "${only[0]}" = two ]; then
    step two_devices 60 python3 tests/cai/gpu_two_devices.py
    cat "$out/two_devices.jsonl"
  else
    step probe 60 python3 tests/cai/gpu_probes.py "${only[1]}"
    cat "$out/probe.jsonl"
  fi
  [ ${#failed[@]} -eq 0 ]
  exit
fi

step bench 60 "$built/bin/hostwait_cai_bench"
step probes 40 "$built/bin/hostwait_cai_probes"
# A crash is an answer here: the driver does not promise an error for a destroyed handle.
destroyed=0
timeout 15 "$built/bin/hostwait_cai_probes" destroyed >"$out/destroyed.jsonl" \
  2>"$out/destroyed.err" </dev/null || destroyed=$?
if [ "$destroyed" != 0 ]; then
  printf '{"name":"destroyed_stream","value":"the process ended with status %s","unit":"answer","n":1}\n' \
    "$destroyed" >>"$out/destroyed.jsonl"
fi
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
if [ -n "$sanitizer" ]; then
  step memcheck 45 "$sanitizer" --tool memcheck --error-exitcode 9 --print-limit 20 \
    "$built/bin/hostwait_cai_bench" quick
  grep -hE '=========' "$out/memcheck.jsonl" | tail -n 3 || true
  # Timings under the sanitizer are none.
  sed -i '/^{/d' "$out/memcheck.jsonl"
else
  echo "gpu_cai: memcheck: no compute-sanitizer on this machine"
fi
step gpu_unstopped 60 python3 $proofs/gpu_unstopped.py
# One process, since starting four frameworks takes long; the longest proof comes last, with the time
# that is left.
step gpu_proofs 300 python3 $proofs/gpu_proofs.py cost capture host checker probes values

python3 scripts/gpu_cai_figures.py "$out" "$(cat "$built/commit")" || failed+=(budgets)
if [ ${#failed[@]} -gt 0 ]; then
  echo "gpu_cai: failed: ${failed[*]}"
fi
tail -n 1 "$out/summary.txt"
[ ${#failed[@]} -eq 0 ]
