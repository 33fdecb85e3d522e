#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Runs the matrix of hosts, routes and threads again and again in random order: every CTest test that
# loads the preloaded library (routes.*, preload.*, record.*, guest.*, unwind.*, the tool's runs), many of
# them with and without it. Needs build/ (scripts/test.sh).
#
#   scripts/soak.sh SECONDS [REGEX]    REGEX: other CTest names
# Ends with `soak: N runs, M programs, F failures, S s`. Stops at the first failure and shows its output.
# Status: 0 clean, 1 a failure, 2 not set up.
. "$(dirname "$0")/setup.sh"
seconds=${1:?give the seconds (see the head of $0)}
regex=${2:-^(routes|preload|record|policy|guest|unwind)\\.|^tools\\.(run|signals|foreign|doctor|top)\$|^python\\.stacks\$|^cai\\.under_hostwait\$}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || fail "'$seconds' is no number of seconds"
[ -f build/CTestTestfile.cmake ] || fail "no build/: run scripts/test.sh first"
batch=12

mapfile -t names < <(ctest --test-dir build -LE gpu -N -R "$regex" |
  sed -nE 's/^ *Test +#[0-9]+: ([^ ]+).*/\1/p')
[ ${#names[@]} -gt 0 ] || fail "no test in build/ matches $regex"
declare -A ran
runs=0 skipped=0 said=0
started=$SECONDS
say "$(uname -m), $(getconf GNU_LIBC_VERSION), $(nproc) cores, commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
say "${#names[@]} tests for $seconds s"
# finish FAILURES
finish() {
  local word=failures
  if [ "$1" = 1 ]; then word=failure; fi
  if [ "$skipped" -gt 0 ]; then say "$skipped runs of these were skipped (scripts/test.sh says why)"; fi
  printf 'soak: %d runs, %d programs, %d %s, %d s\n' "$((runs - skipped))" "${#ran[@]}" "$1" "$word" \
    "$((SECONDS - started))"
}
while [ $((SECONDS - started)) -lt "$seconds" ]; do
  mapfile -t chosen < <(printf '%s\n' "${names[@]}" | shuf -n $batch)
  pattern=$(printf '%s\n' "${chosen[@]}" | sed 's/\./\\./g' | paste -sd '|')
  status=0
  ctest --test-dir build -R "^($pattern)\$" -LE gpu --schedule-random --output-on-failure \
    --stop-on-failure --timeout 300 -j "$jobs" </dev/null >build/soak.log 2>&1 || status=$?
  if [ $status -ne 0 ]; then
    cat build/soak.log
    runs=$((runs + $(grep -cE '^ *[0-9]+/[0-9]+ Test' build/soak.log || true)))
    finish 1
    exit 1
  fi
  skipped=$((skipped + $(grep -cE '\*\*\*Skipped' build/soak.log || true)))
  runs=$((runs + ${#chosen[@]}))
  for name in "${chosen[@]}"; do ran[$name]=1; done
  if [ $((SECONDS - started)) -ge $((said + 60)) ]; then
    said=$((SECONDS - started))
    say "$said s: $runs runs"
  fi
done
finish 0
