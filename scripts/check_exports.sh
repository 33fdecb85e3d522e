#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Holds the preloaded libraries against section 3 of the design:
#   check_exports.sh libhostwait.so libhostwait_link.so
# Status 0: all as expected; 1: something is not; 2: usage.
export LC_ALL=C
set -eu

if [ $# -ne 2 ]; then
  echo "usage: $0 libhostwait.so libhostwait_link.so" >&2
  exit 2
fi
failed=0
fail() {
  echo "$1: $2" >&2
  failed=1
}

exports() {
  readelf --dyn-syms -W "$1" | awk '$7 != "UND" && $7 != "Ndx" && $5 != "LOCAL" && $6 != "HIDDEN" && NF >= 8 { print $8 }' | sort
}

check_common() {
  library=$1
  # A version node would make the preloaded dlsym ignored by versioned references.
  if exports "$library" | grep -q '@'; then fail "$library" "exports carry a version"; fi
  if readelf -VW "$library" | grep -q 'gnu.version_d'; then fail "$library" "has version nodes"; fi
  if readelf -dW "$library" | grep -q 'TEXTREL'; then fail "$library" "has text relocations"; fi
  if ! readelf -lW "$library" | awk '$1 == "GNU_STACK" { ok = ($7 == "RW") } END { exit !ok }'; then
    fail "$library" "the stack is executable, or that is not said"
  fi
  if readelf -lW "$library" | awk '$1 == "LOAD" && $0 ~ /RWE/ { found = 1 } END { exit !found }'; then
    fail "$library" "has a segment that is writable and executable"
  fi
  tls=$(readelf -lW "$library" | awk '$1 == "TLS" { print $6 }')
  if [ -n "$tls" ] && [ $((tls)) -gt 256 ]; then
    fail "$library" "has $((tls)) bytes of thread-local storage, 256 are allowed"
  fi
  readelf --dyn-syms -W "$library" | awk '$7 == "UND" { print $8 }' |
    sed -n 's/.*@GLIBC_\([0-9.]*\).*/\1/p' | sort -u | while read -r version; do
    newest=$(printf '%s\n2.28\n' "$version" | sort -V | tail -n 1)
    if [ "$newest" != 2.28 ]; then
      echo "$library: needs GLIBC_$version, 2.28 is the limit:" \
        "$(readelf --dyn-syms -W "$library" | awk '$7 == "UND" { print $8 }' |
          grep "@GLIBC_$version\$" | tr '\n' ' ')" >&2
    fi
  done > /dev/null
  if readelf --dyn-syms -W "$library" | awk '$7 == "UND" { print $8 }' |
    sed -n 's/.*@GLIBC_\([0-9.]*\).*/\1/p' |
    awk -F. '$1 > 2 || ($1 == 2 && $2 > 28) { found = 1 } END { exit !found }'; then
    failed=1
  fi
  for symbol in $(readelf --dyn-syms -W "$library" |
    awk '$7 == "UND" && $4 != "NOTYPE" && $8 !~ /@/ { print $8 }'); do
    fail "$library" "needs $symbol, which has no libc version"
  done
}

shim=$1
link=$2
check_common "$shim"
check_common "$link"

expected="InitializeInjectionNvtx2 dlclose dlopen dlsym dlvsym hostwait_api"
found=$(exports "$shim" | tr '\n' ' ')
if [ "$found" != "$expected " ]; then fail "$shim" "exports '$found', expected '$expected'"; fi
found=$(exports "$link" | tr '\n' ' ')
if [ -n "$found" ]; then fail "$link" "exports '$found', expected nothing"; fi

# Seen by musl's loader, never by glibc's: shim/musl.S.
for symbol in __libc_start_main stdin; do
  if ! readelf --dyn-syms -W "$shim" | awk -v name="$symbol" '$8 == name && $6 == "HIDDEN" && $7 != "UND" { ok = 1 } $8 == name && $6 != "HIDDEN" { bad = 1 } END { exit !(ok && !bad) }'; then
    fail "$shim" "$symbol must be there and hidden: programs of musl could not start, or those of glibc would crash"
  fi
done
needed=$(readelf -dW "$shim" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | tr '\n' ' ')
if [ "$needed" != "libc.so.6 " ]; then fail "$shim" "needs '$needed', expected 'libc.so.6'"; fi
needed=$(readelf -dW "$link" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | tr '\n' ' ')
if [ -n "$needed" ]; then fail "$link" "needs '$needed', expected nothing"; fi
for reference in dlsym dlvsym dlopen dlclose; do
  # A reference of ours would bind to ourselves.
  if readelf --dyn-syms -W "$shim" | awk '$7 == "UND" { print $8 }' | grep -q "^$reference\(@\|\$\)"; then
    fail "$shim" "refers to $reference"
  fi
done

if [ $failed -eq 0 ]; then echo "exports: as expected"; fi
exit $failed
