#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# The proofs and measurements on a machine with a GPU.
#
#   scripts/gpu.sh [build] [smoke] [proofs] [bench] OUTDIR     default: all four
#   scripts/gpu.sh carry      on a build machine: puts tool, library and benchmarks with the shared
#                             libraries that they need into build-carry/, for a GPU machine that
#                             lacks the packages to build them
#
# Takes the tool and the library from build-carry/, else from build/ (built here if need be), and
# builds the CUDA programs of tests/gpu with nvcc. Everything said goes to OUTDIR/gpu.log too;
# figures go to OUTDIR/measurement-*.json. Status: 0 passed, 1 a check failed, 77 no GPU.
. "$(dirname "$0")/setup.sh"

carry() {
  local from=build-carry-cmake program library
  need_cuda_headers
  # RPATH, not RUNPATH: it also holds for the libraries that the carried libraries need.
  configure $from -DCMAKE_BUILD_TYPE=RelWithDebInfo -DHOSTWAIT_BUILD_BENCHMARKS=ON \
    -DCMAKE_BUILD_RPATH='$ORIGIN/../lib' -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags
  # What build/ compiled is good here too: only the links differ.
  CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=$root ninja -C $from -j "$jobs" hostwait_tool hostwait_shim \
    hostwait_link hostwait_selftest hostwait_demo hostwait_bench_calls hostwait_bench_startup \
    hostwait_bench_stacks
  rm -rf build-carry
  mkdir -p build-carry/bin build-carry/lib
  for program in hostwait hostwait_demo hostwait_bench_calls hostwait_bench_startup; do
    cp "$from/bin/$program" build-carry/bin/
    # What it needs, but the C and C++ libraries, which every machine has at least as new.
    ldd "$from/bin/$program" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' |
      grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*|libstdc\+\+|libgcc_s|libcuda)\.so' |
      while IFS= read -r library; do cp -L "$library" build-carry/lib/; done || true
  done
  need_cuda_runtimes
  mkdir -p build-carry/cudart
  cp build/cudart/libcudart.so.* build-carry/cudart/
  for library in libhostwait.so libhostwait_link.so libhostwait_selftest.so \
    libhostwait_bench_stacks.so; do
    cp "$from/lib/$library" build-carry/lib/
  done
  find build-carry/bin build-carry/lib -type f ! -name 'libhostwait*' ! -name hostwait_demo \
    -exec strip --strip-debug {} +
  git rev-parse HEAD >build-carry/commit
  du -sh build-carry/bin build-carry/lib build-carry/cudart
  say "carry build-carry/bin, lib, cudart and commit to the GPU machine"
}

if [ "${1:-}" = carry ]; then
  carry
  exit 0
fi
[ $# -ge 1 ] || fail "give a folder for the results (see the head of $0)"
phases=("${@:1:$#-1}")
out=${!#}
for phase in "${phases[@]}"; do
  case $phase in build | smoke | proofs | bench) ;; *) fail "unknown phase $phase" ;; esac
done
mkdir -p "$out"

if [ -f build-carry/commit ]; then
  HOSTWAIT_COMMIT=$(cat build-carry/commit)
  export HOSTWAIT_COMMIT
fi
if [ ! -x build-carry/bin/hostwait ] && [ ! -x build/bin/hostwait ]; then
  need_cuda_headers
  configure build -DCMAKE_BUILD_TYPE=RelWithDebInfo
  ninja -C build -j "$jobs" hostwait_tool hostwait_shim hostwait_link
fi
if ! command -v nvcc >/dev/null && [ -x /usr/local/cuda/bin/nvcc ]; then
  PATH=/usr/local/cuda/bin:$PATH
fi
set +e
timeout --signal=TERM --kill-after=20 "${HOSTWAIT_GPU_SECONDS:-580}" \
  python3 tests/gpu/run.py "${phases[@]}" --out "$out"
status=$?
if [ "$status" = 124 ]; then echo "gpu.sh: stopped after ${HOSTWAIT_GPU_SECONDS:-580} s" | tee -a "$out/gpu.log"; fi
exit "$status"
