# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# What the scripts of this folder share: packages, CUDA headers, Python test tools. Sourced.

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

# Pinned: what the tests were written against.
cuda_runtime_version=13.0.96
cuda_crt_version=13.0.88
cuda_profiler_version=13.0.85
python_tools=('pytest>=8,<9' 'jsonschema>=4.20,<5' 'numpy>=1.26,<3' 'cuda-bindings==13.0.*')

ci=${CI:-false}
install=false
jobs=${HOSTWAIT_JOBS:-$(nproc)}

say() { printf '%s\n' "== $*"; }
fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 2
}

packages_to_build() {
  echo cmake ninja-build g++ git pkg-config catch2 libcli11-dev libdw-dev libelf-dev zlib1g-dev \
    liblzma-dev libbz2-dev libzstd-dev libfmt-dev libspdlog-dev libtomlplusplus-dev \
    nlohmann-json3-dev python3 python3-venv
}

packages_to_test() {
  packages_to_build
  echo binutils ccache clang gdb libbenchmark-dev libunwind-dev musl-tools python3-dev tmux
  # clang's runtime library carries the distribution's version number. The format is defined by
  # clang-format 14 alone; distributions without it skip that check.
  case "$(. /etc/os-release && echo "${ID:-}${VERSION_ID:-}")" in
    debian12 | ubuntu22.04) echo libclang-rt-14-dev clang-format-14 ;;
    ubuntu24.04) echo libclang-rt-18-dev clang-format-14 ;;
    *) echo libclang-rt-dev ;;
  esac
}

# For scripts/aarch64.sh: 120 MB to fetch, so only CI asks for them.
packages_to_cross() {
  case "$(. /etc/os-release && echo "${ID:-}${VERSION_ID:-}")" in
    debian12) echo g++-aarch64-linux-gnu qemu-user-static ;;
  esac
}

# need_packages NAME…: nothing to do where all are there; else installs them if that was asked for,
# or prints the line to type and stops with status 2.
need_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian or Ubuntu system: install the like of: $*"
    return 0
  fi
  local package missing=()
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
      missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then return 0; fi
  local sudo=()
  if [ "$(id -u)" != 0 ]; then sudo=(sudo); fi
  if [ "$install" = true ] || { [ "$ci" = true ] && [ "$(id -u)" = 0 ]; }; then
    say "installing ${missing[*]}"
    "${sudo[@]}" apt-get update -q </dev/null
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -q -y --no-install-recommends "${missing[@]}" </dev/null
    return 0
  fi
  printf 'These packages are missing. Install them, or give --install:\n\n' >&2
  printf '  apt-get install -y --no-install-recommends %s\n\n' "${missing[*]}" >&2
  exit 2
}

venv=$root/build/venv
need_venv() {
  if [ ! -x "$venv/bin/pip" ]; then
    mkdir -p build
    python3 -m venv "$venv" || fail "python3 cannot make a virtual environment (python3-venv)"
  fi
}

# Sets cuda_include: the toolkit's folder of cudaTypedefs.h, or the pinned package's.
need_cuda_headers() {
  local folder
  for folder in "${HOSTWAIT_CUDA_INCLUDE:-}" "${CUDA_HOME:-}/include" "${CUDA_PATH:-}/include" \
    /usr/local/cuda/include /usr/local/cuda/targets/x86_64-linux/include; do
    if [ -f "$folder/cudaTypedefs.h" ] && [ -f "$folder/cudaProfiler.h" ] &&
      grep -qE 'define CUDA_VERSION +13' "$folder/cuda.h"; then
      cuda_include=$folder
      return 0
    fi
  done
  cuda_include=$root/build/cuda/nvidia/cu13/include
  if [ ! -f "$cuda_include/cudaTypedefs.h" ] || [ ! -f "$cuda_include/cudaProfiler.h" ]; then
    need_venv
    say "CUDA headers: nvidia-cuda-runtime $cuda_runtime_version from PyPI"
    "$venv/bin/pip" install -q --no-deps --target build/cuda --upgrade \
      "nvidia-cuda-runtime==$cuda_runtime_version" "nvidia-cuda-crt==$cuda_crt_version" \
      "nvidia-cuda-profiler-api==$cuda_profiler_version"
  fi
  [ -f "$cuda_include/cudaTypedefs.h" ] || fail "no cudaTypedefs.h in nvidia-cuda-runtime"
  [ -f "$cuda_include/cudaProfiler.h" ] || fail "no cudaProfiler.h in nvidia-cuda-profiler-api"
}

# The shared runtimes of CUDA 11.8, 12 and 13, all three in build/cudart, from PyPI.
need_cuda_runtimes() {
  local package
  mkdir -p build/cudart
  for package in "nvidia-cuda-runtime-cu11==11.8.89" "nvidia-cuda-runtime-cu12==12.9.79" \
    "nvidia-cuda-runtime==$cuda_runtime_version"; do
    if grep -qxsF "$package" build/cudart/packages.txt; then continue; fi
    need_venv
    say "CUDA runtime: $package from PyPI"
    rm -rf build/cudart-unpacked
    "$venv/bin/pip" install -q --no-deps --target build/cudart-unpacked "$package"
    find build/cudart-unpacked -name 'libcudart.so.*' -exec cp {} build/cudart/ \;
    rm -rf build/cudart-unpacked
    echo "$package" >>build/cudart/packages.txt
  done
}

# pytest and the clients that nobody here wrote, in build/venv.
need_python_tools() {
  need_venv
  local stamp=$venv/tools.txt
  if [ "$(cat "$stamp" 2>/dev/null)" != "${python_tools[*]}" ]; then
    say "Python test tools: ${python_tools[*]}"
    "$venv/bin/pip" install -q "${python_tools[@]}"
    printf '%s' "${python_tools[*]}" >"$stamp"
  fi
}

# configure FOLDER OPTION…: CMake with Ninja, and ccache where it is installed.
configure() {
  local folder=$1
  shift
  local launcher=()
  if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  mkdir -p "$folder"
  cmake -S . -B "$folder" -G Ninja "${launcher[@]}" "-DHOSTWAIT_CUDA_INCLUDE=$cuda_include" "$@" \
    >"$folder/configure.log" 2>&1 || {
    cat "$folder/configure.log" >&2
    fail "cmake could not configure $folder"
  }
}
