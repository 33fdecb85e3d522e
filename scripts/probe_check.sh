#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Holds today's verdict rules against every stored table of measurements: tests/sim/data/*.csv and
# docs/measurements/*probe*.json. Ends with one line over all of them:
#   probe: N experiments, M verdicts agree, K depend, 0 wrong
# Status 1 where a verdict is wrong, more than one in twenty depends, or a call that was measured on
# an idle GPU would be told as waited.
#
#   scripts/probe_check.sh [BUILD-DIR]
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build}
experiments=0 agree=0 depend=0 wrong=0 bad=0

# Shows what a checker says but its last line, whose numbers are added up.
add() {
  local out numbers
  out=$("$@" 2>&1)
  numbers=$(sed -n 's/^probe: \([0-9]*\) experiments, \([0-9]*\) verdicts agree, \([0-9]*\) depend, \([0-9]*\) wrong$/\1 \2 \3 \4/p' <<<"$out")
  printf '%s\n' "$out" | grep -v -e '^probe: ' -e '^idle: ' -e '^not measured: '
  if grep -q '^idle: .*; [1-9][0-9]* would become waited' <<<"$out"; then
    grep '^idle: ' <<<"$out"
    bad=1
  fi
  if [ -z "$numbers" ]; then
    bad=1
    return
  fi
  # shellcheck disable=SC2086
  set -- $numbers
  experiments=$((experiments + $1)) agree=$((agree + $2)) depend=$((depend + $3))
  wrong=$((wrong + $4))
}

tables=("$root"/tests/sim/data/*.csv)
add "$build/tests/table_verdicts" "${tables[@]}"
shopt -s nullglob
stored=("$root"/docs/measurements/*probe*.json)
if [ ${#stored[@]} -gt 0 ]; then add "$build/bin/hostwait" probe --stored "${stored[@]}"; fi
[ "$experiments" -gt 0 ] && [ "$wrong" -eq 0 ] && [ $((depend * 20)) -le "$experiments" ] || bad=1
printf 'probe: %s experiments, %s verdicts agree, %s depend, %s wrong\n' \
  "$experiments" "$agree" "$depend" "$wrong"
exit $bad
