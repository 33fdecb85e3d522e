#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Checks of the source tree that need no run of the product: format, the table of calls against the
# headers, what the built libraries export, generated documents. Needs build/ (scripts/test.sh).
. "$(dirname "$0")/setup.sh"
need_cuda_headers
bad=0
check() {
  local name=$1
  shift
  if "$@"; then say "$name: ok"; else
    say "$name: FAILED"
    bad=1
  fi
}

clang_format() {
  local tool=
  for tool in clang-format-14 clang-format; do
    if "$tool" --version 2>/dev/null | grep -q 'version 14\.'; then break; fi
    tool=
  done
  if [ -z "$tool" ]; then
    say "format: SKIP, clang-format 14 is not installed"
    return 0
  fi
  git ls-files -z '*.c' '*.h' '*.cpp' '*.hpp' '*.cu' | xargs -0 -r "$tool" --dry-run --Werror
}

license_lines() {
  local file missing=0
  while IFS= read -r -d '' file; do
    if ! head -n 3 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0'; then
      printf '%s: the SPDX line is missing\n' "$file"
      missing=1
    fi
  done < <(git ls-files -z '*.c' '*.h' '*.cpp' '*.hpp' '*.cu' '*.S' '*.def' '*.py' '*.sh' \
    '*.cmake' '*CMakeLists.txt')
  return $missing
}

shell_syntax() {
  local file
  while IFS= read -r -d '' file; do bash -n "$file" || return 1; done < <(git ls-files -z '*.sh' .ci/run)
}

check "format" clang_format
check "license lines" license_lines
check "shell syntax" shell_syntax
check "table of calls" python3 scripts/check_table.py
check "exports" scripts/check_exports.sh build/lib/libhostwait.so build/lib/libhostwait_link.so
check "docs/flags.md" python3 scripts/generate_flags_doc.py --check
check "docs/advice.md" python3 scripts/advice_doc.py --check
check "docs/calls.md" python3 scripts/generate_calls_doc.py --check
check "docs/guarantees.md" python3 scripts/check_guarantees.py build
exit $bad
