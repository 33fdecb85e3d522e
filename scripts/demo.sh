#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# The main job in one command: builds hostwait and runs a small program under `hostwait run`, on
# the GPU where there is one, else on the simulated driver.
#   scripts/demo.sh [--install] [--simulated]
. "$(dirname "$0")/setup.sh"
simulated=false
for option in "$@"; do
  case $option in
    --install) install=true ;;
    --simulated) simulated=true ;;
    *) fail "unknown option $option (see the head of $0)" ;;
  esac
done

# shellcheck disable=SC2046
need_packages $(packages_to_build)
need_cuda_headers
say "building"
if [ ! -f build/build.ninja ]; then configure build -DCMAKE_BUILD_TYPE=RelWithDebInfo; fi
mkdir -p build/demo
ninja -C build -j "$jobs" hostwait_tool hostwait_shim hostwait_link hostwait_sim hostwait_demo \
  >build/demo/build.log 2>&1 || {
  tail -n 40 build/demo/build.log >&2
  exit 1
}

weights_mib=1024
if [ "$simulated" = false ] && ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1' && [ -e /dev/nvidia0 ]; then
  say "running on the GPU"
else
  say "no GPU: running on the simulated driver (a test double; its times are made up)"
  export LD_LIBRARY_PATH=$root/build/lib/sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export HOSTWAIT_SIM_COPY_SPEED=8000000000
  weights_mib=4
fi
printf '\n$ hostwait run -- demo\n'
build/bin/hostwait run --output build/demo -- build/bin/hostwait_demo 50 "$weights_mib"
