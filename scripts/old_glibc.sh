#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# The libraries of build/lib inside the root of an older distribution: a program that is compiled there
# makes driver calls on every route, against a stand-in for the driver.
#
#   scripts/old_glibc.sh ROOT     ROOT: a folder made by debootstrap, with gcc and libc6-dev in it
# Needs root (chroot). Ends with `old_glibc: glibc V, N programs, M records, 0 failures`. Status 0, 1, 2.
. "$(dirname "$0")/setup.sh"
target=${1:?give the root (see the head of $0)}
[ -x "$target/usr/bin/gcc" ] || fail "$target has no gcc: chroot $target apt-get install gcc libc6-dev"
[ -f build/lib/libhostwait.so ] || fail "no build/lib/libhostwait.so: run scripts/test.sh first"
place=/tmp/hostwait-old-glibc
rm -rf "${target:?}$place"
mkdir -p "$target$place"
cp build/lib/libhostwait.so build/lib/libhostwait_link.so "$target$place/"
cp -r tests/routes include "$target$place/"
cat >"$target$place/go.sh" <<'END'
set -u
cd "$1"
sources=routes/libraries
gcc -shared -fPIC -D_GNU_SOURCE $sources/standin.c -o libcuda.so.1 -Wl,-soname,libcuda.so.1 \
  -Wl,--version-script=$sources/standin.map -Wl,-Bsymbolic-functions -ldl || exit 2
preload=$PWD/libhostwait.so:$PWD/libhostwait_link.so
programs=0 failures=0
# Both kinds of executable, with and without the linked route.
for shape in "-fPIE -pie" "-fno-pie -no-pie"; do
  for binding in lazy now; do
    gcc $shape -D_GNU_SOURCE -Iinclude -Iroutes routes/programs/true_library.c -o program \
      libcuda.so.1 "-Wl,-z,$binding" -Wl,-rpath,"$PWD" -ldl -lpthread || exit 2
    for seen in 1 ""; do
      options=output=$PWD
      [ -n "$seen" ] || options=$options:routes=nolink
      programs=$((programs + 1))
      env ${seen:+ROUTE_SEEN=1} LD_PRELOAD=$preload HOSTWAIT_OPTIONS="$options" ./program || {
        failures=$((failures + 1))
        echo "FAILED: $shape $binding $options"
      }
    done
  done
done
# The preload alone, in programs of the distribution.
for program in "ls /" "grep root /etc/passwd" "sh -c true"; do
  programs=$((programs + 1))
  [ "$(LD_PRELOAD=$preload $program 2>&1)" = "$($program 2>&1)" ] || failures=$((failures + 1))
done
records=$(ls hostwait-*.hwr 2>/dev/null | wc -l)
[ "$records" -gt 0 ] || failures=$((failures + 1))
echo "old_glibc: $(getconf GNU_LIBC_VERSION), $programs programs, $records records, $failures failures"
[ "$failures" = 0 ]
END
chroot "$target" sh $place/go.sh $place
