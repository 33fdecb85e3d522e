#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# A worker that is ended from outside costs one measurement, not the run; a driver that does not
# start is one line and status 1.
#
#   worker_ends.sh HOSTWAIT
set -u
tool=$1
out=$(mktemp)
trap 'rm -f "$out"' EXIT
fail() {
  printf 'worker_ends: %s\n' "$*" >&2
  cat "$out" >&2
  exit 1
}

if [ ! -e "/proc/$$/task/$$/children" ]; then
  echo "worker_ends: SKIP, this kernel lists no children in /proc"
  exit 77
fi
"$tool" probe --only wait/ --kernel-ms 30 >"$out" 2>&1 &
parent=$!
# The first worker's process, once it is there; it is given time to begin measuring.
for _ in $(seq 200); do
  worker=$(cat "/proc/$parent/task/$parent/children" 2>/dev/null)
  [ -n "$worker" ] && break
  sleep 0.01
done
[ -n "$worker" ] || fail "no worker was started"
sleep 0.3
kill -KILL $worker 2>/dev/null || fail "the worker had ended already"
wait "$parent" || fail "the run did not end well"
[ "$(grep -c 'crashed (signal' "$out")" -eq 1 ] || fail "the lost measurement is not told"
grep -q '^wait/cuStreamSynchronize/host_function ' "$out" || fail "the rest was not measured"

HOSTWAIT_SIM_FAIL=cuInit=100 "$tool" probe --only wait/ >"$out" 2>&1
[ $? -eq 1 ] || fail "no device: the status is not 1"
grep -q 'cuInit: CUDA_ERROR_NO_DEVICE' "$out" || fail "no device: it is not said"
HOSTWAIT_SIM_FAIL=cuEventCreate=2 "$tool" probe --only wait/cuEventSynchronize/after >"$out" 2>&1 ||
  fail "an unsupported call ended the run"
grep -q 'unsupported (cuEventCreate: CUDA_ERROR_OUT_OF_MEMORY)' "$out" ||
  fail "an unsupported call is not told"
